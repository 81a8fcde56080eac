package source_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// nth is a script that gives one connection a fault.
func nth(n int, f fakeeve.Fault) fakeeve.Script {
	return func(c fakeeve.Conn) fakeeve.Fault {
		if c.N == n {
			return f
		}
		return fakeeve.Fault{}
	}
}

// cuts are ways to end every body before its first line.
func cuts() map[string]fakeeve.Fault {
	return map[string]fakeeve.Fault{
		"clean":                  {CutAt: fakeeve.AtByte(0), Cut: fakeeve.Clean},
		"clean, behind a beat":   {CutAt: fakeeve.AtByte(21), Cut: fakeeve.Clean},
		"clean, inside a line":   {CutAt: fakeeve.AtByte(50), Cut: fakeeve.Clean},
		"abort":                  {CutAt: fakeeve.AtByte(0), Cut: fakeeve.Abort},
		"abort, inside a line":   {CutAt: fakeeve.AtByte(50), Cut: fakeeve.Abort},
		"reset":                  {CutAt: fakeeve.AtByte(0), Cut: fakeeve.Reset},
		"reset, inside a line":   {CutAt: fakeeve.AtByte(50), Cut: fakeeve.Reset},
		"silence inside a line":  {StallAt: fakeeve.AtByte(50), Stall: fakeeve.Forever},
		"no answer":              {Status: 500, CutAt: fakeeve.AtByte(0), Cut: fakeeve.Abort},
		"an answer with no body": {Status: 200},
	}
}

// TestIdle: silence counts as a cut, after 30 s at 27 and 15 s before; a heartbeat is no silence, nor is a consumer
// that takes its time.
func TestIdle(t *testing.T) {
	for _, test := range []struct {
		version int
		stored  []string
		gap     int
	}{{27, pages(2), 30_125}, {26, events(2), 15_125}, {21, events(2), 15_125}} {
		stall := nth(1, fakeeve.Fault{StallAt: fakeeve.AtLine(1, int64(len(test.stored[1]))+1), Stall: fakeeve.Forever})
		bubble(t, setup{version: test.version, lines: test.stored, script: stall}, func(w *world) {
			w.after(14*time.Second, "text")
			w.expect(w.open(source.Request{}), lines(0, 1), "caught up with 1", "line 2")
			w.expectGaps(0, test.gap)
		})
	}
	config := func(c *source.Config) { c.Idle, c.LegacyIdle = 12*time.Second, 11*time.Second }
	for version, stored := range map[int][]string{27: pages(2), 26: events(2)} {
		bubble(t, setup{version: version, lines: stored, config: config}, func(w *world) { // beats every 10 s keep it open
			w.after(5*time.Minute-time.Second, "text")
			w.expect(w.open(source.Request{}), lines(0, 1), "caught up with 1", "line 2")
			w.expectGaps(0, 60_000, 60_000, 60_000, 60_000)
		})
	}
	bubble(t, setup{lines: pages(3)}, func(w *world) {
		r := w.open(source.Request{})
		w.expect(r, lines(0, 2), "caught up with 2")
		w.after(30*time.Second, page(3))
		w.after(45*time.Second, page(4))
		w.expect(r, "line 3")
		time.Sleep(10 * time.Minute)
		w.expect(r, "line 4") // it was there all the time; the lease ended meanwhile
		w.after(time.Second, page(5))
		w.expect(r, "line 5")
		w.expectGaps(0, 10*60_000+30_000)
	})
}

// TestIdleRace: data and the deadline at the same instant.
func TestIdleRace(t *testing.T) {
	slow := nth(1, fakeeve.Fault{LineDelay: 5 * time.Second, Heartbeat: -1, Lease: -1})
	for range 30 {
		bubble(t, setup{lines: pages(4)}, func(w *world) {
			start := w.place(2)
			w.eve.Script(session, slow) // the line before the start has five seconds to come
			w.expectRead(source.Request{Start: start, Bounded: true}, lines(2, 3), "caught up with 3", "ended: bound")
		})
	}
}

// TestSlowAnchor: the lines that a connection reads again must begin within five seconds each; how long they take is
// a matter of their size.
func TestSlowAnchor(t *testing.T) {
	small := func(c *source.Config) { c.MaxLineBytes = 100 }
	for _, test := range []struct {
		name    string
		version int
		stored  []string
		start   int
		config  func(*source.Config)
	}{
		{"one line", 27, pages(4), 2, nil},
		{"an overlap", 26, events(4), 3, nil},
		{"a line over the limit", 27, []string{page(0), page(1) + strings.Repeat(" ", 100), page(2), page(3)}, 2, small},
	} {
		t.Run(test.name, func(t *testing.T) {
			slow := fakeeve.Fault{StallAt: fakeeve.AtLine(1, 90), Stall: 12 * time.Second, LineDelay: 4900 * time.Millisecond}
			bubble(t, setup{version: test.version, lines: test.stored, config: test.config}, func(w *world) {
				start := source.Place{Line: uint64(test.start), Version: uint32(test.version)}
				if test.config == nil {
					start = w.place(test.start)
				}
				w.eve.Script(session, each(slow))
				w.expectRead(source.Request{Start: start, Bounded: true}, lines(test.start, 3), "caught up with 3", "ended: bound")
				if got := w.requests(); len(got) != 1 {
					t.Errorf("connections: %v", got)
				}
			})
		})
	}
}

// TestLease renews at once, whatever else went wrong, in following and bounded reads (contract 2.4, G12).
func TestLease(t *testing.T) {
	t.Run("in silence", func(t *testing.T) {
		for version, stored := range map[int][]string{27: pages(1), 26: events(1)} {
			bubble(t, setup{version: version, lines: stored}, func(w *world) {
				w.after(5*time.Minute+time.Second, "text")
				w.expect(w.open(source.Request{}), "line 0", "caught up with 0", "line 1")
				w.expectGaps(0, 60_000, 60_000, 60_000, 60_000, 60_000)
				w.expectRequests("tail@0", "live@0", "live@0", "live@0", "live@0", "live@0", "live@0")
			})
		}
	})
	t.Run("between two deltas, in a bounded read with no retries", func(t *testing.T) {
		script := each(fakeeve.Fault{LineDelay: time.Second, Lease: 2500 * time.Millisecond})
		config := func(c *source.Config) { c.OpenAttempts = 1 }
		bubble(t, setup{lines: pages(40), script: script, config: config}, func(w *world) {
			w.expectRead(source.Request{Bounded: true}, lines(0, 39), "caught up with 39", "ended: bound")
			if n := len(w.requests()); n < 15 {
				t.Errorf("%d connections: the lease did not end", n)
			}
			if took := time.Since(w.began); took > 100*time.Second {
				t.Errorf("took %v: a renewal must not wait", took)
			}
		})
	})
	t.Run("between two deltas, following", func(t *testing.T) {
		script := each(fakeeve.Fault{LineDelay: time.Second, Lease: 45500 * time.Millisecond}) // some lines are read again
		bubble(t, setup{version: 26, lines: append(events(30), sessionCompleted), script: script}, func(w *world) {
			w.expectRead(source.Request{}, lines(0, 30), "caught up with 30", "ended: session")
		})
	})
	t.Run("after failures", func(t *testing.T) { // a lease that lasted shows that the server is well
		script := func(c fakeeve.Conn) fakeeve.Fault {
			if c.N == 0 || c.N%4 == 3 {
				return fakeeve.Fault{}
			}
			return fakeeve.Fault{CutAt: fakeeve.AtByte(0), Cut: fakeeve.Abort}
		}
		bubble(t, setup{lines: pages(1), script: script}, func(w *world) {
			w.after(3*time.Minute, page(1))
			w.expect(w.open(source.Request{}), "line 0", "caught up with 0", "line 1")
			w.expectGaps(0, 125, 250, 60_000, 125, 250, 500, 60_000, 125, 250, 500)
		})
	})
	t.Run("that end at once", func(t *testing.T) { // with nothing in them they are a fault
		script := func(c fakeeve.Conn) fakeeve.Fault {
			if c.N == 0 {
				return fakeeve.Fault{}
			}
			return fakeeve.Fault{Lease: 1}
		}
		bubble(t, setup{lines: pages(1), script: script}, func(w *world) {
			ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
			defer cancel()
			r, err := w.client.Read(ctx, source.Request{Session: session})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := steps(r, all); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			if n := len(w.requests()); n > 40 {
				t.Errorf("%d connections in a minute", n)
			}
		})
	})
	t.Run("of another version", func(t *testing.T) { // is an unknown record below 27
		const record = "\n{\"$eve\":\"stream.lease-ended\",\"version\":2}\n"
		bubble(t, setup{version: 26, lines: events(1), script: nth(1, fakeeve.Fault{Verbatim: []byte(record)})}, func(w *world) {
			w.after(time.Second, "text")
			w.expect(w.open(source.Request{}), "line 0", "caught up with 0", "line 1")
			if gaps := w.gaps(); gaps[1] != 125*time.Millisecond {
				t.Errorf("waits %v: it was taken for a lease end", gaps)
			}
		})
	})
}

// TestCutAnywhere cuts a body at each of its bytes: no line is lost, doubled or made up from a half.
func TestCutAnywhere(t *testing.T) {
	for version, stored := range map[int][]string{
		27: {`{"at":"1","facts":[{"type":"a"}]}`, `5`, "", `{"progress":{"type":"p"}}`, `{"x":1}`, `{"at":"2","facts":[]}`},
		26: {`{"type":"a","meta":{"id":"1"}}`, `{"type":"b","meta":{"id":"2"}}`, `{"type":"c"}`},
	} {
		want := join(lines(0, len(stored)-1), fmt.Sprintf("caught up with %d", len(stored)-1), "ended: bound")
		size := int64(32 + len(strings.Join(stored, "\n")))
		if version == 27 { // an empty line does not count
			stored, want = slices.Delete(stored, 2, 3), join(lines(0, 4), "caught up with 4", "ended: bound")
		}
		for _, how := range []fakeeve.How{fakeeve.Clean, fakeeve.Abort, fakeeve.Reset} {
			for at := range size {
				bubble(t, setup{version: version, lines: stored, script: nth(0, fakeeve.Fault{CutAt: fakeeve.AtByte(at), Cut: how, ChunkSize: 7})}, func(w *world) {
					w.expectRead(source.Request{Bounded: true}, want)
				})
				if t.Failed() {
					t.Fatalf("version %d, cut at byte %d, how %d", version, at, how)
				}
			}
		}
	}
}

// TestBackoffStartsAnew: a server that cuts every body, but brings a line each time, is not waited for ever longer.
func TestBackoffStartsAnew(t *testing.T) {
	script := func(c fakeeve.Conn) fakeeve.Fault { // the line before, and one more
		return fakeeve.Fault{CutAt: fakeeve.AtLine(c.Start+2, 0), Cut: fakeeve.Abort}
	}
	bubble(t, setup{lines: append(pages(8), sessionEnded), script: script}, func(w *world) {
		w.expectRead(source.Request{}, lines(0, 8), "caught up with 8", "ended: session")
		w.expectGaps(125, 125, 125, 125, 125, 125, 125)
	})
}

// TestLinesAreKept: a line stays what it was while others are read.
func TestLinesAreKept(t *testing.T) {
	stored := pages(500)
	bubble(t, setup{lines: stored}, func(w *world) {
		r := w.open(source.Request{Bounded: true})
		var kept []*source.Line
		for range stored {
			s, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, s.Line)
		}
		for i, l := range kept {
			if string(l.Raw) != stored[i] || !strings.Contains(stored[i], string(l.Records[0].Raw)) || l.Records[0].Type != "almanac.page" ||
				l.AtText != stored[i][7:31] {
				t.Fatalf("line %d became %s, %+v", i, l.Raw, l)
			}
		}
	})
}

// TestUnterminated: at a clean end of the body a last line without a line end counts when it is whole (contract 2.7).
func TestUnterminated(t *testing.T) {
	for _, test := range []struct {
		name, rest string
		whole      bool
	}{
		{"a commit", page(1), true},
		{"a progress record", `{"progress":{"type":"p"}}`, true},
		{"half a commit", page(1)[:40], false},
		{"a number that may go on", `12`, false},
		{"text", `text`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			script := nth(1, fakeeve.Fault{Verbatim: []byte(page(0) + "\n" + test.rest)})
			bubble(t, setup{lines: pages(1), script: script}, func(w *world) {
				w.after(time.Millisecond, page(1))
				r := w.open(source.Request{})
				w.expect(r, "line 0", "caught up with 0")
				s, err := r.Next()
				if err != nil || words(s) != "line 1" {
					t.Fatalf("%v, %v", s, err)
				}
				if got := string(s.Line.Raw); got != page(1) && got != test.rest {
					t.Errorf("line 1 is %s", got)
				}
				if took := time.Since(w.began); (took == 0) != test.whole {
					t.Errorf("it came after %v", took)
				}
			})
		})
	}
	for _, record := range []string{`{"$eve":"stream.ended"}`, `{"$eve":"stream.lease-ended"}`} {
		bubble(t, setup{lines: pages(1), script: nth(1, fakeeve.Fault{Verbatim: []byte(page(0) + "\n" + record)})}, func(w *world) {
			r := w.open(source.Request{})
			w.expect(r, "line 0", "caught up with 0")
			if strings.Contains(record, "lease") {
				w.after(time.Second, page(1))
				w.expect(r, "line 1")
				w.expectGaps(0, 0)
			} else {
				w.expect(r, "ended: closed")
			}
		})
	}
}

// TestBounded keeps to the tail of its first open, over cuts and leases, while the log grows (contract 2.5).
func TestBounded(t *testing.T) {
	for version, stored := range map[int][]string{27: pages(60), 26: events(60)} {
		for name, fault := range map[string]fakeeve.Fault{
			"cuts":   {CutAt: fakeeve.AtByte(1000), Cut: fakeeve.Abort},
			"ends":   {CutAt: fakeeve.AtByte(1000), Cut: fakeeve.Clean},
			"leases": {Lease: 10500 * time.Millisecond, LineDelay: time.Second},
		} {
			t.Run(fmt.Sprint(version, " ", name), func(t *testing.T) {
				var w *world
				var grown atomic.Int64
				script := func(fakeeve.Conn) fakeeve.Fault { // grows at every connection
					if n := 8 + grown.Add(1); n < int64(len(stored)) {
						w.sess.Append(stored[n])
					}
					return fault
				}
				bubble(t, setup{version: version, lines: stored[:8]}, func(world *world) {
					w = world
					before := w.place(5)
					w.eve.Script(session, script)
					// The script runs before the tail is looked up.
					w.expectRead(source.Request{Bounded: true}, lines(0, 8), "caught up with 8", "ended: bound")
					w.expectRead(source.Request{Bounded: true, Start: before}, boundedFrom(w, 5))
				})
			})
		}
	}
}

// boundedFrom is a bounded read of what is stored, and one line more, from line n on.
func boundedFrom(w *world, n int) []string {
	tail := int(w.sess.Log().Len())
	return join(lines(n, tail), fmt.Sprintf("caught up with %d", tail), "ended: bound")
}

// TestBoundedTailBehind: a replica that lags behind the pinned tail is asked again, at the pace of failures.
func TestBoundedTailBehind(t *testing.T) {
	for _, catchesUp := range []bool{true, false} {
		var w *world
		script := func(c fakeeve.Conn) fakeeve.Fault {
			switch {
			case c.N == 0:
				return fakeeve.Fault{CutAt: fakeeve.AtLine(3, 0), Cut: fakeeve.Abort}
			case c.N == 1:
				w.sess.Update(func(s *fakeeve.SessionSpec) { s.Log = fakeeve.NewMemLog(pages(4)...) })
			case c.N > 50: // a loop without a pause would never end
				t.Error("asked again and again")
				w.sess.Update(func(s *fakeeve.SessionSpec) { s.Log = fakeeve.NewMemLog(pages(6)...) })
			}
			return fakeeve.Fault{}
		}
		bubble(t, setup{lines: pages(6), script: script}, func(world *world) {
			w = world
			want := join(lines(0, 3))
			if catchesUp {
				time.AfterFunc(time.Second, func() { w.sess.Update(func(s *fakeeve.SessionSpec) { s.Log = fakeeve.NewMemLog(pages(6)...) }) })
				want = join(lines(0, 5), "caught up with 5", "ended: bound")
			}
			got, err := w.read(source.Request{Bounded: true})
			if diff := cmp.Diff(want, got); diff != "" || (err == nil) != catchesUp {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if !catchesUp {
				w.failed(err, source.Unavailable)
			}
		})
	}
}

// TestQuirks reads servers that know less (contract 1.9, 5.1).
func TestQuirks(t *testing.T) {
	for _, quirks := range []fakeeve.Quirks{{TailInformational: true}, {IgnoresFollow: true}, {TailInformational: true, IgnoresFollow: true}} {
		for version, stored := range map[int][]string{27: pages(8), 26: events(8), 22: events(8)} {
			t.Run(fmt.Sprintf("%d %+v", version, quirks), func(t *testing.T) {
				spec := func(s *fakeeve.SessionSpec) { s.Quirks = quirks }
				bubble(t, setup{version: version, lines: stored[:4], spec: spec}, func(w *world) {
					w.expectRead(source.Request{Bounded: true}, lines(0, 3), "caught up with 3", "ended: bound")
					w.expectRead(source.Request{Bounded: true, Relative: true, Last: 2}, "positioned at 2", lines(2, 3), "caught up with 3", "ended: bound")
					if took := time.Since(w.began); took > 2*time.Second {
						t.Errorf("took %v: a body that goes on is left a second behind its bound", took)
					}
					start := w.place(4)
					r := w.open(source.Request{Start: start})
					w.expect(r, "caught up with 3")
					w.after(20*time.Second, stored[4])
					w.after(100*time.Second, stored[5])
					w.expect(r, lines(4, 5))
					r = w.open(source.Request{Relative: true, Last: 1})
					w.expect(r, "positioned at 5", "line 5", "caught up with 5")
					w.after(20*time.Second, stored[6])
					w.after(100*time.Second, stored[7])
					w.expect(r, lines(6, 7))
				})
			})
		}
	}
}

// TestOversize: the limit is exact; over it a line ends the read, or is told of without its text.
func TestOversize(t *testing.T) {
	const limit = 256
	sized := func(n int) string {
		const frame = `{"at":"1","facts":[{"type":"almanac.page","data":""}]}`
		return strings.Replace(frame, `""`, `"`+strings.Repeat("x", n-len(frame))+`"`, 1)
	}
	config := func(c *source.Config) { c.MaxLineBytes = limit }
	tooLarge := func(w *world, err error, line int, size string) {
		t.Helper()
		e := w.failure(err, source.LineTooLarge)
		want := map[string]string{"line": fmt.Sprint(line), "size": size, "limit": "256"}
		if diff := cmp.Diff(want, e.Meta); diff != "" || e.RetryAfter != 0 {
			t.Errorf("retry after %v, meta (-want +got):\n%s", e.RetryAfter, diff)
		}
	}
	stored := []string{page(0), sized(limit), sized(limit + 1), page(3), sized(100_000), page(5)}
	bubble(t, setup{lines: stored, config: config}, func(w *world) {
		w.expectRead(source.Request{Bounded: true, SkipOversize: true},
			lines(0, 1), "line 2 of 257 bytes", "line 3", "line 4 of 100000 bytes", "line 5", "caught up with 5", "ended: bound")
		for _, bounded := range []bool{true, false} {
			got, err := w.read(source.Request{Bounded: bounded})
			if diff := cmp.Diff(lines(0, 1), got); diff != "" {
				t.Error(diff)
			}
			tooLarge(w, err, 2, "257")
		}
		// Behind it there is nothing to verify with; whoever stands there reads on.
		w.forget()
		w.expectRead(source.Request{Bounded: true, Start: source.Place{Line: 5, Version: 27}}, "line 5", "caught up with 5", "ended: bound")
		w.expectRequests("tail@4")
	})
	bubble(t, setup{lines: stored[:3], config: config}, func(w *world) { // a follower that stands behind one
		r := w.open(source.Request{SkipOversize: true})
		w.expect(r, lines(0, 1), "line 2 of 257 bytes", "caught up with 2")
		s := w.sess
		time.AfterFunc(time.Minute, func() { s.Append(page(3)); s.CutAll(fakeeve.Abort) })
		w.expect(r, "line 3")
	})
	for _, how := range []fakeeve.How{fakeeve.Clean, fakeeve.Abort} { // cut inside one that is over the limit already
		cut := fakeeve.Fault{CutAt: fakeeve.AtLine(4, 50_000), Cut: how}
		bubble(t, setup{lines: stored, config: config, script: nth(0, cut)}, func(w *world) {
			w.expectRead(source.Request{Bounded: true, SkipOversize: true},
				lines(0, 1), "line 2 of 257 bytes", "line 3", "line 4 of 100000 bytes", "line 5", "caught up with 5", "ended: bound")
		})
		bubble(t, setup{lines: append(pages(4), stored[4]), config: config, script: nth(0, cut)}, func(w *world) {
			got, err := w.read(source.Request{Bounded: true})
			if diff := cmp.Diff(lines(0, 3), got); diff != "" {
				t.Error(diff)
			}
			tooLarge(w, err, 4, "50000") // no retry makes it smaller
			w.expectRequests("tail@0")
		})
	}
}

// TestRelease gives the body up between any two steps; the read goes on where it stood.
func TestRelease(t *testing.T) {
	for version, stored := range map[int][]string{27: append(pages(5), sessionEnded), 26: append(events(5), sessionCompleted)} {
		for _, req := range []source.Request{{}, {Bounded: true}, {Relative: true, Last: 3}} {
			bubble(t, setup{version: version, lines: stored}, func(w *world) {
				want, err := w.read(req)
				if err != nil {
					t.Fatal(err)
				}
				for stop := range len(want) {
					r := w.open(req)
					got, err := steps(r, stop)
					if err != nil {
						t.Fatal(err)
					}
					r.Release()
					r.Release()
					synctest.Wait()
					if n := w.eve.OpenBodies(); n != 0 {
						t.Errorf("%d bodies open after a release", n)
					}
					time.Sleep(time.Hour / 100)
					rest, err := steps(r, all)
					if diff := cmp.Diff(want, append(got, rest...)); diff != "" || err != nil {
						t.Errorf("version %d, %+v, released after %d steps: %v (-want +got):\n%s", version, req, stop, err, diff)
					}
				}
			})
		}
	}
	bubble(t, setup{lines: pages(2)}, func(w *world) { // while following
		r := w.open(source.Request{})
		w.expect(r, lines(0, 1), "caught up with 1")
		w.after(time.Second, page(2))
		w.after(2*time.Second, page(3))
		w.expect(r, "line 2")
		r.Release()
		time.Sleep(time.Minute)
		w.expect(r, "line 3")
		w.expectRequests("tail@0", "live@1", "live@2")
	})
}

// TestClose ends a read for good.
func TestClose(t *testing.T) {
	bubble(t, setup{lines: pages(3)}, func(w *world) {
		r := w.open(source.Request{})
		w.expect(r, "line 0")
		r.Close()
		r.Close()
		if got, err := steps(r, all); got != nil || err != nil {
			t.Errorf("%v, %v", got, err)
		}
		w.expectRequests("tail@0")
	})
}

// TestCancel ends the context at any time: the read says so at once, and leaves nothing behind.
func TestCancel(t *testing.T) {
	scripts := map[string]fakeeve.Script{
		"a good server":  nil,
		"a silent one":   each(fakeeve.Fault{Delay: fakeeve.Forever}),
		"a failing one":  each(status(503)),
		"a lagging one":  nil, // see below
		"a slow one":     each(fakeeve.Fault{LineDelay: 2 * time.Second, ChunkSize: 3}),
		"a stalling one": each(fakeeve.Fault{StallAt: fakeeve.AtByte(30), Stall: fakeeve.Forever}),
		"a cutting one":  each(fakeeve.Fault{CutAt: fakeeve.AtByte(70), Cut: fakeeve.Abort}),
		"a brief one":    each(fakeeve.Fault{Lease: 1}),
	}
	for name, script := range scripts {
		for _, d := range ms(0, 1, 100, 1500, 2000, 10_000, 59_999, 60_000, 60_125) {
			bubble(t, setup{lines: pages(5), script: script}, func(w *world) {
				ctx, cancel := context.WithCancel(w.ctx)
				defer cancel()
				if d == 0 {
					cancel()
				} else {
					time.AfterFunc(d, cancel)
				}
				req := source.Request{Session: session}
				if name == "a lagging one" {
					req.Start = source.Place{Line: 9}
				}
				r, err := w.client.Read(ctx, req)
				if err == nil {
					_, err = steps(r, all)
					if again, err2 := r.Next(); err2 == nil || again.Kind != 0 {
						t.Errorf("%s: a step after the end: %v", name, again)
					}
				}
				var e *source.Error
				if errors.As(err, &e) && name != "a good server" && e.Reason != source.Refused {
					return // it gave up before
				}
				if !errors.Is(err, context.Canceled) || time.Since(w.began) != d {
					t.Errorf("%s, cancelled after %v: %v after %v", name, d, err, time.Since(w.began))
				}
			})
		}
	}
}
