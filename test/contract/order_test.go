package contract_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// ids is how the events of a session are identified.
type ids uint8

const (
	withIDs   ids = iota // as Eve does: one id an event
	noIDs                // before stream version 20: told apart by what they say
	alike                // without ids, and one in two says the same as others: they must come in order
	sharedIDs            // two neighbours have one id, which no server should do: they must come in order
)

func (k ids) String() string { return []string{"ids", "no ids", "alike", "shared ids"}[k] }

// storedEvent is event i of a session.
func storedEvent(i int, k ids) string {
	at, id, text := fmt.Sprintf("2026-11-18T09:00:00.%03dZ", i%1000), "", fmt.Sprint(i)
	switch k {
	case withIDs:
		id = fmt.Sprintf(`,"id":"evt_%026d"`, i)
	case sharedIDs:
		id = fmt.Sprintf(`,"id":"evt_%026d"`, i/2)
	case alike:
		if i%2 == 0 {
			at, text = "2026-11-18T09:00:00.000Z", "."
		}
	case noIDs:
	}
	return fmt.Sprintf(`{"type":"message.appended","data":{"messageDelta":%q},"meta":{"at":%q%s}}`, text, at, id)
}

const storedEnd = `{"type":"session.completed","meta":{"at":"2026-11-18T10:00:00.000Z","id":"evt_end"}}`

// disorder is a session of version 26 that is written while a client reads it, in parts.
type disorder struct {
	ids    ids
	n      int // events before the end of the session
	first  int // of them stored before the client comes
	late   func(line int64) int
	cutAt  []int         // after which events the server cuts all bodies
	how    fakeeve.How   // in which way
	stops  []int         // after how many records each part of the client ends; the last part goes on to the end
	pause  time.Duration // between two parts
	script fakeeve.Script
}

// run holds that every event arrives exactly once, and the end is told.
func (d disorder) run(t *testing.T) {
	t.Helper()
	r := rig.New(t, rig.Options{Eve: []fakeeve.Option{fakeeve.WithVersion(26)}})
	defer r.Close()
	s := r.Eve.AddSession(session, fakeeve.SessionSpec{})
	for i := range d.first {
		s.Append(storedEvent(i, d.ids))
	}
	r.Eve.Script(session, limited(t, func(c fakeeve.Conn) fakeeve.Fault {
		f := fakeeve.Fault{}
		if d.script != nil {
			f = d.script(c)
		}
		if f.Version < 27 { // there is no disorder at 27
			f.Late = d.late
		}
		return f
	}))
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := d.first; i < d.n; i++ {
			time.Sleep(3 * time.Millisecond) // virtual: the bubble's clock
			s.Append(storedEvent(i, d.ids))
			if slices.Contains(d.cutAt, i) {
				s.CutAll(d.how)
			}
		}
		time.Sleep(3 * time.Millisecond)
		s.Append(storedEnd)
		s.MemLog().End()
	}()
	defer func() { <-written }()
	want := map[string]int{storedEnd: 1}
	for i := range d.n {
		want[storedEvent(i, d.ids)]++
	}
	got, records := map[string]int{}, 0
	req := rig.FromStart(session)
	for part := 0; ; part++ {
		res := r.Subscribe(patient(t), req, func(m *evev1.SubscribeResponse) bool {
			if e := m.GetEvent(); e != nil {
				got[e.GetRecordJson()]++
				records++
			}
			return part < len(d.stops) && records >= d.stops[part]
		})
		if res.Err != nil {
			t.Fatalf("part %d, after %d records: %v", part, records, res.Err)
		}
		if res.Complete {
			if c := res.Last(); c.GetCheckpoint().GetEnd() != evev1.EndReason_END_REASON_SESSION_ENDED || c.GetCursor().GetStreamIndex() != uint64(d.n+1) {
				t.Errorf("the end is %v, want that of the session behind line %d", c, d.n)
			}
			break
		}
		req = rig.From(res.Last().GetCursor())
		time.Sleep(d.pause)
	}
	if !maps.Equal(want, got) {
		t.Errorf("how often events arrived (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// A live stream up to version 26 can deliver an event a few places late (contract O4). Whatever the lateness, with
// ids or without, over cuts inside one stream and over a client's own resume, every event arrives exactly once.
func TestLiveDisorder(t *testing.T) {
	for _, k := range []ids{withIDs, noIDs} {
		for _, late := range []int{1, 2, 3, 5, 8, 9, 12, 16} {
			for stop := 14; stop <= 34; stop += 2 {
				t.Run(fmt.Sprintf("%v/late=%d/stop=%d", k, late, stop), func(t *testing.T) {
					synctest.Test(t, disorder{
						ids: k, n: 60, first: 10, cutAt: [][]int{{18}, nil}[stop/2%2], stops: []int{stop},
						late: func(line int64) int {
							if line%20 == 15 {
								return late
							}
							return 0
						},
					}.run)
				})
			}
		}
	}
}

// Several events late at once, by different places, and a client that stops after every single record of the disorder.
func TestLiveDisorderDense(t *testing.T) {
	patterns := map[string]map[int64]int{
		"two neighbours by the same":   {12: 3, 13: 3},
		"two neighbours, crossing":     {12: 5, 13: 1},
		"three at once":                {12: 4, 13: 2, 15: 6},
		"all of a burst":               {11: 1, 12: 1, 13: 1, 14: 1, 15: 1, 16: 1},
		"every second one":             {11: 2, 13: 2, 15: 2, 17: 2},
		"the first that comes live":    {10: 2},
		"one that passes the end":      {21: 3},
		"the last before the end":      {23: 4},
		"the end itself":               {24: 4},
		"the end and those before it":  {22: 2, 23: 1, 24: 3},
		"at the beginning of the live": {10: 8, 11: 7, 12: 6},
	}
	for name, late := range patterns {
		for stop := 9; stop <= 25; stop++ {
			t.Run(fmt.Sprintf("%s/stop=%d", name, stop), func(t *testing.T) {
				synctest.Test(t, disorder{n: 24, first: 10, stops: []int{stop}, late: func(line int64) int { return late[line] }}.run)
			})
		}
		t.Run(name+"/stop after each", func(t *testing.T) {
			synctest.Test(t, disorder{
				n: 24, first: 10, stops: []int{11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}, pause: time.Millisecond,
				late: func(line int64) int { return late[line] },
			}.run)
		})
	}
}

// Chance: late lines by seed, cuts of every kind, clients that come and go; also in the first sixteen lines of a
// session, where there is less to read again.
func TestLiveDisorderRandom(t *testing.T) {
	for seed := range uint64(150) {
		w := rand.New(rand.NewPCG(seed, 4))
		d := disorder{
			ids: ids(w.IntN(2)), first: w.IntN(12), how: []fakeeve.How{fakeeve.Clean, fakeeve.Abort, fakeeve.Reset}[w.IntN(3)],
			late: fakeeve.SomeLate(seed, 3+w.IntN(8), 1+w.IntN(8)), pause: time.Duration(w.IntN(30)) * time.Millisecond,
		}
		d.n = d.first + 5 + w.IntN(60)
		for range w.IntN(3) {
			d.cutAt = append(d.cutAt, d.first+w.IntN(d.n-d.first))
		}
		for at := 0; w.IntN(4) > 0; {
			if at += 1 + w.IntN(12); at > d.n {
				break
			}
			d.stops = append(d.stops, at)
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { synctest.Test(t, d.run) })
	}
}

// Events that cannot be told apart, by their ids or by what they say, are neither dropped nor repeated as long as they
// come in order.
func TestIndistinguishable(t *testing.T) {
	var every []int
	for i := range 50 {
		every = append(every, i+1)
	}
	for _, k := range []ids{alike, sharedIDs} {
		for _, first := range []int{0, 1, 2, 17, 50} {
			for name, stops := range map[string][]int{"every": every, "some": {5, 16, 17, 33, 40}, "none": nil} {
				t.Run(fmt.Sprintf("%v/first=%d/stops=%s", k, first, name), func(t *testing.T) {
					synctest.Test(t, disorder{ids: k, n: 50, first: first, stops: stops, cutAt: []int{7, 20, 33, 49}}.run)
				})
			}
		}
	}
}

// TestOverlapRewritten: a history that was rewritten behind a position is told before anything of it is delivered,
// wherever in the lines that a position depends on it differs; what came in the place of a consumed event is not taken
// for a late one.
func TestOverlapRewritten(t *testing.T) {
	const n = 50
	other := func(i int) string { return legacy(500+i, "other.history") }
	others := func(n int) (out []string) {
		for i := range n {
			out = append(out, other(i))
		}
		return out
	}
	rewrites := map[string]func(lines []string) []string{
		"the last line":        func(l []string) []string { return slices.Replace(l, n-1, n, other(1)) },
		"the last but one":     func(l []string) []string { return slices.Replace(l, n-2, n-1, other(1)) },
		"eight lines back":     func(l []string) []string { return slices.Replace(l, n-8, n-7, other(1)) },
		"several lines":        func(l []string) []string { l[n-2], l[n-4], l[n-5] = other(1), other(2), other(3); return l },
		"all lines":            func([]string) []string { return others(n) },
		"the second half":      func(l []string) []string { return append(l[:n/2], others(n/2)...) },
		"a line is gone":       func(l []string) []string { return append(slices.Delete(l, n-5, n-4), other(1)) },
		"far back one is gone": func(l []string) []string { return append(slices.Delete(l, n-25, n-24), other(1)) },
		"one is moved far back": func(l []string) []string {
			moved := l[n-2]
			return slices.Insert(slices.Delete(l, n-2, n-1), 2, moved)
		},
		"one in place of two":  func(l []string) []string { return append(slices.Replace(l, n-5, n-3, other(1)), other(2)) },
		"one after the last":   func(l []string) []string { return append(l[:n-1], other(1)) },
		"the session is over":  func(l []string) []string { return append(l[:n-1], storedEnd) },
		"over before that":     func(l []string) []string { return append(l[:n-3], storedEnd, other(1), other(2)) },
		"two runs of the same": func(l []string) []string { return slices.Concat(l[:n-3], l[n-6:n-3]) },
	}
	for name, rewritten := range rewrites {
		for _, more := range []int{0, 1, 3, 40} {
			t.Run(fmt.Sprintf("%s/%d more", name, more), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := rig.New(t, rig.Options{Eve: []fakeeve.Option{fakeeve.WithVersion(26)}})
					defer r.Close()
					var lines []string
					for i := range n {
						lines = append(lines, legacy(i, "message.appended"))
					}
					s := r.Eve.AddSession(session, fakeeve.SessionSpec{Log: fakeeve.NewMemLog(lines...)})
					part := r.Subscribe(t.Context(), rig.FromStart(session), func(m *evev1.SubscribeResponse) bool { return m.GetCursor().GetStreamIndex() == n })
					lines = append(rewritten(lines), others(more)...)
					s.MemLog().Purge()
					s.Append(lines...)
					for _, req := range []*evev1.SubscribeRequest{rig.From(part.Last().GetCursor()), rig.UntilTail(rig.From(part.Last().GetCursor()))} {
						res := r.Subscribe(patient(t), req, nil)
						if got, want := statusOf(res.Err), "FAILED_PRECONDITION CURSOR_DIVERGED line=49"; got != want {
							t.Errorf("status %q (%v), want %q", got, res.Err, want)
						}
						if len(res.Messages) > 0 {
							t.Errorf("delivered %v", texts(res, 26))
						}
					}
					// Who accepts the changed history clears the anchor.
					c := part.Last().GetCursor()
					c.Anchor = ""
					want := len(lines) - n
					if lines[n-1] == storedEnd {
						want = 0
					}
					if res := r.Subscribe(t.Context(), rig.UntilTail(rig.From(c)), nil); res.Err != nil || len(res.Records()) != want {
						t.Errorf("accepted, and got %v, status %v", texts(res, 26), res.Err)
					}
				})
			})
		}
	}
}

// TestOverlapLag: storage that lags behind what a live stream delivered is asked again for two seconds; then the lines
// it does not have are told to be missing.
func TestOverlapLag(t *testing.T) {
	var lines, want []string
	for i := range 20 {
		lines = append(lines, legacy(i, "message.appended"))
		want = append(want, fmt.Sprintf("event %d message.appended @%d", i, i+1))
	}
	lag := func(back int64) func(*fakeeve.Session) {
		return func(s *fakeeve.Session) { s.MemLog().Truncate(18 - back) }
	}
	again := func(back int, after time.Duration) moment { return appends(after, lines[18-back:]...) }
	runCases(t, []contractCase{
		{name: "catches up", version: 26, open: true, lines: lines[:18], calls: []call{
			{stop: 18, want: want[:18]},
			{before: lag(3), during: []moment{again(3, 1500*time.Millisecond)}, stop: 3, want: join(want[18:20], "CAUGHT_UP 19 @20")},
		}},
		{name: "does not", version: 26, open: true, lines: lines[:18], calls: []call{
			{stop: 18, want: want[:18]},
			{before: lag(3), during: []moment{again(3, 2500*time.Millisecond)}, status: "OUT_OF_RANGE CURSOR_AHEAD line=17 tail=14"},
		}},
		{name: "has its length, and never the line that came early", version: 26, open: true, rewritten: true, lines: lines[:18], calls: []call{
			{stop: 18, want: want[:18]},
			{
				before: func(s *fakeeve.Session) { s.MemLog().Replace(17, legacy(90, "step.started")) },
				status: "FAILED_PRECONDITION CURSOR_DIVERGED line=17",
			},
		}},
		{name: "under a stream", version: 26, open: true, lines: lines[:18], calls: []call{{
			during: []moment{
				{time.Second, func(s *fakeeve.Session) { s.CutAll(fakeeve.Abort); lag(2)(s) }},
				again(2, 2*time.Second), ends(200 * time.Second),
			},
			leave: 100 * time.Second, status: "LEFT",
			want: join(want[:18], "CAUGHT_UP 17 @18", want[18:20]),
		}}},
	})
}

// TestOverlapUnderStream: a history that was rewritten under a stream is told however the connections end that show it.
func TestOverlapUnderStream(t *testing.T) {
	var lines, want []string
	for i := range 20 {
		lines = append(lines, legacy(i, "message.appended"))
		want = append(want, fmt.Sprintf("event %d message.appended @%d", i, i+1))
	}
	rewrite := func(how fakeeve.How, end bool) moment {
		return moment{time.Second, func(s *fakeeve.Session) {
			s.MemLog().Replace(15, legacy(99, "other.history"))
			s.CutAll(how)
			if end {
				s.MemLog().End()
			}
		}}
	}
	var cases []contractCase
	for name, m := range map[string]moment{
		"which ends": rewrite(fakeeve.Clean, true), "which goes on": rewrite(fakeeve.Clean, false), "which goes on after a reset": rewrite(fakeeve.Reset, false),
	} {
		cases = append(cases, contractCase{name: name, version: 26, open: true, rewritten: true, lines: lines, calls: []call{{
			during: []moment{m, appends(2*time.Minute, legacy(100, "other.history"))},
			want:   join(want, "CAUGHT_UP 19 @20"), status: "FAILED_PRECONDITION CURSOR_DIVERGED line=19",
		}}})
	}
	runCases(t, cases)
}

// TestOverlapSkipped: where a server tells that it skipped lines that would be read again, the read goes on without
// them, as it does at 27.
func TestOverlapSkipped(t *testing.T) {
	var lines, want []string
	for i := range 40 {
		lines = append(lines, legacy(i, "message.appended"))
		want = append(want, fmt.Sprintf("event %d message.appended @%d", i, i+1))
	}
	var cases []contractCase
	for _, skipped := range [][2]int64{{0, 30}, {0, 29}, {0, 20}, {10, 12}, {20, 25}, {29, 30}, {28, 29}} {
		cases = append(cases, contractCase{
			name: fmt.Sprintf("%d to %d", skipped[0], skipped[1]), version: 26, open: true, rewritten: true, lines: lines[:30], calls: []call{
				{stop: 30, want: want[:30]},
				{
					before: func(s *fakeeve.Session) { s.Append(lines[30:]...); s.MemLog().Trim(skipped[0], skipped[1]) },
					stop:   11, want: join(want[30:], "CAUGHT_UP 39 @40"),
				},
			},
		})
	}
	cases = append(cases, contractCase{name: "over the position", version: 26, open: true, rewritten: true, lines: lines[:30], calls: []call{
		{stop: 30, want: want[:30]},
		{
			before: func(s *fakeeve.Session) { s.Append(lines[30:]...); s.MemLog().Trim(20, 35) },
			stop:   7, want: join("SOURCE_SKIPPED 30..35 @35?", want[35:], "CAUGHT_UP 39 @40"),
		},
	}})
	runCases(t, cases)
}

// TestOverlapStoredLater: the event that overtook another is the last that a client has, and the storage has the other
// one in its place and does not have it yet.
func TestOverlapStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.New(t, rig.Options{Eve: []fakeeve.Option{fakeeve.WithVersion(26)}})
		defer r.Close()
		var lines []string
		for i := range 20 {
			lines = append(lines, legacy(i, "message.appended"))
		}
		s := r.Eve.AddSession(session, fakeeve.SessionSpec{Log: fakeeve.NewMemLog(lines[:18]...)})
		part := r.Subscribe(t.Context(), rig.FromStart(session), func(m *evev1.SubscribeResponse) bool { return m.GetCursor().GetStreamIndex() == 18 })
		s.MemLog().Truncate(17)
		s.Append(legacy(90, "step.started"))
		time.AfterFunc(time.Second, func() { s.Append(lines[17], lines[18], storedEnd) })
		res := r.Subscribe(patient(t), rig.From(part.Last().GetCursor()), nil)
		want := []string{
			"event 17 step.started @19", "CAUGHT_UP 17 @19", "event 19 message.appended @20", "event 20 session.completed @21 ended", "ENDED SESSION_ENDED @21 ended",
		}
		if diff := cmp.Diff(want, texts(res, 26)); diff != "" {
			t.Errorf("messages (-want +got), status %v:\n%s", res.Err, diff)
		}
	})
}

// TestOverlapVersionCrossing: a position of 26 remembers many lines, one of 27 only the last; a server of either kind
// takes up both, as often as they change, with nothing in between or with the live disorder of 26.
func TestOverlapVersionCrossing(t *testing.T) {
	var lines, want []string
	for i := range 24 {
		lines = append(lines, legacy(i, "message.appended"))
		want = append(want, fmt.Sprintf("event %d message.appended @%d", i, i+1))
	}
	older, newer := fakeeve.Fault{Version: 26}, fakeeve.Fault{Version: 27}
	serves := func(version int, more ...string) func(*fakeeve.Session) { // another deployment from here on
		return func(s *fakeeve.Session) {
			s.Update(func(spec *fakeeve.SessionSpec) { spec.Version = version })
			s.Append(more...)
		}
	}
	as := func(list []string, version string) []string { // how a cursor of another version shows
		out := slices.Clone(list)
		for i := range out {
			out[i] += version
		}
		return out
	}
	runCases(t, []contractCase{
		{name: "to and fro at leases, in silence", version: 26, open: true, lines: lines[:20], script: []fakeeve.Fault{older, older, newer, newer, older, newer, older, older}, calls: []call{{
			during: []moment{appends(330*time.Second, lines[20:]...)}, leave: 350 * time.Second, status: "LEFT",
			want: join(want[:20], "CAUGHT_UP 19 @20", "VERSION_CHANGED 27 @20", "VERSION_CHANGED 26 @20", "VERSION_CHANGED 27 @20", "VERSION_CHANGED 26 @20", want[20:]),
		}}},
		{name: "to and fro at leases, with an event each", version: 26, open: true, lines: lines[:20], script: []fakeeve.Fault{older, older, newer, older, newer, older}, calls: []call{{
			during: []moment{
				appends(70*time.Second, lines[20]), appends(130*time.Second, lines[21]), appends(190*time.Second, lines[22]), appends(250*time.Second, lines[23]),
			},
			leave: 260 * time.Second, status: "LEFT",
			want: join(want[:20], "CAUGHT_UP 19 @20", "VERSION_CHANGED 27 @20", as(want[20:21], " v27"), "VERSION_CHANGED 26 @21 v27", want[21:22],
				"VERSION_CHANGED 27 @22", as(want[22:23], " v27"), "VERSION_CHANGED 26 @23 v27", want[23:]),
		}}},
		{name: "to and fro at resumes", version: 26, open: true, lines: lines[:20], calls: []call{
			{stop: 20, want: want[:20]},
			{before: serves(27), stop: 2, want: []string{"VERSION_CHANGED 27 @20", "CAUGHT_UP 19 @20"}},
			{before: serves(26), stop: 1, want: []string{"CAUGHT_UP 19 @20"}},
			{before: serves(27, lines[20]), stop: 2, want: []string{"VERSION_CHANGED 27 @20", "event 20 message.appended @21 v27"}},
			{before: serves(26, lines[21]), stop: 2, want: []string{"VERSION_CHANGED 26 @21 v27", "event 21 message.appended @22"}},
		}},
		{name: "another history under the other version", version: 26, open: true, lines: lines[:20], rewritten: true, calls: []call{
			{stop: 20, want: want[:20]},
			{
				before: func(s *fakeeve.Session) { serves(27)(s); s.MemLog().Replace(14, legacy(99, "message.appended")) },
				want:   []string{"VERSION_CHANGED 27 @20"}, status: "FAILED_PRECONDITION CURSOR_DIVERGED line=19",
			},
		}},
	})
	for stop := 16; stop <= 24; stop++ {
		t.Run(fmt.Sprintf("in the disorder, stop=%d", stop), func(t *testing.T) {
			synctest.Test(t, disorder{
				n: 40, first: 10, stops: []int{stop}, late: func(line int64) int { return map[int64]int{15: 5, 17: 1}[line] },
				script: func(c fakeeve.Conn) fakeeve.Fault {
					if c.N >= 2 {
						return newer
					}
					return older
				},
			}.run)
		})
	}
}
