package source_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// body is a verbatim response of these lines.
func body(lines ...string) fakeeve.Fault {
	return fakeeve.Fault{Verbatim: []byte(strings.Join(lines, "\n") + "\n")}
}

func position(next string) string { return `{"$eve":"position","next":` + next + `}` }

const (
	beat  = `{"$eve":"heartbeat"}`
	lease = `{"$eve":"stream.lease-ended"}`
	ended = `{"$eve":"stream.ended"}`
)

// TestPosition: a jump forward is reported, every other one is nothing (contract 2.4).
func TestPosition(t *testing.T) {
	p := pages(10)
	for _, test := range []struct {
		name  string
		body  []string // of the first response; the tail is 5
		start int
		want  []string
	}{
		{"forward", []string{beat, p[0], position("3"), p[3], p[4], p[5]}, 0, join("line 0", "skipped 1 to 2", lines(3, 5), "caught up with 5")},
		{"one after the other", []string{p[0], position("2"), position("4"), p[4], p[5]}, 0,
			join("line 0", "skipped 1 to 1", "skipped 2 to 3", lines(4, 5), "caught up with 5")},
		{"first of all", []string{position("3"), p[3], p[4], p[5]}, 0, join("skipped 0 to 2", lines(3, 5), "caught up with 5")},
		{"behind the last line", []string{p[0], p[1], position("6")}, 0, join(lines(0, 1), "skipped 2 to 5", "caught up with 5")},
		{"behind the tail", append(p[:6:6], position("6")), 0, join(lines(0, 5), "caught up with 5")},
		{"over the bound", append(p[:5:5], position("9"), p[9]), 0, join(lines(0, 4), "skipped 5 to 8", "caught up with 5")},
		{"over the bound, from the bound on", append(p[:6:6], position("9")), 0, join(lines(0, 5), "caught up with 5", "skipped 6 to 8")},
		{"over everything", []string{position("100")}, 0, []string{"skipped 0 to 99", "caught up with 5"}},
		{"equal", []string{position("0"), p[0], position("1"), p[1], p[2], p[3], p[4], p[5]}, 0, join(lines(0, 5), "caught up with 5")},
		{"backward", []string{p[0], p[1], position("1"), p[2], position("0"), p[3], position("-4"), p[4], p[5]}, 0, join(lines(0, 5), "caught up with 5")},
		{"as JavaScript reads it", []string{position("2.0"), p[2], position("40e-1"), p[4], p[5]}, 0, join("skipped 0 to 1", "line 2", "skipped 3 to 3", lines(4, 5), "caught up with 5")},
		{"malformed", []string{p[0], position(`"4"`), p[2], position("4.5"), p[4], p[5]}, 0, join(lines(0, 5), "caught up with 5")}, // counted (row 4)
		{"among transport records and blank lines", []string{p[0], "", `{"$eve":"stream.weather"}`, beat, position("2"), " \r", p[2], p[3], p[4], p[5]}, 0,
			join("line 0", "skipped 1 to 1", lines(2, 5), "caught up with 5")},

		{"over the line before the start", []string{position("3"), p[3], p[4], p[5]}, 3, join(lines(3, 5), "caught up with 5")},
		{"over more than that", []string{position("5"), p[5]}, 3, join("skipped 3 to 4", "line 5", "caught up with 5")},
		{"right behind it", []string{p[2], position("4"), p[4], p[5]}, 3, join("skipped 3 to 3", lines(4, 5), "caught up with 5")},
		{"to the line before the start", []string{position("2"), p[2], p[3], p[4], p[5]}, 3, join(lines(3, 5), "caught up with 5")},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, setup{lines: p[:6]}, func(w *world) {
				start := w.place(test.start)
				w.eve.Script(session, nth(1, body(test.body...)))
				got, err := w.read(source.Request{Bounded: true, Start: start})
				if diff := cmp.Diff(join(test.want, "ended: bound"), got); diff != "" || err != nil {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
				if n := len(w.requests()); n != 1 {
					t.Errorf("requests: %v", w.requests())
				}
			})
		})
	}
}

// TestPositionInsideLine: a reader that stands inside a line finishes it, unless the line itself was skipped.
func TestPositionInsideLine(t *testing.T) {
	p := pages(6)
	for _, test := range []struct {
		name string
		body []string
		want []string
	}{
		{"over the line before", []string{position("3"), p[3], p[4], p[5]}, lines(3, 5)},
		{"behind the line", []string{p[2], p[3], position("5"), p[5]}, join("line 3", "skipped 4 to 4", "line 5")},
		{"over the rest of the line", []string{p[2], position("5"), p[5]}, join("skipped 3 to 4", "line 5")},
		{"over both", []string{position("5"), p[5]}, join("skipped 3 to 4", "line 5")},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, setup{lines: p}, func(w *world) {
				start := w.begun(3)
				w.eve.Script(session, nth(1, body(test.body...)))
				w.expectRead(source.Request{Bounded: true, Start: start}, test.want, "caught up with 5", "ended: bound")
				w.expectRequests("tail@2")
			})
		})
	}
}

// TestPositionLeavesLine: a reader that was led out of its line stands inside none: where it stands needs nothing
// behind the tail, and another version may answer there.
func TestPositionLeavesLine(t *testing.T) {
	p := pages(7)
	bubble(t, setup{lines: p[:6]}, func(w *world) {
		start := w.begun(3)
		w.eve.Script(session, nth(1, body(p[2], position("6"))))
		r := w.open(source.Request{Start: start})
		w.expect(r, "skipped 3 to 5", "caught up with 5")
		w.sess.Update(func(s *fakeeve.SessionSpec) { s.Version = 26 })
		w.after(time.Minute, p[6])
		w.expect(r, "version 26 from 6", "line 6")
	})
}

// TestPositionThenCut: coverage that was reported counts although nothing came behind it, and it is not asked for again.
func TestPositionThenCut(t *testing.T) {
	p := pages(6)
	for end, asked := range map[string]int{"": 1, p[4][:20]: 1, lease: 2} { // a lease end is no reason to wait: the tail lags once
		script := nth(1, fakeeve.Fault{Verbatim: []byte(p[0] + "\n" + position("4") + "\n" + end)})
		bubble(t, setup{lines: p[:1], script: script}, func(w *world) {
			w.after(time.Millisecond, p[1:4]...)
			w.after(10*time.Second, p[4:]...)
			w.expect(w.open(source.Request{}), "line 0", "caught up with 0", "skipped 1 to 3", lines(4, 5))
			// Line 3 exists: the tail shows it, so the position may be followed. Its text was never seen.
			want := join("tail@0", "live@0", []string{"tail@3", "tail@3"}[:asked], "live@3")
			w.expectRequests(want...)
		})
	}
	bubble(t, setup{lines: p[:3], ended: true, script: nth(1, body(p[2], position("7"), ended))}, func(w *world) {
		w.expectRead(source.Request{}, lines(0, 2), "caught up with 2", "skipped 3 to 6", "ended: closed")
	})
}

// TestPositionTrimmed reads logs that a server keeps in part, over cuts, in both modes.
func TestPositionTrimmed(t *testing.T) {
	for _, trim := range [][2]int64{{0, 3}, {2, 5}, {4, 8}, {0, 8}} {
		bubble(t, setup{lines: pages(8), script: nth(1, fakeeve.Fault{CutAt: fakeeve.AtByte(60), Cut: fakeeve.Abort})}, func(w *world) {
			w.sess.MemLog().Trim(trim[0], trim[1])
			skipped := fmt.Sprintf("skipped %d to %d", trim[0], trim[1]-1)
			want := join(lines(0, int(trim[0])-1), skipped, lines(int(trim[1]), 7), "caught up with 7")
			w.expectRead(source.Request{Bounded: true}, want, "ended: bound")
			r := w.open(source.Request{})
			w.expect(r, want)
			w.after(time.Minute, page(8))
			w.expect(r, "line 8")
			for n := range 9 { // the same from everywhere
				rest := join(lines(n, int(trim[0])-1), lines(max(n, int(trim[1])), 8), "caught up with 8", "ended: bound")
				if to := int(trim[1]); n < to {
					rest = join(lines(n, int(trim[0])-1), fmt.Sprintf("skipped %d to %d", max(n, int(trim[0])), to-1), lines(to, 8), "caught up with 8", "ended: bound")
				}
				w.expectRead(source.Request{Bounded: true, Start: source.Place{Line: uint64(n), Version: 27}}, rest)
			}
		})
	}
	bubble(t, setup{lines: pages(8)}, func(w *world) { // the relative start is resolved, then told what is missing
		w.sess.MemLog().Trim(3, 6)
		r := w.open(source.Request{Relative: true, Last: 4, Bounded: true})
		w.expect(r, "positioned at 4", "skipped 4 to 5", lines(6, 7), "caught up with 7", "ended: bound")
		r = w.open(source.Request{Relative: true, Last: 2, Bounded: true})
		s, err := r.Next()
		if err != nil || words(s) != "positioned at 6" || s.Before != (source.Before{}) {
			t.Errorf("%+v, %v: nothing is known of a line that was skipped", s, err)
		}
	})
}

// TestRereads: every connection at a line > 0 reads the line before it again (api.md, "Verified").
func TestRereads(t *testing.T) {
	cut := func(c fakeeve.Conn) fakeeve.Fault { // three lines a connection, the one before among them
		return fakeeve.Fault{CutAt: fakeeve.AtLine(c.Start+3, 0), Cut: fakeeve.Abort}
	}
	bubble(t, setup{lines: pages(9), script: cut}, func(w *world) {
		w.expectRead(source.Request{Bounded: true}, lines(0, 8), "caught up with 8", "ended: bound")
		w.expectRequests("tail@0", "tail@2", "tail@4", "tail@6")
		w.forget()
		w.expect(w.open(source.Request{}), lines(0, 8), "caught up with 8")
		w.expectRequests("tail@0", "live@2", "live@4", "live@6")
		w.forget()
		w.expect(w.open(source.Request{Start: source.Place{Line: 4}}), lines(4, 8), "caught up with 8")
		w.expectRequests("tail@3", "live@5", "live@7")
	})
	bubble(t, setup{lines: pages(9)}, func(w *world) { // inside a line: the line, and the one before it
		start := w.begun(4)
		w.expectRead(source.Request{Bounded: true, Start: start}, lines(4, 8), "caught up with 8", "ended: bound")
		w.expectRequests("tail@3")
		start = w.begun(0)
		w.expectRead(source.Request{Bounded: true, Start: start}, lines(0, 8), "caught up with 8", "ended: bound")
		w.expectRequests("tail@0")
	})
	for _, version := range []int{26, 21} { // an overlap
		bubble(t, setup{version: version, lines: events(60)}, func(w *world) {
			r := w.open(source.Request{})
			for n := range 60 {
				w.expect(r, fmt.Sprintf("line %d", n))
				r.Release()
			}
			for i, r := range w.eve.StreamRequests(session) {
				if back := i - int(r.From); back < min(i, 8) || back > 64 {
					t.Errorf("version %d: behind line %d the read went on from %d", version, i, r.From)
				}
			}
		})
	}
}

// TestVerified: a history that was replaced is noticed before anything of it is handed out.
func TestVerified(t *testing.T) {
	other := func(i int) string { return strings.Replace(page(i), "2026", "2025", 1) }
	diverged := func(w *world, err error, line string) {
		t.Helper()
		if e := w.failure(err, source.Diverged); e.Meta["line"] != line || e.RetryAfter != 0 {
			t.Errorf("%v, retry after %v", e.Meta, e.RetryAfter)
		}
	}
	t.Run("at the start", func(t *testing.T) {
		bubble(t, setup{lines: pages(6)}, func(w *world) {
			start, begun, older := w.place(3), w.begun(3), w.place(3)
			older.Anchor = "0" + older.Anchor[1:] // by a scheme that this build cannot judge: refused, not waved through
			w.sess.MemLog().Replace(2, other(2))
			_, err := w.read(source.Request{Start: start})
			diverged(w, err, "2")
			w.expectRequests("tail@2")
			_, err = w.read(source.Request{Start: older})
			diverged(w, err, "2")
			for _, p := range []source.Place{begun, {Line: 3, Version: 27}, {Line: 3}} { // line 2 is not theirs to judge
				w.expectRead(source.Request{Start: p, Bounded: true}, lines(3, 5), "caught up with 5", "ended: bound")
			}
			w.sess.MemLog().Replace(2, page(2))
			w.sess.MemLog().Replace(3, other(3))
			w.expectRead(source.Request{Start: start, Bounded: true}, lines(3, 5), "caught up with 5", "ended: bound")
			_, err = w.read(source.Request{Start: begun})
			diverged(w, err, "3")
		})
	})
	t.Run("spelled in another way", func(t *testing.T) {
		bubble(t, setup{lines: pages(6)}, func(w *world) {
			start, begun := w.place(3), w.begun(2)
			w.sess.MemLog().Replace(2, respelled(page(2)))
			w.expectRead(source.Request{Start: start, Bounded: true}, lines(3, 5), "caught up with 5", "ended: bound")
			w.expectRead(source.Request{Start: begun, Bounded: true}, lines(2, 5), "caught up with 5", "ended: bound")
		})
	})
	t.Run("on the way", func(t *testing.T) {
		bubble(t, setup{lines: pages(3)}, func(w *world) {
			time.AfterFunc(59*time.Second, func() { w.sess.MemLog().Replace(2, other(2)) }) // noticed at the renewal
			got, err := w.read(source.Request{})
			diverged(w, err, "2")
			if diff := cmp.Diff(join(lines(0, 2), "caught up with 2"), got); diff != "" || time.Since(w.began) != time.Minute+125*time.Millisecond { // seen at the renewal, sure at the tail
				t.Errorf("after %v (-want +got):\n%s", time.Since(w.began), diff)
			}
			w.expectRequests("tail@0", "live@2", "live@2", "tail@2")
		})
	})
	t.Run("restored from a backup, and grown beyond", func(t *testing.T) {
		bubble(t, setup{lines: pages(6)}, func(w *world) {
			start := w.place(6)
			w.sess.MemLog().Truncate(4)
			w.sess.Append(other(4), other(5), other(6))
			_, err := w.read(source.Request{Start: start})
			diverged(w, err, "5")
		})
	})
	t.Run("events by their ids", func(t *testing.T) {
		bubble(t, setup{version: 26, lines: events(30)}, func(w *world) {
			start := w.place(20)
			w.expectRead(source.Request{Start: start, Bounded: true}, lines(20, 29), "caught up with 29", "ended: bound")
			for _, n := range []int64{19, 15, 12} {
				w.sess.MemLog().Replace(n, strings.Replace(events(30)[n], "evt_", "evt_x", 1))
				got, err := w.read(source.Request{Start: start})
				w.failed(err, source.Diverged)
				if got != nil {
					t.Errorf("handed out %v", got)
				}
				w.sess.MemLog().Replace(n, strings.Replace(events(30)[n], `"n"`, `"m"`, 1)) // the id decides alone
				w.expectRead(source.Request{Start: start, Bounded: true}, lines(20, 29), "caught up with 29", "ended: bound")
			}
		})
	})
}

// respelled says the same as a page in another way.
func respelled(p string) string {
	p = strings.Replace(p, `"at"`, `"at" : "never", "\u0061t"`, 1)
	return " " + strings.ReplaceAll(p, `"type"`, `"typ\u0065"`) + "\t"
}

// TestTailBehind: a position beyond the tail is asked for again for two seconds; storage may lag (api.md, "Not there").
func TestTailBehind(t *testing.T) {
	for _, version := range []int{27, 26} {
		stored := pages(9)
		if version < 27 {
			stored = events(9)
		}
		for _, anchored := range []bool{true, false} {
			for _, bounded := range []bool{true, false} {
				t.Run(fmt.Sprint(version, anchored, bounded), func(t *testing.T) {
					bubble(t, setup{version: version, lines: stored}, func(w *world) {
						start, begun := w.place(7), w.begun(7)
						if !anchored {
							start.Anchor = ""
						}
						w.sess.MemLog().Truncate(6) // line 6 is the one before the start
						w.after(900*time.Millisecond, stored[6])
						w.expectRead(source.Request{Start: start, Bounded: true}, "caught up with 6", "ended: bound")
						if took := time.Since(w.began); took != time.Second {
							t.Errorf("took %v", took)
						}
						w.sess.MemLog().Truncate(6)
						w.forget()
						began := time.Now()
						_, err := w.read(source.Request{Start: start, Bounded: bounded})
						e := w.failure(err, source.Ahead)
						if want := map[string]string{"line": "6", "tail": "5"}; cmp.Diff(want, e.Meta) != "" || e.RetryAfter != 0 {
							t.Errorf("%v, retry after %v", e.Meta, e.RetryAfter)
						}
						if took := time.Since(began); took != 2*time.Second {
							t.Errorf("given up after %v", took)
						}
						if n := len(w.requests()); n < 3 || n > 12 {
							t.Errorf("%d requests in two seconds", n)
						}
						if version == 27 { // inside line 7 it must be there itself
							w.sess.Append(stored[6])
							_, err = w.read(source.Request{Start: begun, Bounded: bounded})
							if e := w.failure(err, source.Ahead); e.Meta["line"] != "7" || e.Meta["tail"] != "6" {
								t.Errorf("%v", e.Meta)
							}
						}
						w.sess.MemLog().Purge()
						_, err = w.read(source.Request{Start: start, Bounded: bounded})
						w.failed(err, source.Expired)
						w.sess.Expire()
						_, err = w.read(source.Request{Start: start, Bounded: bounded})
						w.failed(err, source.Expired)
					})
				})
			}
		}
	}
	bubble(t, setup{lines: pages(5)}, func(w *world) { // exactly behind the tail is a good place
		w.expectRead(source.Request{Start: w.place(5), Bounded: true}, "caught up with 4", "ended: bound")
		_, err := w.read(source.Request{Start: source.Place{Line: 1 << 53}})
		w.failed(err, source.Ahead)
	})
}

// TestTailGoesBack: while it is followed, a session loses its last lines. A server sends from its tail on then, or
// hangs (contract O3); nothing of that may be taken for what was asked for.
func TestTailGoesBack(t *testing.T) {
	for name, closed := range map[string]bool{"open": false, "closed": true} {
		for _, keep := range []int64{0, 3} {
			t.Run(fmt.Sprint(name, keep), func(t *testing.T) {
				bubble(t, setup{lines: pages(6)}, func(w *world) {
					time.AfterFunc(50*time.Second, func() {
						w.sess.MemLog().Truncate(keep)
						if closed {
							w.sess.MemLog().End()
						}
						w.sess.CutAll(fakeeve.Abort)
					})
					got, err := w.read(source.Request{})
					w.failed(err, map[bool]source.Reason{true: source.Expired, false: source.Ahead}[keep == 0])
					if diff := cmp.Diff(join(lines(0, 5), "caught up with 5"), got); diff != "" {
						t.Error(diff)
					}
					if took := time.Since(w.began); took > 70*time.Second {
						t.Errorf("told after %v", took)
					}
				})
			})
		}
	}
	bubble(t, setup{lines: pages(6)}, func(w *world) { // and gets others: they are told by their identity
		time.AfterFunc(50*time.Second, func() {
			w.sess.MemLog().Truncate(3)
			w.sess.CutAll(fakeeve.Abort)
		})
		w.after(51*time.Second, pages(20)[10:]...)
		_, err := w.read(source.Request{})
		w.failed(err, source.Diverged)
	})
}

// TestVersionChange: another deployment answers (contract 6.4).
func TestVersionChange(t *testing.T) {
	for _, test := range []struct {
		name    string
		version int
		stored  []string
		now     int
		at      []string // steps at the change
	}{
		{"26 to 27", 26, events(6), 27, []string{"version 27 from 4"}},
		{"27 to 26", 27, pages(6), 26, []string{"version 26 from 4"}},
		{"24 to 26", 24, events(6), 26, nil},
		{"26 to 21", 26, events(6), 21, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, setup{version: test.version, lines: test.stored[:4]}, func(w *world) {
				start, begun := w.place(4), w.begun(3)
				upgrade := func() {
					w.sess.Update(func(s *fakeeve.SessionSpec) { s.Version = test.now })
					w.sess.Append(test.stored[4])
				}
				time.AfterFunc(50*time.Second, func() { w.sess.CutAll(fakeeve.Clean); upgrade() })
				r := w.open(source.Request{})
				w.expect(r, lines(0, 3), "caught up with 3", test.at, "line 4")
				if int(r.Version()) != test.now {
					t.Errorf("version %d", r.Version())
				}
				w.expect(w.open(source.Request{Start: start}), test.at, "line 4", "caught up with 4")

				_, err := w.read(source.Request{Start: begun, Bounded: true})
				if test.at == nil && err != nil {
					t.Error(err)
				} else if test.at != nil {
					e := w.failure(err, source.VersionInsideLine)
					if e.Meta["stream_version"] != fmt.Sprint(test.now) || e.RetryAfter != 0 {
						t.Errorf("%v, retry after %v", e.Meta, e.RetryAfter)
					}
				}
				// A reader that has read nothing crosses nothing.
				w.expectRead(source.Request{Bounded: true}, lines(0, 4), "caught up with 4", "ended: bound")
			})
		})
	}
}

// TestOverlap: up to version 26 a live stream can differ in order from the stored one (contract O4). Every event is
// handed out once, whatever connections the reader had.
func TestOverlap(t *testing.T) {
	for late := 1; late <= 8; late++ {
		for _, cutAt := range []int64{9, 10, 12, 17, 18, 25} {
			bubble(t, setup{version: 26, lines: events(4)}, func(w *world) {
				w.eve.Script(session, func(c fakeeve.Conn) fakeeve.Fault {
					if c.N != 1 {
						return fakeeve.Fault{}
					}
					return fakeeve.Fault{
						Late:  func(line int64) int { return map[int64]int{9: late}[line] },
						CutAt: fakeeve.AtLine(cutAt, 0), Cut: fakeeve.Abort,
					}
				})
				w.after(time.Second, append(events(30)[4:], sessionCompleted)...)
				r := w.open(source.Request{})
				seen := map[string]int{}
				var places []uint64
				for {
					s, err := r.Next()
					if err != nil || s.Kind == source.StepEnded {
						if err != nil {
							t.Fatalf("late by %d, cut at %d: %v", late, cutAt, err)
						}
						break
					}
					if s.Kind == source.StepLine {
						seen[s.Line.Records[0].Meta.ID]++
						places = append(places, s.Line.Place)
					}
				}
				if len(seen) != 31 || len(places) != 31 {
					t.Fatalf("late by %d, cut at %d: %d events, %d of them different", late, cutAt, len(places), len(seen))
				}
				for n := range uint64(31) {
					if places[n] != n {
						t.Errorf("late by %d, cut at %d: places %v", late, cutAt, places)
						break
					}
				}
			})
		}
	}
}
