package contract_test

import (
	"testing"
	"testing/synctest"
	"time"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

func replace(i int64, line string) func(*fakeeve.Session) {
	return func(s *fakeeve.Session) { s.MemLog().Replace(i, line) }
}

// regrow drops the lines from n on and writes others.
func regrow(n int64, lines ...string) func(*fakeeve.Session) {
	return func(s *fakeeve.Session) { s.MemLog().Truncate(n); s.Append(lines...) }
}

// cut breaks the connection, then changes what is stored.
func cut(change func(*fakeeve.Session)) func(*fakeeve.Session) {
	return func(s *fakeeve.Session) { s.CutAll(fakeeve.Abort); change(s) }
}

func trim(from, to int64) func(*fakeeve.Session) {
	return func(s *fakeeve.Session) { s.MemLog().Trim(from, to) }
}

// A reader never goes on over another history than the one it has read, whatever makes it connect anew.
func TestHistoryVerified(t *testing.T) {
	other := commit(59, "almanac.forged")
	three := call{stop: 3, want: pages(0, 3)}
	diverged := "FAILED_PRECONDITION CURSOR_DIVERGED line=2"
	cases := []contractCase{
		{name: "unchanged", lines: numbered(5), calls: []call{
			three, {ask: restUntilTail, want: join(pages(3, 5), "CAUGHT_UP 4 @5", "ENDED BOUND_REACHED @5"), reads: []string{"tail 2"}},
		}},
		{name: "the last line read is another", lines: numbered(5), calls: []call{three, {before: replace(2, other), status: diverged, reads: []string{"tail 2"}}}},
		{name: "everything is another", lines: numbered(5), calls: []call{
			three, {before: regrow(0, other, other, other, other, other), status: diverged, reads: []string{"tail 2"}},
		}},
		{name: "restored from before the position, and written on", lines: numbered(5), calls: []call{
			three, {before: regrow(2, other, other), status: diverged, reads: []string{"tail 2"}},
		}},
		{name: "restored from before the position", lines: numbered(5), calls: []call{
			three, {before: regrow(2), status: "OUT_OF_RANGE CURSOR_AHEAD line=2 tail=1"},
		}},
		{name: "a line fell out before the position", lines: numbered(5), calls: []call{
			three, {before: regrow(1, numbered(5)[2:]...), status: diverged, reads: []string{"tail 2"}},
		}},
		{name: "a line came in before the position", lines: numbered(5), calls: []call{
			three, {before: regrow(0, join(other, numbered(5))...), status: diverged, reads: []string{"tail 2"}},
		}},
		{name: "gone", lines: numbered(5), calls: []call{three, {before: regrow(0), status: "OUT_OF_RANGE HISTORY_EXPIRED line=2 tail=-1"}}},
		{name: "what is ahead may change", open: true, lines: numbered(5), calls: []call{
			three, {before: regrow(3, other), ask: restUntilTail, want: []string{"fact 3.0 almanac.forged @4", "CAUGHT_UP 3 @4", "ENDED BOUND_REACHED @4"}},
		}},
		{name: "a line that was begun is another", lines: []string{commit(0, "a"), commit(1, "b", "c")}, calls: []call{
			{stop: 2, want: []string{"fact 0.0 a @1", "fact 1.0 b @1.1"}},
			{before: replace(1, commit(1, "b", "d")), status: "FAILED_PRECONDITION CURSOR_DIVERGED line=1", reads: []string{"tail 0"}},
		}},
		{name: "a line that was begun is gone", lines: []string{commit(0, "a"), commit(1, "b", "c")}, calls: []call{
			{stop: 2, want: []string{"fact 0.0 a @1", "fact 1.0 b @1.1"}},
			{before: regrow(1), status: "OUT_OF_RANGE CURSOR_AHEAD line=1 tail=0"},
		}},
		{name: "at a lease", open: true, lines: numbered(3), calls: []call{{
			during: []moment{{30 * time.Second, replace(2, other)}},
			want:   join(pages(0, 3), "CAUGHT_UP 2 @3"), status: diverged, reads: []string{"tail 0", "live 2", "live 2 +1m0s", "tail 2 +1m0.125s"},
		}}},
		{name: "at a retry", open: true, lines: numbered(3), calls: []call{{
			during: []moment{{30 * time.Second, cut(replace(2, other))}},
			want:   join(pages(0, 3), "CAUGHT_UP 2 @3"), status: diverged, reads: []string{"tail 0", "live 2", "live 2 +30.125s", "tail 2 +30.375s"},
		}}},
		{name: "in a bounded read", open: true, lines: numbered(5), script: []fakeeve.Fault{
			{LineDelay: time.Second, CutAt: fakeeve.AtLine(3, 5)},
		}, calls: []call{{
			ask: whole, during: []moment{{3500 * time.Millisecond, replace(2, other)}},
			want: pages(0, 3), status: diverged, reads: []string{"tail 0", "tail 2 +4.125s"},
		}}},
		{name: "restored at a lease, and nothing to send", open: true, lines: numbered(5), calls: []call{{
			during: []moment{{30 * time.Second, regrow(2)}},
			want:   join(pages(0, 5), "CAUGHT_UP 4 @5"), status: "OUT_OF_RANGE CURSOR_AHEAD line=4 tail=1",
		}}},
		{name: "restored under a stream that is closed then", open: true, lines: numbered(5), calls: []call{{
			during: []moment{{30 * time.Second, cut(func(s *fakeeve.Session) { s.MemLog().Truncate(2); s.MemLog().End() })}},
			want:   join(pages(0, 5), "CAUGHT_UP 4 @5"), status: "OUT_OF_RANGE CURSOR_AHEAD line=4 tail=1",
		}}},
		{name: "restored under a stream, and written past the position", open: true, lines: numbered(3), calls: []call{{
			during: []moment{{30 * time.Second, cut(regrow(2, other, other, other))}},
			want:   join(pages(0, 3), "CAUGHT_UP 2 @3"), status: diverged,
		}}},
		{name: "accepted by a client that clears the anchor", lines: numbered(5), calls: []call{
			three, {
				before: replace(2, other),
				ask: func(last *evev1.Cursor) *evev1.SubscribeRequest {
					last.Anchor = ""
					return rig.UntilTail(rig.From(last))
				},
				want: join(pages(3, 5), "CAUGHT_UP 4 @5", "ENDED BOUND_REACHED @5"),
			},
		}},
		{name: "refused by a build that cannot compare", lines: numbered(5), calls: []call{
			three, {
				ask: func(last *evev1.Cursor) *evev1.SubscribeRequest {
					last.Anchor = "9cAAAAAAAAAAAAAAAA"
					return rig.UntilTail(rig.From(last))
				},
				status: diverged,
			},
		}},
		{name: "up to version 26", version: 26, open: true, lines: []string{legacy(0, "a"), legacy(1, "b"), legacy(2, "c")}, calls: []call{
			{stop: 2, want: []string{"event 0 a @1", "event 1 b @2"}},
			{before: replace(1, legacy(9, "b")), status: "FAILED_PRECONDITION CURSOR_DIVERGED line=1"},
		}},
	}
	for i := range cases {
		cases[i].rewritten = true
	}
	runCases(t, cases)
}

// Another gateway verifies as the first one would have.
func TestHistoryVerifiedByAnotherGateway(t *testing.T) {
	for _, changed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := contractCase{lines: numbered(5)}
			r := rig.New(t, c.options())
			defer r.Close()
			s := r.Eve.AddSession(session, c.spec())
			first := r.Subscribe(t.Context(), rig.FromStart(session), func(m *evev1.SubscribeResponse) bool { return m.GetCursor().GetStreamIndex() == 3 })
			r.StopGateway()
			r.Start(c.options())
			want := "OK"
			if changed {
				s.MemLog().Replace(2, commit(59, "almanac.forged"))
				want = "FAILED_PRECONDITION CURSOR_DIVERGED line=2"
			}
			rest := r.Subscribe(t.Context(), rig.UntilTail(rig.From(first.Last().GetCursor())), nil)
			if got := statusOf(rest.Err); got != want {
				t.Errorf("changed %v: status %q, want %q", changed, got, want)
			}
			if n := len(rest.Records()); n != map[bool]int{false: 2, true: 0}[changed] {
				t.Errorf("changed %v: %d records", changed, n)
			}
		})
	}
}

// History that the server says it skipped cannot be compared: the reader goes on, and is verified again from the
// next line it reads.
func TestHistorySkipped(t *testing.T) {
	three := call{stop: 3, want: pages(0, 3)}
	rest := join(pages(3, 5), "CAUGHT_UP 4 @5", "ENDED BOUND_REACHED @5")
	runCases(t, []contractCase{
		{name: "the last line read", lines: numbered(5), rewritten: true, calls: []call{
			three, {before: trim(2, 3), ask: restUntilTail, want: rest, reads: []string{"tail 2"}},
		}},
		{name: "everything read", lines: numbered(5), rewritten: true, calls: []call{
			three, {before: trim(0, 3), ask: restUntilTail, want: rest, reads: []string{"tail 2"}},
		}},
		{name: "what comes next, too", lines: numbered(5), rewritten: true, calls: []call{
			three, {
				before: trim(1, 4), ask: restUntilTail,
				want: join("SOURCE_SKIPPED 3..4 @4?", pages(4, 5), "CAUGHT_UP 4 @5", "ENDED BOUND_REACHED @5"), reads: []string{"tail 2"},
			},
		}},
		{name: "all there is", lines: numbered(3), rewritten: true, calls: []call{
			three, {before: trim(0, 3), ask: restUntilTail, want: []string{"CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3"}},
		}},
		{name: "verified again behind it", lines: numbered(5), rewritten: true, calls: []call{
			three,
			{before: trim(2, 3), stop: 1, want: pages(3, 4)},
			{before: replace(3, commit(59, "almanac.forged")), status: "FAILED_PRECONDITION CURSOR_DIVERGED line=3"},
		}},
		{name: "at a lease", open: true, lines: numbered(3), rewritten: true, calls: []call{{
			during: []moment{{30 * time.Second, trim(2, 3)}, appends(90*time.Second, numbered(4)[3]), ends(91 * time.Second)},
			want:   join(pages(0, 3), "CAUGHT_UP 2 @3", pages(3, 4), "ENDED STREAM_CLOSED @4"),
		}}},
	})
}

// A line that says the same in other letters is the same line; one that does not is not. What a fact's data say is
// not part of what is compared, so that no build has to know every type.
func TestHistorySpelling(t *testing.T) {
	const same, other = "", "FAILED_PRECONDITION CURSOR_DIVERGED line=0"
	const (
		fact     = `{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"turn.started","data":{"a":1}},{"type":"almanac.page"}]}`
		text     = `{"progress":{"type":"content.delta","data":{"partId":"p","delta":"Grüße 🙂"}}}`
		snapshot = `{"progress":{"type":"call.progress","data":{"callId":"c","output":{"a":1,"b":[100,"x",null],"c":{"d":1,"e":2}}}}}`
		withID   = `{"type":"turn.started","data":{"a":1},"meta":{"id":"evt_1","at":"2026-11-18T09:00:00.000Z"}}`
		noID     = `{"type":"turn.started","data":{"a":1,"b":"x"},"meta":{"at":"2026-11-18T09:00:00.000Z"}}`
		garbage  = `not json`
	)
	tests := []struct {
		name     string
		version  int
		was, now string
		status   string
	}{
		{"commit: white space", 27, fact, ` { "at" : "2026-11-18T09:00:00.000Z" , "facts" : [ { "type" : "turn.started" } , { "type" : "almanac.page" } ] } `, same},
		{"commit: order of names", 27, fact, `{"facts":[{"data":{"a":1},"type":"turn.started"},{"type":"almanac.page"}],"at":"2026-11-18T09:00:00.000Z"}`, same},
		{"commit: escapes", 27, fact, `{"\u0061t":"2026-11-18T09:00:00\u002e000Z","facts":[{"type":"turn\u002estarted"},{"type":"almanac.\u0070age"}]}`, same},
		{"commit: a duplicate name, overruled", 27, fact, `{"at":"1","at":"2026-11-18T09:00:00.000Z","facts":[{"type":"x","type":"turn.started"},{"type":"almanac.page"}]}`, same},
		{"commit: new fields", 27, fact, `{"at":"2026-11-18T09:00:00.000Z","v":28,"facts":[{"type":"turn.started","scope":{"turnId":"t"}},{"type":"almanac.page","new":true}]}`, same},
		{"commit: other data", 27, fact, `{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"turn.started","data":{"a":2}},{"type":"almanac.page"}]}`, same},
		{"commit: another time", 27, fact, `{"at":"2026-11-18T09:00:00.001Z","facts":[{"type":"turn.started"},{"type":"almanac.page"}]}`, other},
		{"commit: another type", 27, fact, `{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"turn.started"},{"type":"almanac.leaf"}]}`, other},
		{"commit: another order", 27, fact, `{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"almanac.page"},{"type":"turn.started"}]}`, other},
		{"commit: a fact more", 27, fact, `{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"turn.started"},{"type":"almanac.page"},{}]}`, other},
		{"commit: names run together", 27, `{"at":"x","facts":[{"type":"ab"},{"type":"c"}]}`, `{"at":"x","facts":[{"type":"a"},{"type":"bc"}]}`, other},
		{"commit: now garbage", 27, fact, garbage, other},

		{"delta: escapes", 27, text, `{"progress":{"type":"content.delta","data":{"partId":"p","delta":"Gr\u00fc\u00DFe \ud83d\ude42"}}}`, same},
		{"delta: order of names", 27, text, `{"progress":{"data":{"delta":"Grüße 🙂","partId":"p"},"type":"content.delta"}}`, same},
		{"delta: other text", 27, text, `{"progress":{"type":"content.delta","data":{"partId":"p","delta":"Grüsse 🙂"}}}`, other},
		{"delta: another type", 27, text, `{"progress":{"type":"call.input","data":{"partId":"p","delta":"Grüße 🙂"}}}`, other},
		{"snapshot: numbers, order, escapes", 27, snapshot, `{"progress":{"type":"call.progress","data":{"output":{"c":{"e":2.0,"d":1},"b":[1e2,"\u0078",null],"a":1.0},"callId":"c"}}}`, same},
		{"snapshot: another number", 27, snapshot, `{"progress":{"type":"call.progress","data":{"callId":"c","output":{"a":1,"b":[101,"x",null],"c":{"d":1,"e":2}}}}}`, other},
		{"snapshot: another nesting", 27, snapshot, `{"progress":{"type":"call.progress","data":{"callId":"c","output":{"a":1,"b":[100,"x"],"c":{"d":1,"e":2}}}}}`, other},

		{"event: other spelling and data", 26, withID, `{"meta":{"id":"evt\u005f1"},"type":"turn.started","data":{}}`, same},
		{"event: another id", 26, withID, `{"type":"turn.started","data":{"a":1},"meta":{"id":"evt_2","at":"2026-11-18T09:00:00.000Z"}}`, other},
		{"event without id: other spelling", 26, noID, `{"data":{"b":"\u0078","a":1.0},"type":"turn.started","meta":{"at":"2026-11-18T09:00:00.000Z"}}`, same},
		{"event without id: other data", 26, noID, `{"type":"turn.started","data":{"a":1,"b":"y"},"meta":{"at":"2026-11-18T09:00:00.000Z"}}`, other},
		{"event without id: another type", 26, noID, `{"type":"turn.failed","data":{"a":1,"b":"x"},"meta":{"at":"2026-11-18T09:00:00.000Z"}}`, other},

		{"garbage: the same", 27, garbage, garbage, same},
		{"garbage: other", 27, garbage, `not JSON`, other},
	}
	var cases []contractCase
	for _, tt := range tests {
		c := contractCase{name: tt.name, version: tt.version, open: true, lines: []string{tt.was}, rewritten: true}
		c.calls = []call{{ask: whole}, {before: replace(0, tt.now), ask: restUntilTail, status: tt.status}}
		if tt.version == 27 { // before, storage that lags is given time
			c.calls[1].reads = []string{"tail 0"}
		}
		read := []string{"CAUGHT_UP 0 @1", "ENDED BOUND_REACHED @1"}
		c.calls[0].want = join(map[string][]string{
			fact:     {"fact 0.0 turn.started @0.1", "fact 0.1 almanac.page @1"},
			text:     {"progress 0 content.delta @1"},
			snapshot: {"progress 0 call.progress @1"},
			withID:   {"event 0 turn.started @1"},
			noID:     {"event 0 turn.started @1"},
			garbage:  {"unreadable 0 INVALID_JSON @1"},
			`{"at":"x","facts":[{"type":"ab"},{"type":"c"}]}`: {"fact 0.0 ab @0.1", "fact 0.1 c @1"},
		}[tt.was], read)
		if tt.status == same {
			c.calls[1].want = read
		}
		cases = append(cases, c)
	}
	runCases(t, cases)
}
