package contract_test

import (
	"testing"
	"time"

	"github.com/evegateway/evegateway/gateway"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

func fromTail(*evev1.Cursor) *evev1.SubscribeRequest {
	return &evev1.SubscribeRequest{SessionId: session, Start: &evev1.SubscribeRequest_Position{Position: evev1.Position_POSITION_TAIL}}
}

func fromLast(n uint32) func(*evev1.Cursor) *evev1.SubscribeRequest {
	return func(*evev1.Cursor) *evev1.SubscribeRequest { return lastLines(n) }
}

func untilTail(ask func(*evev1.Cursor) *evev1.SubscribeRequest) func(*evev1.Cursor) *evev1.SubscribeRequest {
	return func(last *evev1.Cursor) *evev1.SubscribeRequest { return rig.UntilTail(ask(last)) }
}

// A start that is relative to the tail is first told as an absolute cursor, as good as one that was read up to.
func TestRelativeStart(t *testing.T) {
	runCases(t, []contractCase{
		{name: "tail", open: true, lines: numbered(4), calls: []call{{
			ask: fromTail, during: []moment{appends(time.Second, numbered(5)[4]), ends(2 * time.Second)},
			want:  join("POSITIONED @4", "CAUGHT_UP 3 @4", pages(4, 5), "ENDED STREAM_CLOSED @5"),
			reads: []string{"tail -1", "live 3"},
		}}},
		{name: "tail, up to the tail", open: true, lines: numbered(4), calls: []call{
			{ask: untilTail(fromTail), want: []string{"POSITIONED @4", "CAUGHT_UP 3 @4", "ENDED BOUND_REACHED @4"}, reads: []string{"tail -1"}},
		}},
		{name: "last lines", open: true, lines: numbered(6), calls: []call{
			{ask: untilTail(fromLast(2)), want: join("POSITIONED @4", pages(4, 6), "CAUGHT_UP 5 @6", "ENDED BOUND_REACHED @6"), reads: []string{"tail -3"}},
		}},
		{name: "all of the lines", open: true, lines: numbered(3), calls: []call{
			{ask: untilTail(fromLast(3)), want: join("POSITIONED @0", pages(0, 3), "CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3"), reads: []string{"tail -4"}},
		}},
		{name: "more lines than there are", open: true, lines: numbered(3), calls: []call{
			{ask: untilTail(fromLast(1<<31 - 1)), want: join("POSITIONED @0", pages(0, 3), "CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3"), reads: []string{"tail -2147483648"}},
		}},
		{name: "tail of a session that has not begun", open: true, calls: []call{{
			ask: fromTail, during: []moment{appends(time.Second, numbered(1)...), ends(2 * time.Second)},
			want: join("POSITIONED @0", "CAUGHT_UP - @0", pages(0, 1), "ENDED STREAM_CLOSED @1"), reads: []string{"tail -1", "live 0"},
		}}},
		{name: "last lines of a session that has not begun", open: true, calls: []call{
			{ask: untilTail(fromLast(5)), want: []string{"POSITIONED @0", "CAUGHT_UP - @0", "ENDED BOUND_REACHED @0"}},
		}},
		{name: "tail of a session that has ended", lines: []string{commit(0, "a"), commit(1, "session.ended")}, calls: []call{
			{ask: fromTail, want: []string{"POSITIONED @2 ended", "CAUGHT_UP 1 @2 ended", "ENDED SESSION_ENDED @2 ended"}, reads: []string{"tail -1"}},
			{want: []string{"ENDED SESSION_ENDED @2 ended"}, reads: none()},
		}},
		{name: "last lines of a session that has ended", lines: []string{commit(0, "a"), commit(1, "session.ended")}, calls: []call{
			{ask: fromLast(1), want: []string{"POSITIONED @1", "fact 1.0 session.ended @2 ended", "CAUGHT_UP 1 @2 ended", "ENDED SESSION_ENDED @2 ended"}},
		}},
		{name: "tail of an older stream", version: 26, open: true, lines: []string{legacy(0, "session.started"), legacy(1, "turn.started")}, calls: []call{
			{ask: untilTail(fromTail), want: []string{"POSITIONED @2", "CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2"}},
			{
				ask: restUntilTail, before: func(s *fakeeve.Session) { s.Append(legacy(2, "turn.completed")) },
				want: []string{"event 2 turn.completed @3", "CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3"},
			},
		}},
		{name: "last lines of an older stream", version: 21, open: true, lines: []string{legacy(0, "session.started"), legacy(1, "turn.started"), legacy(2, "session.failed")}, calls: []call{
			{ask: fromLast(2), want: []string{"POSITIONED @1", "event 1 turn.started @2", "event 2 session.failed @3 ended", "CAUGHT_UP 2 @3 ended", "ENDED SESSION_ENDED @3 ended"}},
		}},
		{name: "over a cut before anything came", open: true, lines: numbered(6), script: []fakeeve.Fault{
			{CutAt: fakeeve.AtByte(0), Cut: fakeeve.Abort}, {CutAt: fakeeve.AtByte(30)}, {CutAt: fakeeve.AtLine(4, 5), Cut: fakeeve.Reset},
		}, calls: []call{{
			ask: untilTail(fromLast(2)), during: []moment{appends(200*time.Millisecond, numbered(9)[6:]...)},
			want: join("POSITIONED @4", pages(4, 6), "CAUGHT_UP 5 @6", "ENDED BOUND_REACHED @6"),
		}}},
		{name: "behind lines that are skipped", log: trimmed(6, 2, 4), calls: []call{
			{ask: untilTail(fromLast(2)), want: join("POSITIONED @4?", pages(4, 6), "CAUGHT_UP 5 @6", "ENDED BOUND_REACHED @6")},
		}},
		{name: "at lines that are skipped", log: trimmed(6, 4, 6), calls: []call{
			{ask: untilTail(fromLast(2)), want: join("POSITIONED @4", "SOURCE_SKIPPED 4..6 @6?", "CAUGHT_UP 5 @6?", "ENDED BOUND_REACHED @6?")},
			{ask: untilTail(fromTail), want: []string{"POSITIONED @6?", "CAUGHT_UP 5 @6?", "ENDED BOUND_REACHED @6?"}},
		}},
		{name: "behind a line over the limit", open: true, lines: []string{commit(0, "a"), commit(1, string(make([]byte, 2000)))}, config: func(c *gateway.Config) { c.MaxLineBytes = 1000 }, calls: []call{
			{ask: untilTail(fromTail), want: []string{"POSITIONED @2?", "CAUGHT_UP 1 @2?", "ENDED BOUND_REACHED @2?"}},
		}},
		{name: "in a stranded session", stranded: "0.79.0", open: true, lines: numbered(2), calls: []call{
			{ask: fromTail, want: []string{"POSITIONED @2", "CAUGHT_UP 1 @2"}, status: "FAILED_PRECONDITION SESSION_STRANDED code=session_stranded eve_version=0.79.0 status=409"},
		}},
		{name: "in an unknown session", always: always(answer(404)), calls: []call{
			{ask: fromTail, status: "NOT_FOUND SESSION_NOT_FOUND"},
		}},
	})
}

// The cursor of POSITIONED is verified like any other.
func TestRelativeStartVerified(t *testing.T) {
	replaced := func(line int64) func(*fakeeve.Session) {
		return func(s *fakeeve.Session) { s.MemLog().Replace(line, commit(59, "almanac.forged")) }
	}
	runCases(t, []contractCase{
		{name: "unchanged", open: true, lines: numbered(4), calls: []call{
			{ask: fromTail, stop: 1, want: []string{"POSITIONED @4"}},
			{ask: restUntilTail, want: []string{"CAUGHT_UP 3 @4", "ENDED BOUND_REACHED @4"}, reads: []string{"tail 3"}},
		}},
		{name: "changed", open: true, lines: numbered(4), calls: []call{
			{ask: fromTail, stop: 1, want: []string{"POSITIONED @4"}},
			{before: replaced(3), status: "FAILED_PRECONDITION CURSOR_DIVERGED line=3"},
		}},
		{name: "changed before the last lines", open: true, lines: numbered(4), calls: []call{
			{ask: fromLast(2), stop: 1, want: []string{"POSITIONED @2"}},
			{before: replaced(1), status: "FAILED_PRECONDITION CURSOR_DIVERGED line=1"},
		}},
		{name: "changed at a lease", open: true, lines: numbered(4), calls: []call{{
			ask: fromTail, during: []moment{{30 * time.Second, replaced(3)}},
			want: []string{"POSITIONED @4", "CAUGHT_UP 3 @4"}, status: "FAILED_PRECONDITION CURSOR_DIVERGED line=3",
		}}},
	})
}
