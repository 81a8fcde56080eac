package contract_test

import (
	"testing"
	"time"

	"github.com/evegateway/evegateway/cursor"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// until.tail is Eve's tail of the moment the read opened: no later connection moves it.
func TestBoundPinned(t *testing.T) {
	ended := join(pages(0, 4), "CAUGHT_UP 3 @4", "ENDED BOUND_REACHED @4")
	more := appends(100*time.Millisecond, numbered(9)[4:]...)
	slow := fakeeve.Fault{LineDelay: 80 * time.Millisecond}
	cut := func(line int64, how fakeeve.How) fakeeve.Fault {
		return fakeeve.Fault{LineDelay: 80 * time.Millisecond, CutAt: fakeeve.AtLine(line, 9), Cut: how}
	}
	runCases(t, []contractCase{
		{name: "while more is written", open: true, lines: numbered(4), script: []fakeeve.Fault{slow}, calls: []call{
			{ask: whole, during: []moment{more}, want: ended, reads: []string{"tail 0"}},
		}},
		{
			name: "over cuts", open: true, lines: numbered(4), script: []fakeeve.Fault{cut(2, fakeeve.Clean), cut(2, fakeeve.Abort), cut(3, fakeeve.Reset)},
			calls: []call{{ask: whole, during: []moment{more}, want: ended}},
		},
		{name: "cut right behind the last line", open: true, lines: numbered(4), script: []fakeeve.Fault{
			{LineDelay: 80 * time.Millisecond, CutAt: fakeeve.AtLine(3, int64(len(numbered(4)[3]))+1), Cut: fakeeve.Abort},
		}, calls: []call{{ask: whole, during: []moment{more}, want: ended, reads: []string{"tail 0"}}}},
		{name: "by a server whose tail index is only information", open: true, lines: numbered(4), quirks: fakeeve.Quirks{TailInformational: true, IgnoresFollow: true}, calls: []call{
			{ask: whole, during: []moment{more}, want: ended, reads: []string{"tail 0"}},
		}},
		{name: "by a server that knows no follow", open: true, lines: numbered(4), quirks: fakeeve.Quirks{IgnoresFollow: true}, calls: []call{
			{ask: whole, during: []moment{more}, want: ended, reads: []string{"tail 0"}},
		}},
		{name: "by such a server that has nothing more to say", open: true, lines: numbered(4), quirks: fakeeve.Quirks{TailInformational: true, IgnoresFollow: true}, calls: []call{
			{ask: whole, want: ended, reads: []string{"tail 0"}},
		}},
		{name: "by such a server, over a lease", open: true, lines: numbered(4), quirks: fakeeve.Quirks{TailInformational: true, IgnoresFollow: true}, script: []fakeeve.Fault{
			{LineDelay: 80 * time.Millisecond, Lease: 200 * time.Millisecond},
		}, calls: []call{{ask: whole, during: []moment{more}, want: ended}}},
		{name: "in a stream that is closed", lines: numbered(4), calls: []call{{ask: whole, want: ended, reads: []string{"tail 0"}}}},
		{name: "in a session that has ended", lines: []string{commit(0, "a"), commit(1, "session.ended")}, calls: []call{
			{ask: whole, want: []string{"fact 0.0 a @1", "fact 1.0 session.ended @2 ended", "CAUGHT_UP 1 @2 ended", "ENDED SESSION_ENDED @2 ended"}},
		}},
	})
}

// A following read of a server that does not bound goes on in the body it has.
func TestBoundlessServer(t *testing.T) {
	runCases(t, []contractCase{{
		name: "followed", open: true, lines: numbered(2), quirks: fakeeve.Quirks{TailInformational: true, IgnoresFollow: true}, calls: []call{{
			during: []moment{appends(30*time.Second, numbered(3)[2]), ends(90 * time.Second)},
			want:   join(pages(0, 2), "CAUGHT_UP 1 @2", pages(2, 3), "ENDED STREAM_CLOSED @3"),
			reads:  []string{"tail 0", "live 2 +1m0s"},
		}},
	}})
}

// Bounded reads with nothing to read, or nothing left to.
func TestBoundEmpty(t *testing.T) {
	runCases(t, []contractCase{
		{name: "of a session that has not begun", open: true, calls: []call{
			{ask: whole, want: []string{"CAUGHT_UP - @0", "ENDED BOUND_REACHED @0"}, reads: []string{"tail 0"}},
			{
				ask: restUntilTail, before: func(s *fakeeve.Session) { s.Append(numbered(1)...) },
				want: join(pages(0, 1), "CAUGHT_UP 0 @1", "ENDED BOUND_REACHED @1"),
			},
		}},
		{name: "of a stream that was closed empty", calls: []call{{ask: whole, want: []string{"CAUGHT_UP - @0", "ENDED BOUND_REACHED @0"}}}},
		{name: "from the tail", open: true, lines: numbered(3), calls: []call{
			{ask: whole, want: join(pages(0, 3), "CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3")},
			{ask: restUntilTail, want: []string{"CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3"}, reads: []string{"tail 2"}},
		}},
		{name: "from beyond it", open: true, lines: numbered(3), calls: []call{
			{
				ask:    func(*evev1.Cursor) *evev1.SubscribeRequest { return rig.UntilTail(rig.From(rig.At(session, 27, 5))) },
				status: "OUT_OF_RANGE CURSOR_AHEAD line=4 tail=2",
			},
		}},
	})
}

// The tail that Eve names is what binds, and lies as large as JavaScript counts; a body that never gets there is
// asked for again for the budget, and not without pause.
func TestBoundTailIndex(t *testing.T) {
	short := fakeeve.Fault{TailHeader: new("9")}
	runCases(t, []contractCase{
		{name: "smaller than what comes", open: true, lines: numbered(4), script: []fakeeve.Fault{{TailHeader: new("1")}}, calls: []call{
			{ask: whole, want: join(pages(0, 2), "CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2")},
		}},
		{name: "larger than what ever comes", open: true, lines: numbered(4), always: always(short), calls: []call{
			{ask: whole, want: pages(0, 4), status: "UNAVAILABLE AGENT_UNAVAILABLE retry=5s"},
		}},
		{name: "larger than what is left of the session", open: true, lines: numbered(4), script: []fakeeve.Fault{short}, calls: []call{
			{ask: whole, want: pages(0, 4), status: "UNAVAILABLE AGENT_UNAVAILABLE retry=5s"},
		}},
		{name: "larger than what is stored yet", open: true, lines: numbered(4), script: []fakeeve.Fault{{TailHeader: new("4")}}, calls: []call{{
			ask: whole, during: []moment{appends(time.Second, numbered(5)[4])},
			want: join(pages(0, 5), "CAUGHT_UP 4 @5", "ENDED BOUND_REACHED @5"),
		}}},
		{name: "of 53 bits", log: endlessLog{}, calls: []call{
			{
				ask: func(*evev1.Cursor) *evev1.SubscribeRequest {
					return rig.UntilTail(rig.From(rig.At(session, 27, cursor.MaxIndex-2)))
				},
				want: []string{
					"fact 9007199254740989.0 almanac.page @9007199254740990", "fact 9007199254740990.0 almanac.page @9007199254740991",
					"CAUGHT_UP 9007199254740990 @9007199254740991", "ENDED BOUND_REACHED @9007199254740991",
				},
				reads: []string{"tail 9007199254740988"},
			},
			{want: []string{"CAUGHT_UP 9007199254740990 @9007199254740991", "ENDED STREAM_CLOSED @9007199254740991"}, reads: []string{
				"tail 9007199254740990", "live 9007199254740990",
			}},
		}},
	})
}

// endlessLog is as long as a stream can be.
type endlessLog struct{}

func (endlessLog) Len() int64 { return cursor.MaxIndex }

func (endlessLog) Line(int64) []byte { return []byte(commit(0, "almanac.page")) }
