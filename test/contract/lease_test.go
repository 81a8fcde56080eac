package contract_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

func appends(after time.Duration, lines ...string) moment {
	return moment{after, func(s *fakeeve.Session) { s.Append(lines...) }}
}

// ends closes the stored stream.
func ends(after time.Duration) moment {
	return moment{after, func(s *fakeeve.Session) { s.MemLog().End() }}
}

// A lease that ends is no event: the next one is taken at once, as often as it takes, at no cost to any budget.
func TestLease(t *testing.T) {
	runCases(t, []contractCase{
		{name: "idle", open: true, lines: numbered(2), calls: []call{{
			leave: 5*time.Minute + 30*time.Second,
			want:  join(pages(0, 2), "CAUGHT_UP 1 @2"),
			reads: []string{
				"tail 0", "live 1", "live 1 +1m0s", "live 1 +2m0s", "live 1 +3m0s", "live 1 +4m0s", "live 1 +5m0s",
			},
		}}},
		{name: "before anything happened", open: true, calls: []call{{
			leave: 2*time.Minute + 30*time.Second,
			want:  []string{"CAUGHT_UP - @0"},
			reads: []string{"tail 0", "live 0", "live 0 +1m0s", "live 0 +2m0s"},
		}}},
		{name: "nothing for many, then something", open: true, lines: numbered(1), calls: []call{{
			during: []moment{appends(40*time.Minute+time.Second, numbered(2)[1]), ends(41 * time.Minute)},
			want:   join(pages(0, 1), "CAUGHT_UP 0 @1", "fact 1.0 almanac.page @2 +40m1s", "ENDED STREAM_CLOSED @2 +41m0s"),
			timed:  true,
		}}},
		{name: "in the middle of deltas", open: true, lines: numbered(1), calls: []call{{
			during: []moment{
				appends(50*time.Second, delta("a")), appends(59*time.Second, delta("b"), delta("c")), appends(60*time.Second, delta("d")),
				appends(61*time.Second, delta("e")), ends(125 * time.Second),
			},
			want: join(pages(0, 1), "CAUGHT_UP 0 @1", "progress 1 content.delta @2", "progress 2 content.delta @3", "progress 3 content.delta @4",
				"progress 4 content.delta @5", "progress 5 content.delta @6", "ENDED STREAM_CLOSED @6"),
		}}},
		{name: "in a bounded read, whose bound stays", open: true, lines: numbered(6), always: always(fakeeve.Fault{LineDelay: 4 * time.Second, Lease: 10 * time.Second}), calls: []call{{
			ask:    whole,
			during: []moment{appends(15*time.Second, numbered(8)[6:]...)},
			want:   join(pages(0, 6), "CAUGHT_UP 5 @6", "ENDED BOUND_REACHED @6"),
			reads:  []string{"tail 0", "tail 1 +10s", "tail 2 +20s", "tail 3 +30s", "tail 4 +40s"},
		}}},
		{name: "before the first line of a response", open: true, lines: numbered(1), script: []fakeeve.Fault{
			{StallAt: fakeeve.AtLine(0, 0), Stall: 20 * time.Second, Lease: 10 * time.Second},
		}, calls: []call{{ask: whole, want: join(pages(0, 1), "CAUGHT_UP 0 @1", "ENDED BOUND_REACHED @1")}}},
		{name: "a line behind the record", lines: numbered(3), script: []fakeeve.Fault{
			{Verbatim: body(heartbeat, numbered(1)[0], leaseEnded, numbered(2)[1])},
		}, calls: []call{{ask: whole, want: join(pages(0, 3), "CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3"), reads: []string{"tail 0", "tail 1"}}}},
		{name: "a record with more in it", open: true, lines: numbered(1), script: []fakeeve.Fault{
			{}, {Verbatim: body(heartbeat, numbered(1)[0], `{"$eve":"stream.lease-ended","version":"x","after":60}`)},
		}, calls: []call{{
			leave: time.Second, want: join(pages(0, 1), "CAUGHT_UP 0 @1"), reads: []string{"tail 0", "live 0", "live 0"},
		}}},
	})
}

// Leases that end as soon as they begin are a fault, not a reason to ask without pause.
func TestLeaseStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := contractCase{lines: numbered(2), open: true}
		r := rig.New(t, c.options())
		defer r.Close()
		s := r.Eve.AddSession(session, c.spec())
		r.Eve.Script(session, limited(t, always(fakeeve.Fault{Lease: 1})))
		res, left := subscribe(t, r, s, rig.FromStart(session), &call{leave: time.Minute})
		if !left || len(res.Records()) > 2 {
			t.Errorf("left: %v, got %v (%v)", left, res.Messages, res.Err)
		}
		if n := len(r.Eve.StreamRequests(session)); n > 40 {
			t.Errorf("%d requests in a minute", n)
		}
	})
}

// Up to version 26 a lease is negotiated, and its record has a version of its own.
func TestLeaseLegacy(t *testing.T) {
	lines := []string{legacy(0, "session.started"), legacy(1, "turn.started")}
	seen := []string{"event 0 session.started @1", "event 1 turn.started @2", "CAUGHT_UP 1 @2"}
	later := moment{3*time.Minute + time.Second, func(s *fakeeve.Session) { s.Append(legacy(2, "session.completed")) }}
	end := []string{"event 2 session.completed @3 ended", "ENDED SESSION_ENDED @3 ended"}
	verbatim := func(record string) []fakeeve.Fault {
		return []fakeeve.Fault{{}, {Verbatim: body("", lines[0], lines[1], record)}}
	}
	cases := []contractCase{
		{name: "malformed: no version", version: 26, open: true, lines: lines, script: verbatim(`{"$eve":"stream.lease-ended"}`), calls: []call{
			{leave: time.Second, want: seen, reads: []string{"tail 0", "live 0", "live 0 +125ms"}},
		}},
		{name: "malformed: another version", version: 26, open: true, lines: lines, script: verbatim(`{"$eve":"stream.lease-ended","version":2}`), calls: []call{
			{leave: time.Second, want: seen, reads: []string{"tail 0", "live 0", "live 0 +125ms"}},
		}},
		{name: "not negotiated: silence, and reconnects", version: 26, open: true, lines: lines, always: always(fakeeve.Fault{Lease: -1, Heartbeat: -1}), calls: []call{
			{during: []moment{later}, want: join(seen, end)},
		}},
		{name: "not negotiated: a record nobody asked for", version: 26, open: true, lines: lines, script: verbatim(`{"$eve":"stream.lease-ended","version":1}`), calls: []call{
			{leave: time.Second, want: seen, reads: []string{"tail 0", "live 0", "live 0"}},
		}},
	}
	for v := 21; v <= 26; v++ {
		cases = append(cases, contractCase{name: fmt.Sprint("negotiated at ", v), version: v, open: true, lines: lines, calls: []call{{
			during: []moment{later}, want: join(seen, end),
			reads: []string{"tail 0", "live 0", "live 0 +1m0s", "live 0 +2m0s", "live 0 +3m0s", "tail 0 +3m1.375s"},
		}}})
	}
	runCases(t, cases)
}

// Every request from an absolute line asks for a lease; Eve is never asked in spellings it refuses (contract O8).
func TestStreamRequests(t *testing.T) {
	for _, version := range []int{21, 26, 27} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := contractCase{version: version, open: true, lines: []string{legacy(0, "a"), legacy(1, "b")}}
				r := rig.New(t, c.options())
				defer r.Close()
				s := r.Eve.AddSession(session, c.spec())
				subscribe(t, r, s, rig.FromStart(session), &call{leave: 90 * time.Second})
				last := &evev1.SubscribeRequest{SessionId: session, Start: &evev1.SubscribeRequest_LastLines{LastLines: 1}}
				subscribe(t, r, s, last, &call{leave: 90 * time.Second})
				for _, q := range r.Eve.StreamRequests(session) {
					start := q.Query.Get("startIndex")
					if q.Query.Has("startIndex") && (start == "" || start == "0") {
						t.Errorf("startIndex %q is sent", start)
					}
					relative := start != "" && start[0] == '-'
					if got := q.Query.Get("streamControlVersion"); got != map[bool]string{true: "", false: "1"}[relative] {
						t.Errorf("start %q with streamControlVersion %q", start, got)
					}
					if bounded := q.Query.Get("includeTailIndex") == "1"; bounded != (q.Query.Get("follow") == "false") {
						t.Errorf("includeTailIndex and follow do not agree: %v", q.Query)
					}
					for name, want := range map[string]string{
						"Accept-Encoding": "identity", "Accept": "application/x-ndjson", "Cache-Control": "no-store",
					} {
						if got := q.Header.Get(name); got != want {
							t.Errorf("header %s is %q, want %q", name, got, want)
						}
					}
				}
			})
		})
	}
}

// Silence without heartbeats is a cut; silence with them is a session that has nothing to say.
func TestSilence(t *testing.T) {
	stalled := fakeeve.Fault{StallAt: fakeeve.AtLine(1, 10), Stall: 10 * time.Minute}
	runCases(t, []contractCase{
		{name: "inside a line", lines: numbered(3), script: []fakeeve.Fault{stalled}, calls: []call{
			{ask: whole, timed: true, want: []string{
				"fact 0.0 almanac.page @1", "fact 1.0 almanac.page @2 +30.125s", "fact 2.0 almanac.page @3 +30.125s", "CAUGHT_UP 2 @3 +30.125s", "ENDED BOUND_REACHED @3 +30.125s",
			}, reads: []string{"tail 0", "tail 0 +30.125s"}},
		}},
		{name: "of a live body, half open", open: true, lines: numbered(2), script: []fakeeve.Fault{{}, {StallAt: fakeeve.AtLine(1, int64(len(numbered(2)[1]))+1), Stall: fakeeve.Forever}}, calls: []call{{
			during: []moment{appends(20*time.Second, numbered(3)[2]), ends(50 * time.Second)},
			want:   join(pages(0, 2), "CAUGHT_UP 1 @2", "fact 2.0 almanac.page @3 +30.125s", "ENDED STREAM_CLOSED @3 +50s"),
			timed:  true,
		}}},
	})
}
