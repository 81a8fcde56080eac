package guarantee_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/guarantee"
)

var errCut = status.Error(codes.Unavailable, "cut")

// filters are some that leave out the first, the last, the middle, and most of a line.
func filters() []*evev1.Filter {
	return []*evev1.Filter{
		nil,
		{ExcludeTypes: []string{"session.started", "x.b"}},
		{ExcludeTypes: []string{"x.a", "turn.started", "content.delta"}},
		{IncludeTypes: []string{"turn.settled"}},
	}
}

// An honest gateway breaks nothing, wherever its client stops and with whatever filter it resumes.
func TestHonest(t *testing.T) {
	lines := whole()
	for i, first := range filters() {
		for j, second := range filters() {
			all := reading(lines, nil, first)
			for n := range all.Messages {
				from := all.Messages[n].GetCursor()
				// The messages behind the n-th came too, but the client did not handle them; it resumes there twice.
				for _, one := range []guarantee.Call{stop(all, n+1), all} {
					calls := []guarantee.Call{one, reading(lines, from, second), stop(reading(lines, from, first), 1), reading(lines, nil, nil)}
					for _, v := range guarantee.Check(sessionOf(lines), calls) {
						t.Errorf("filters %d and %d, stopped after message %d: %v", i, j, n, v)
					}
				}
			}
		}
	}
}

// pair is a session that was rewritten from a line on.
func pair(from int) (before, after guarantee.Lines, s guarantee.Session) {
	raw := func(salt int) []string {
		var out []string
		for i := range 6 {
			if i >= from {
				out = append(out, commit(10*salt+i, "x.a", "x.b"))
			} else {
				out = append(out, commit(i, "x.a", "x.b"))
			}
		}
		return out
	}
	before, after = linesOf(27, raw(1)...), linesOf(27, raw(2)...)
	s = sessionOf(after)
	s.Histories = []guarantee.Log{before, after}
	return before, after, s
}

// More that is as it should be: no violation.
func TestHonestToo(t *testing.T) {
	lines := whole()
	all := reading(lines, nil, nil)
	before, after, rewritten := pair(3)
	tail := &evev1.Until{Bound: &evev1.Until_Tail_{Tail: &evev1.Until_Tail{}}}
	turn := &evev1.Until{Bound: &evev1.Until_TurnEnd_{TurnEnd: &evev1.Until_TurnEnd{}}}
	behindTurn := at(all, 7, 0)
	bound := func(c guarantee.Call, n int) guarantee.Call {
		h := &honest{lines: lines, line: int64(c.Messages[n-1].GetCursor().GetStreamIndex())}
		h.ended(evev1.EndReason_END_REASON_BOUND_REACHED)
		return insert(stopAt(c, n), n, h.out[0])
	}
	// Without content, the first record of these two could be of either.
	long := linesOf(27, commit(0, "x.a", "x.b"), commit(1, "x.c"))
	short := linesOf(27, commit(1, "x.a"), commit(2, "x.d"))
	twice := sessionOf(short)
	twice.Histories = []guarantee.Log{long, short}
	bare := func(c guarantee.Call) guarantee.Call {
		c.Request.Payload = evev1.Payload_PAYLOAD_NONE
		for i := range c.Messages {
			c = change(c, i, func(m *evev1.SubscribeResponse) {
				if m.GetFact() != nil {
					m.GetFact().RecordJson = ""
				}
			})
		}
		return c
	}
	once := linesOf(27, commit(0, "x.a"), commit(1, "x.a", "x.b"), commit(2, "x.a"))
	trimmed := sessionOf(once)
	trimmed.Trimmed = func(i int64) bool { return i == 1 }
	some := reading(once, nil, nil)
	skipped := &honest{lines: once, line: 2}
	skipped.checkpoint(&evev1.Checkpoint{
		Reason:  evev1.CheckpointReason_CHECKPOINT_REASON_SOURCE_SKIPPED,
		Skipped: &evev1.SourceRange{FromLine: 1, FromRecordIndex: 1, ToLine: 2},
	})
	tests := []struct {
		name    string
		session guarantee.Session
		calls   []guarantee.Call
	}{
		{"cut", sessionOf(lines), []guarantee.Call{{Request: all.Request, Messages: all.Messages[:3], Err: errCut}}},
		{"heartbeats", sessionOf(lines), []guarantee.Call{insert(insert(all, 2, heartbeat(lines, 0, 2)), 1, heartbeat(lines, 0, 1))}},
		{"a heartbeat shows a commit of none", sessionOf(lines), []guarantee.Call{insert(all, at(all, 3, 0)+1, heartbeat(lines, 4, 0))}},
		{"the tail", sessionOf(lines), []guarantee.Call{until(bound(all, behindTurn+1), tail, 6)}},
		{"a tail behind the end of the session", sessionOf(lines), []guarantee.Call{until(all, tail, 8)}},
		{"a turn", sessionOf(lines), []guarantee.Call{until(bound(all, behindTurn+1), turn, 8)}},
		{"nothing but the end", sessionOf(lines), []guarantee.Call{all, reading(lines, all.Messages[len(all.Messages)-1].GetCursor(), nil)}},
		{"trimmed inside a line", trimmed, []guarantee.Call{{
			Request: some.Request, Messages: []*evev1.SubscribeResponse{some.Messages[0], some.Messages[1], skipped.out[0], some.Messages[3], some.Messages[4]},
		}}},
		{"rewritten behind the position", rewritten, []guarantee.Call{stop(reading(before, nil, nil), 6), reading(after, before3(before), nil)}},
		{"rewritten before the position", rewritten, []guarantee.Call{
			stop(reading(before, nil, nil), 7),
			failed(reading(before, reading(before, nil, nil).Messages[6].GetCursor(), nil), 0, "CURSOR_DIVERGED"),
		}},
		{"rewritten under a stream", rewritten, []guarantee.Call{failed(reading(before, nil, nil), 9, "CURSOR_DIVERGED")}},
		{"rewritten behind what a filter leaves out", rewritten, []guarantee.Call{
			stop(reading(before, nil, nil), 4),
			failed(reading(before, reading(before, nil, nil).Messages[3].GetCursor(), &evev1.Filter{IncludeTypes: []string{"y"}}), 0, "CURSOR_DIVERGED"),
		}},
		{"records that could be of two histories", twice, []guarantee.Call{bare(reading(short, nil, nil))}},
		{"a forged anchor", sessionOf(lines), []guarantee.Call{forged(failed(reading(lines, nil, nil), 0, "CURSOR_DIVERGED"))}},
		{"an omitted record", sessionOf(lines), []guarantee.Call{change(all, 0, func(m *evev1.SubscribeResponse) {
			m.GetFact().RecordJson, m.GetFact().Omitted = "", &evev1.Omitted{Size: 45}
		})}},
		{"from the tail", sessionOf(lines), []guarantee.Call{relative(lines, 7, 6), relative(lines, 7, 5)}},
		{"another error, whatever it is", sessionOf(lines), []guarantee.Call{failed(all, 4, "AGENT_UNAVAILABLE"), failed(
			reading(lines, all.Messages[3].GetCursor(), nil), 2, "LINE_TOO_LARGE")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, v := range guarantee.Check(tt.session, tt.calls) {
				t.Error(v)
			}
		})
	}
}

func before3(before guarantee.Lines) *evev1.Cursor { return (&honest{lines: before}).cursor(3, 0) }

func forged(c guarantee.Call) guarantee.Call {
	c.Forged = true
	return c
}

// stopAt is the call with n messages and no more, ended with OK.
func stopAt(c guarantee.Call, n int) guarantee.Call {
	c.Messages = slices.Clone(c.Messages[:n])
	return c
}

// Each broken promise is found, and no other is said to be.
func TestViolations(t *testing.T) {
	lines := whole()
	all := reading(lines, nil, nil)
	s := sessionOf(lines)
	before, after, rewritten := pair(3)
	tail := &evev1.Until{Bound: &evev1.Until_Tail_{Tail: &evev1.Until_Tail{}}}
	turn := &evev1.Until{Bound: &evev1.Until_TurnEnd_{TurnEnd: &evev1.Until_TurnEnd{}}}
	delivery := &evev1.Until{Bound: &evev1.Until_DeliveryId{DeliveryId: "d"}}
	cursorOf := func(m *evev1.SubscribeResponse) *evev1.Cursor { return m.GetCursor() }
	move := func(line, slot int64) func(*evev1.SubscribeResponse) {
		return func(m *evev1.SubscribeResponse) { m.Cursor = (&honest{lines: lines}).cursor(line, slot) }
	}
	bound := func(c guarantee.Call, n int, line, slot int64) guarantee.Call {
		h := &honest{lines: lines, line: line, slot: slot}
		h.ended(evev1.EndReason_END_REASON_BOUND_REACHED)
		return insert(stopAt(c, n), n, h.out[0])
	}
	last := len(all.Messages) - 1
	skip := at(all, 6, 0) // the report of lines 4 and 5
	swap := func(i int) guarantee.Call {
		c := all
		c.Messages = slices.Clone(all.Messages)
		c.Messages[i], c.Messages[i+1] = c.Messages[i+1], c.Messages[i]
		return c
	}
	held := all
	held.Held = 1001
	bounded := s
	bounded.MaxHeld = 1000
	isChild := s
	isChild.Child = &evev1.ChildStream{ParentSessionId: "wrun_0", CallId: "call_1"}
	open := s
	open.Closed = false
	behind := message(lines[8].Records[0], &evev1.SourceCoordinates{Line: 8, EndOfLine: true})
	behind.Cursor = (&honest{lines: lines}).cursor(9, 0)
	closed := reading(linesOf(27, commit(0, "x.a")), nil, nil)

	tests := []struct {
		name    string
		want    error
		session guarantee.Session
		calls   []guarantee.Call
	}{
		{"slots swapped", guarantee.ErrOrdered, s, []guarantee.Call{swap(1)}},
		{"lines swapped", guarantee.ErrOrdered, s, []guarantee.Call{swap(3)}},

		{"a record twice", guarantee.ErrUnique, s, []guarantee.Call{insert(all, 2, all.Messages[1])}},
		{"an unreadable line twice", guarantee.ErrUnique, s, []guarantee.Call{insert(all, 5, all.Messages[4])}},
		{"the line begun, again from its first slot", guarantee.ErrUnique, s, []guarantee.Call{stop(all, 2), {
			Request: reading(lines, cursorOf(all.Messages[1]), nil).Request, Messages: all.Messages,
		}}},
		{"the line before, again", guarantee.ErrUnique, s, []guarantee.Call{stop(all, 4), {
			Request: reading(lines, cursorOf(all.Messages[3]), nil).Request, Messages: all.Messages[3:],
		}}},

		{"a slot is missing", guarantee.ErrGapless, s, []guarantee.Call{drop(all, 1, 2)}},
		{"a line is missing", guarantee.ErrGapless, s, []guarantee.Call{drop(all, 3, 4)}},
		{"an unreadable line is missing", guarantee.ErrGapless, s, []guarantee.Call{drop(all, 4, 5)}},
		{"skipped lines are not told", guarantee.ErrGapless, s, []guarantee.Call{drop(all, skip, skip+1)}},
		{"what comes first after a resume is missing", guarantee.ErrGapless, s, []guarantee.Call{
			stop(all, 2), drop(reading(lines, cursorOf(all.Messages[1]), nil), 0, 1),
		}},
		{"skipped lines are told in part", guarantee.ErrGapless, s, []guarantee.Call{change(all, skip, func(m *evev1.SubscribeResponse) {
			m.GetCheckpoint().GetSkipped().FromLine = 5
		})}},
		{"OK without an end", guarantee.ErrGapless, s, []guarantee.Call{stopAt(all, 5)}},
		{"content is missing", guarantee.ErrGapless, s, []guarantee.Call{change(all, 0, func(m *evev1.SubscribeResponse) {
			m.GetFact().RecordJson = ""
		})}},
		{"lines are said to be skipped that are there", guarantee.ErrGapless, s, []guarantee.Call{{
			Request: all.Request, Left: true, Messages: []*evev1.SubscribeResponse{all.Messages[0], all.Messages[1], {
				Cursor: (&honest{lines: lines}).cursor(4, 0),
				Item: &evev1.SubscribeResponse_Checkpoint{Checkpoint: &evev1.Checkpoint{
					Reason:  evev1.CheckpointReason_CHECKPOINT_REASON_SOURCE_SKIPPED,
					Skipped: &evev1.SourceRange{FromLine: 0, FromRecordIndex: 2, ToLine: 4},
				}},
			}},
		}}},
		{"a cursor is refused as invalid", guarantee.ErrResumable, s, []guarantee.Call{
			stop(all, 4), failed(reading(lines, cursorOf(all.Messages[3]), nil), 0, "CURSOR_INVALID"),
		}},
		{"a cursor is refused as ahead", guarantee.ErrResumable, s, []guarantee.Call{
			stop(all, 4), failed(reading(lines, cursorOf(all.Messages[3]), nil), 0, "CURSOR_AHEAD"),
		}},
		{"a cursor is refused as of another history", guarantee.ErrResumable, s, []guarantee.Call{
			stop(all, 4), failed(reading(lines, cursorOf(all.Messages[3]), nil), 0, "CURSOR_DIVERGED"),
		}},
		{"a cursor is refused although what changed lies behind it", guarantee.ErrResumable, rewritten, []guarantee.Call{
			stop(reading(before, nil, nil), 6), failed(reading(after, before3(before), nil), 0, "CURSOR_DIVERGED"),
		}},
		{"a version change that was none", guarantee.ErrResumable, s, []guarantee.Call{
			stop(all, 2), failed(reading(lines, cursorOf(all.Messages[1]), nil), 0, "STREAM_VERSION_CHANGED"),
		}},
		{"a cursor that cannot be sent back", guarantee.ErrResumable, s, []guarantee.Call{change(all, 0, func(m *evev1.SubscribeResponse) {
			m.Cursor.StreamVersion = 26
		})}},

		{"on with another history", guarantee.ErrVerified, rewritten, []guarantee.Call{
			stop(reading(before, nil, nil), 7), reading(after, reading(before, nil, nil).Messages[6].GetCursor(), nil),
		}},
		{"another history under a stream", guarantee.ErrVerified, rewritten, []guarantee.Call{{
			Request: all.Request, Messages: append(slices.Clone(reading(before, nil, nil).Messages[:8]), reading(after, nil, nil).Messages[8:]...),
		}}},
		{"misnumbered", guarantee.ErrVerified, s, []guarantee.Call{stop(change(all, 0, func(m *evev1.SubscribeResponse) {
			m.GetFact().RecordJson, m.GetFact().Type = all.Messages[1].GetFact().GetRecordJson(), all.Messages[1].GetFact().GetType()
		}), 1)}},
		{"a forged anchor is believed", guarantee.ErrVerified, s, []guarantee.Call{forged(stop(all, 1))}},
		{"a forged anchor is something else", guarantee.ErrVerified, s, []guarantee.Call{forged(failed(all, 0, "CURSOR_INVALID"))}},
		{"no anchor", guarantee.ErrVerified, s, []guarantee.Call{change(all, 3, func(m *evev1.SubscribeResponse) { m.Cursor.Anchor = "" })}},

		{"an end inside a commit", guarantee.ErrAtomicEnd, s, []guarantee.Call{until(bound(all, skip+2, 6, 1), turn, 8)}},
		{"an end without the rest of its commit", guarantee.ErrAtomicEnd, s, []guarantee.Call{until(bound(all, skip+2, 7, 0), turn, 8)}},
		{"an end before the tail", guarantee.ErrAtomicEnd, s, []guarantee.Call{until(bound(all, 4, 2, 0), tail, 6)}},
		{"an end before the turn's", guarantee.ErrAtomicEnd, s, []guarantee.Call{until(bound(all, 4, 2, 0), turn, 6)}},
		{"a turn passed", guarantee.ErrAtomicEnd, s, []guarantee.Call{until(bound(all, last, 8, 0), turn, 6)}},
		{"a delivery that is not settled", guarantee.ErrAtomicEnd, s, []guarantee.Call{until(bound(all, 4, 2, 0), delivery, 6)}},
		{"a bound that was not asked for", guarantee.ErrAtomicEnd, s, []guarantee.Call{bound(all, 4, 2, 0)}},
		{"a session that has not ended", guarantee.ErrAtomicEnd, s, []guarantee.Call{change(stopAt(all, 5), 4, func(m *evev1.SubscribeResponse) {
			m.Item = all.Messages[last].GetItem()
			m.Cursor = all.Messages[3].GetCursor()
		})}},
		{"a stream that is not closed", guarantee.ErrAtomicEnd, func() guarantee.Session {
			s := sessionOf(linesOf(27, commit(0, "x.a")))
			s.Closed = false
			return s
		}(), []guarantee.Call{closed}},
		{"a stream with more in it", guarantee.ErrAtomicEnd, sessionOf(linesOf(27, commit(0, "x.a"), commit(1, "x.b"))), []guarantee.Call{closed}},
		{"an end without a reason", guarantee.ErrAtomicEnd, s, []guarantee.Call{change(all, last, func(m *evev1.SubscribeResponse) {
			m.GetCheckpoint().End = 0
		})}},
		{"behind the end of the response", guarantee.ErrAtomicEnd, s, []guarantee.Call{insert(all, last+1, heartbeat(lines, 8, 0))}},
		{"behind the end of the session", guarantee.ErrAtomicEnd, open, []guarantee.Call{insert(stop(all, last), last, behind)}},

		{"a checkpoint ahead", guarantee.ErrBookmarkable, s, []guarantee.Call{stop(insert(all, 1, heartbeat(lines, 1, 0)), 2)}},
		{"a checkpoint over skipped lines", guarantee.ErrBookmarkable, s, []guarantee.Call{stop(change(all, skip, func(m *evev1.SubscribeResponse) {
			m.GetCheckpoint().Reason = evev1.CheckpointReason_CHECKPOINT_REASON_HEARTBEAT
		}), skip+1)}},
		{"a checkpoint back", guarantee.ErrBookmarkable, s, []guarantee.Call{insert(all, 2, heartbeat(lines, 0, 1))}},
		{"a checkpoint beyond all", guarantee.ErrBookmarkable, s, []guarantee.Call{stop(insert(all, last, heartbeat(lines, 12, 0)), last+1)}},
		{"a record's cursor ahead", guarantee.ErrBookmarkable, s, []guarantee.Call{change(all, 0, move(0, 2))}},
		{"a record's cursor behind", guarantee.ErrBookmarkable, s, []guarantee.Call{change(all, 1, move(0, 1))}},
		{"a cursor inside a line that is consumed", guarantee.ErrBookmarkable, s, []guarantee.Call{change(all, 2, move(0, 3))}},
		{"an end of line that is none", guarantee.ErrBookmarkable, s, []guarantee.Call{change(all, 0, func(m *evev1.SubscribeResponse) {
			m.GetFact().GetSource().EndOfLine = true
		})}},
		{"caught up with what did not come", guarantee.ErrBookmarkable, s, []guarantee.Call{insert(all, 3, caughtUp(lines, 1, 0, 1))}},
		{"consumed lines are said to be skipped", guarantee.ErrBookmarkable, s, []guarantee.Call{change(insert(all, skip, heartbeat(lines, 4, 0)), skip+1, func(m *evev1.SubscribeResponse) {
			m.GetCheckpoint().GetSkipped().FromLine = 3
		})}},
		{"a range that is not the cursor's", guarantee.ErrBookmarkable, s, []guarantee.Call{change(all, skip, func(m *evev1.SubscribeResponse) {
			m.GetCheckpoint().GetSkipped().ToLine = 5
		})}},
		{"a start that was not asked for", guarantee.ErrBookmarkable, s, []guarantee.Call{insert(all, 0, relative(lines, 0, 0).Messages[0])}},

		{"a start before what was asked for", guarantee.ErrBookmarkable, s, []guarantee.Call{relative(lines, 6, 6)}},

		{"a large message", guarantee.ErrBounded, s, []guarantee.Call{func() guarantee.Call {
			c := reading(lines, nil, nil)
			c.Request.MaxMessageBytes = 50
			return stop(c, 1)
		}()}},
		{"hoarding", guarantee.ErrBounded, bounded, []guarantee.Call{held}},

		{"a cursor of another session", guarantee.ErrIsolated, s, []guarantee.Call{change(all, 0, func(m *evev1.SubscribeResponse) {
			m.Cursor.SessionId = "wrun_2"
		})}},
		{"a cursor of another agent", guarantee.ErrIsolated, s, []guarantee.Call{change(all, 0, func(m *evev1.SubscribeResponse) {
			m.Cursor.Agent = "other"
		})}},
		{"a cursor of a child", guarantee.ErrIsolated, isChild, []guarantee.Call{all}},
		{"a record of another session", guarantee.ErrIsolated, s, []guarantee.Call{change(all, 1, func(m *evev1.SubscribeResponse) {
			m.GetFact().RecordJson = `{"type":"x.a","data":{"m":"elsewhere"}}`
		})}},
		{"an unreadable line of another session", guarantee.ErrIsolated, s, []guarantee.Call{change(all, 4, func(m *evev1.SubscribeResponse) {
			m.GetUnreadableLine().Text = "my line"
		})}},
	}
	covered := map[error]bool{}
	for _, tt := range tests {
		covered[tt.want] = true
		t.Run(strings.Fields(tt.want.Error())[0]+" "+tt.name, func(t *testing.T) {
			only(t, tt.want, guarantee.Check(tt.session, tt.calls))
		})
	}
	for _, g := range guarantee.All() {
		if !covered[g] {
			t.Errorf("no test breaks %v", g)
		}
	}
}

// only fails unless there are violations, and all of them are of one guarantee.
func only(t *testing.T, want error, found []guarantee.Violation) {
	t.Helper()
	if len(found) == 0 {
		t.Errorf("nothing was found")
	}
	for _, v := range found {
		if !errors.Is(v.Guarantee, want) {
			t.Errorf("also found: %v", v)
		}
	}
}

// relative is a call for the end of the session, positioned at a line when the tail was another.
func relative(lines guarantee.Lines, line, tail int64) guarantee.Call {
	h := &honest{lines: lines, line: line}
	h.checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_POSITIONED})
	h.read()
	return guarantee.Call{
		Request:  &evev1.SubscribeRequest{SessionId: session, Start: &evev1.SubscribeRequest_Position{Position: evev1.Position_POSITION_TAIL}},
		Messages: h.out, Tail: tail, Known: true,
	}
}

func caughtUp(lines guarantee.Lines, line, slot int64, with uint64) *evev1.SubscribeResponse {
	m := heartbeat(lines, line, slot)
	m.GetCheckpoint().Reason, m.GetCheckpoint().CaughtUpLine = evev1.CheckpointReason_CHECKPOINT_REASON_CAUGHT_UP, &with
	return m
}

// A line over the gateway's limit is one item, whatever is in it, and nobody can say what stood there.
func TestTooLarge(t *testing.T) {
	lines := linesOf(27, commit(0, "x.a"), commit(1, "x.a", "x.b", "x.c"), commit(2, "session.ended"))
	s := sessionOf(lines)
	s.MaxLineBytes = 100
	all := reading(lines, nil, nil)
	large := &evev1.SubscribeResponse{
		Cursor: &evev1.Cursor{Agent: agent, SessionId: session, StreamVersion: 27, StreamIndex: 2},
		Item: &evev1.SubscribeResponse_UnreadableLine{UnreadableLine: &evev1.UnreadableLine{
			Source: &evev1.SourceCoordinates{Line: 1, EndOfLine: true}, Size: uint64(len(lines[1].Raw)), Truncated: true,
			Reason: evev1.UnreadableReason_UNREADABLE_REASON_TOO_LARGE,
		}},
	}
	messages := []*evev1.SubscribeResponse{all.Messages[0], large, all.Messages[4], all.Messages[5]}
	for _, v := range guarantee.Check(s, []guarantee.Call{{Request: all.Request, Messages: messages}}) {
		t.Error(v)
	}
	only(t, guarantee.ErrGapless, guarantee.Check(s, []guarantee.Call{{Request: all.Request, Messages: slices.Delete(slices.Clone(messages), 1, 2)}}))
}

// late is a session of events, and the call in which they come in this order; each cursor counts.
func lateCall(lines guarantee.Lines, from *evev1.Cursor, order ...int64) guarantee.Call {
	c := guarantee.Call{Request: &evev1.SubscribeRequest{SessionId: session}}
	if from != nil {
		c.Request.Start = &evev1.SubscribeRequest_Cursor{Cursor: from}
	}
	n := from.GetStreamIndex()
	for _, line := range order {
		m := message(lines[line].Records[0], &evev1.SourceCoordinates{StreamVersion: 26, Line: n, EndOfLine: true})
		m.Cursor = &evev1.Cursor{
			Agent: agent, SessionId: session, StreamVersion: 26, StreamIndex: n + 1, Anchor: fmt.Sprint(order),
			SessionEnded: isEnd(lines, line),
		}
		n++
		c.Messages = append(c.Messages, m)
	}
	c.Left = true
	if isEnd(lines, order[len(order)-1]) {
		h := &honest{lines: lines}
		h.ended(evev1.EndReason_END_REASON_SESSION_ENDED)
		h.out[0].Cursor = c.Messages[len(c.Messages)-1].GetCursor()
		c.Messages, c.Left = append(c.Messages, h.out[0]), false
	}
	return c
}

func TestLate(t *testing.T) {
	var raw []string
	for i := range 12 {
		raw = append(raw, event(i, "x.event"))
	}
	lines := linesOf(26, append(raw, event(12, "session.completed"))...)
	s := sessionOf(lines)
	s.Late = 3
	first := lateCall(lines, nil, 0, 1, 3, 4, 2, 5, 7)
	from := first.Messages[6].GetCursor()
	filtered := lateCall(lines, nil, 0, 1, 3, 4)
	filtered.Request.Filter = &evev1.Filter{ExcludeTypes: []string{"x.event"}}
	filtered.Messages = nil
	tests := []struct {
		name  string
		want  error
		calls []guarantee.Call
	}{
		{"in order", nil, []guarantee.Call{lateCall(lines, nil, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)}},
		{"late in one call", nil, []guarantee.Call{lateCall(lines, nil, 0, 1, 3, 4, 2, 5, 7, 8, 6, 9, 10, 11, 12)}},
		{"late over a resume", nil, []guarantee.Call{first, lateCall(lines, from, 6, 8, 9, 10, 11, 12)}},
		{"resumed twice", nil, []guarantee.Call{first, stop(lateCall(lines, from, 6, 8), 1), lateCall(lines, from, 6, 8, 9, 10, 11, 12)}},
		{"filtered, so that nobody can tell", nil, []guarantee.Call{filtered, lateCall(lines, nil, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)}},
		{"again over a resume", guarantee.ErrUnique, []guarantee.Call{first, lateCall(lines, from, 7, 6)}},
		{"again in one call", guarantee.ErrUnique, []guarantee.Call{lateCall(lines, nil, 0, 1, 1)}},
		{"too far ahead", guarantee.ErrOrdered, []guarantee.Call{lateCall(lines, nil, 0, 5)}},
		{"never came", guarantee.ErrGapless, []guarantee.Call{first, stop(lateCall(lines, from, 8, 9, 10, 11), 4)}},
		{"not before the end either", guarantee.ErrGapless, []guarantee.Call{first, lateCall(lines, from, 8, 9, 10, 11, 12)}},
		{"overtaken by the end", guarantee.ErrGapless, []guarantee.Call{lateCall(lines, nil, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12)}},
		{"of another session", guarantee.ErrIsolated, []guarantee.Call{change(first, 3, func(m *evev1.SubscribeResponse) {
			m.GetEvent().RecordJson = event(77, "x.event")
		})}},
		{"a cursor that stands still", guarantee.ErrBookmarkable, []guarantee.Call{change(stop(first, 3), 2, func(m *evev1.SubscribeResponse) {
			m.Cursor.StreamIndex--
		})}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found := guarantee.Check(s, tt.calls)
			if tt.want != nil {
				only(t, tt.want, found)
				return
			}
			for _, v := range found {
				t.Error(v)
			}
		})
	}
}

// The place of a violation is told.
func TestPlace(t *testing.T) {
	lines := whole()
	all := reading(lines, nil, nil)
	found := guarantee.Check(sessionOf(lines), []guarantee.Call{stop(all, 2), reading(lines, nil, nil), insert(all, 2, all.Messages[1])})
	if len(found) != 1 || found[0].Call != 2 || found[0].Message != 2 {
		t.Errorf("found %v, want one violation, at message 2 of call 2", found)
	}
	if text := found[0].String(); !strings.Contains(text, "call 2, message 2") || !strings.Contains(text, guarantee.ErrUnique.Error()) {
		t.Errorf("it says %q", text)
	}
}

// Entries of the scripted server are what the check compares with.
var _ guarantee.Log = guarantee.Lines([]fakeeve.Entry{})
