package contract_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// slotLines have commits of several facts, known and unknown, in between and at the end, one that is none and one
// that has none.
func slotLines() []string {
	return []string{
		commit(0, "session.started", "delivery.admitted", "turn.started"),
		commit(1, "model.requested", "almanac.opened", "model.started"),
		commit(2, "content.completed", "almanac.closed"),
		commit(3, "almanac.turned", "almanac.tides"),
		delta("a"),
		`{"at":"2026-11-18T09:00:05.000Z","facts":[{"type":"usage.recorded","data":{}},17,{"type":"model.settled"}]}`,
		commit(6),
		"not json",
		commit(8, "turn.settled", "delivery.settled", "almanac.shelved"),
	}
}

// A reader that stops behind any record of a commit, as often as it likes, misses none and sees none twice.
func TestPartialLine(t *testing.T) {
	want := []string{
		"fact 0.0 session.started @0.1", "fact 0.1 delivery.admitted @0.2", "fact 0.2 turn.started @1",
		"fact 1.0 model.requested @1.1", "fact 1.1 almanac.opened @1.2", "fact 1.2 model.started @2",
		"fact 2.0 content.completed @2.1", "fact 2.1 almanac.closed @3",
		"fact 3.0 almanac.turned @3.1", "fact 3.1 almanac.tides @4",
		"progress 4 content.delta @5",
		"fact 5.0 usage.recorded @5.1", "fact 5.1  @5.2", "fact 5.2 model.settled @6",
		"unreadable 7 INVALID_JSON @8",
		"fact 8.0 turn.settled @8.1", "fact 8.1 delivery.settled @8.2", "fact 8.2 almanac.shelved @9",
		"CAUGHT_UP 8 @9",
	}
	ended := join(want, "ENDED STREAM_CLOSED @9")
	var cases []contractCase
	cases = append(cases,
		contractCase{name: "in one go", lines: slotLines(), calls: []call{{want: ended}}},
		contractCase{name: "one message at a time", lines: slotLines(), calls: resumeAfterEach(want)},
	)
	for n := 1; n < len(want); n++ {
		cases = append(cases, contractCase{name: "once, behind " + want[n-1], lines: slotLines(), calls: []call{
			{stop: n, want: want[:n]},
			{want: ended[n:]},
		}})
	}
	for _, step := range []int{2, 3, 5} {
		c := contractCase{name: "every few messages", lines: slotLines()}
		for chunk := range slices.Chunk(want, step) {
			c.calls = append(c.calls, call{stop: len(chunk), want: chunk})
		}
		cases = append(cases, c)
	}
	runCases(t, cases)
}

// A resume inside a line asks for the line before it, too, and reads on from its slot.
func TestPartialLineReads(t *testing.T) {
	runCases(t, []contractCase{
		{name: "inside the first line", lines: slotLines(), calls: []call{
			{stop: 1, want: []string{"fact 0.0 session.started @0.1"}},
			{stop: 1, want: []string{"fact 0.1 delivery.admitted @0.2"}, reads: []string{"tail 0"}},
		}},
		{name: "inside a later one", lines: slotLines(), calls: []call{
			{stop: 4, want: []string{
				"fact 0.0 session.started @0.1", "fact 0.1 delivery.admitted @0.2", "fact 0.2 turn.started @1", "fact 1.0 model.requested @1.1",
			}},
			{stop: 1, want: []string{"fact 1.1 almanac.opened @1.2"}, reads: []string{"tail 0"}},
		}},
		{name: "inside the last line, up to the tail", lines: []string{commit(0, "a"), commit(1, "b", "c")}, calls: []call{
			{stop: 2, want: []string{"fact 0.0 a @1", "fact 1.0 b @1.1"}},
			{ask: restUntilTail, want: []string{"fact 1.1 c @2", "CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2"}, reads: []string{"tail 0"}},
		}},
		{name: "inside the session's last line", lines: []string{commit(0, "turn.settled", "session.ended", "almanac.shelved")}, calls: []call{
			{stop: 2, want: []string{"fact 0.0 turn.settled @0.1", "fact 0.1 session.ended @0.2"}},
			{want: []string{"fact 0.2 almanac.shelved @1 ended", "CAUGHT_UP 0 @1 ended", "ENDED SESSION_ENDED @1 ended"}},
			{want: []string{"ENDED SESSION_ENDED @1 ended"}, reads: none()},
		}},
		{
			name: "inside a line, over a cut in it", lines: []string{commit(0, "a"), commit(1, "b", "c", "d")},
			script: []fakeeve.Fault{{}, {CutAt: fakeeve.AtLine(1, 20)}, {CutAt: fakeeve.AtLine(1, 60), Cut: fakeeve.Abort}},
			calls: []call{
				{stop: 2, want: []string{"fact 0.0 a @1", "fact 1.0 b @1.1"}},
				{ask: restUntilTail, want: []string{"fact 1.1 c @1.2", "fact 1.2 d @2", "CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2"}},
			},
		},
	})
}

// A slot that is the number of records of its line is the start of the next; one beyond is an error that moves
// nothing (api.md section 2; contract C5).
func TestPartialLineSlots(t *testing.T) {
	lines := []string{commit(0, "a", "b"), delta("c"), commit(2), "not json", commit(4, "d")}
	slot := func(line uint64, slot uint32) func(*evev1.Cursor) *evev1.SubscribeRequest {
		return func(*evev1.Cursor) *evev1.SubscribeRequest {
			c := rig.At(session, 27, line)
			c.StreamEventIndex = slot
			return rig.UntilTail(rig.From(c))
		}
	}
	const beyond = "INVALID_ARGUMENT CURSOR_INVALID field=cursor.stream_event_index"
	end := []string{"CAUGHT_UP 4 @5", "ENDED BOUND_REACHED @5"}
	from := func(n int) []string {
		return join([]string{"progress 1 content.delta @2", "unreadable 3 INVALID_JSON @4", "fact 4.0 d @5"}[n:], end)
	}
	runCases(t, []contractCase{
		{name: "as many as a commit has", lines: lines, calls: []call{{ask: slot(0, 2), want: from(0)}}},
		{name: "as many as a progress line has", lines: lines, calls: []call{{ask: slot(1, 1), want: from(1)}}},
		{name: "as many as an unreadable line has", lines: lines, calls: []call{{ask: slot(3, 1), want: from(2)}}},
		{name: "as many as the last line has", lines: lines, calls: []call{{ask: slot(4, 1), want: end}}},
		{name: "more than a commit has", lines: lines, calls: []call{{ask: slot(0, 3), status: beyond}}},
		{name: "more than a progress line has", lines: lines, calls: []call{{ask: slot(1, 2), status: beyond}}},
		{name: "more than an empty commit has", lines: lines, calls: []call{{ask: slot(2, 1), status: beyond}}},
		{name: "more than the last line has", lines: lines, calls: []call{{ask: slot(4, 2), status: beyond}}},
		{name: "in a line that is not there yet", lines: lines, calls: []call{{ask: slot(5, 1), status: "OUT_OF_RANGE CURSOR_AHEAD line=5 tail=4"}}},
	})
}

// A commit without facts moves the cursor, and the next message, whatever it is, shows it.
func TestEmptyCommitMoves(t *testing.T) {
	runCases(t, []contractCase{
		{name: "before a record", lines: []string{commit(0, "a"), commit(1), commit(2), commit(3, "b")}, calls: []call{{
			want: []string{"fact 0.0 a @1", "fact 3.0 b @4", "CAUGHT_UP 3 @4", "ENDED STREAM_CLOSED @4"},
		}}},
		{name: "at the tail", lines: []string{commit(0, "a"), commit(1), commit(2)}, calls: []call{
			{ask: whole, want: []string{"fact 0.0 a @1", "CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3"}},
			{ask: restUntilTail, want: []string{"CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3"}, reads: []string{"tail 2"}},
		}},
		{name: "alone", lines: []string{commit(0)}, calls: []call{{ask: whole, want: []string{"CAUGHT_UP 0 @1", "ENDED BOUND_REACHED @1"}}}},
	})
}

// A reader that leaves before it has consumed anything has moved nothing.
func TestStopBeforeAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := contractCase{lines: slotLines()}
		r := rig.New(t, c.options())
		defer r.Close()
		s := r.Eve.AddSession(session, c.spec())
		first := r.Subscribe(t.Context(), rig.FromStart(session), func(m *evev1.SubscribeResponse) bool {
			return m.GetCursor().GetStreamEventIndex() == 2
		})
		cursor := first.Last().GetCursor()
		r.Eve.Script(session, always(fakeeve.Fault{StallAt: fakeeve.AtByte(0), Stall: time.Minute}))
		for range 3 {
			res, left := subscribe(t, r, s, rig.From(cursor), &call{leave: time.Second})
			if !left || len(res.Messages) > 0 {
				t.Fatalf("left: %v, got %v (%v)", left, res.Messages, res.Err)
			}
		}
		r.Eve.Script(session, nil)
		rest := r.Subscribe(t.Context(), rig.UntilTail(rig.From(cursor)), nil)
		whole := r.Subscribe(t.Context(), rig.UntilTail(rig.FromStart(session)), nil)
		if diff := cmp.Diff(whole.Messages, append(first.Messages, rest.Messages...), protocmp.Transform()); diff != "" {
			t.Errorf("in one go and in two (-one +two):\n%s", diff)
		}
	})
}
