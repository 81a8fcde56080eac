package contract_test

import (
	"fmt"
	"testing"
	"time"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// trimmed is a log of n numbered lines of which the server skips those from <= i < to.
func trimmed(n int, from, to int64) *fakeeve.MemLog {
	l := fakeeve.NewMemLog(numbered(n)...)
	l.Trim(from, to)
	l.End()
	return l
}

// A jump forward is told with the range it covers, moves the cursor, and counts as consumed.
func TestPositionForward(t *testing.T) {
	closed := func(line int) []string { return []string{fmt.Sprintf("ENDED STREAM_CLOSED @%d", line)} }
	runCases(t, []contractCase{
		{name: "in the middle", log: trimmed(8, 2, 5), calls: []call{
			{want: join(pages(0, 2), "SOURCE_SKIPPED 2..5 @5?", pages(5, 8), "CAUGHT_UP 7 @8", closed(8)), reads: []string{"tail 0", "live 7"}},
		}},
		{name: "as the first thing of a response", log: trimmed(5, 0, 3), calls: []call{
			{want: join("SOURCE_SKIPPED 0..3 @3?", pages(3, 5), "CAUGHT_UP 4 @5", closed(5))},
		}},
		{name: "as the last thing of a bounded response", log: trimmed(6, 3, 6), calls: []call{
			{ask: whole, want: join(pages(0, 3), "SOURCE_SKIPPED 3..6 @6?", "CAUGHT_UP 5 @6?", "ENDED BOUND_REACHED @6?"), reads: []string{"tail 0"}},
		}},
		{name: "as the last thing of a closed stream", log: trimmed(6, 3, 6), calls: []call{
			{want: join(pages(0, 3), "SOURCE_SKIPPED 3..6 @6?", "CAUGHT_UP 5 @6?", "ENDED STREAM_CLOSED @6?")},
		}},
		{name: "over everything", log: trimmed(4, 0, 4), calls: []call{
			{ask: whole, want: join("SOURCE_SKIPPED 0..4 @4?", "CAUGHT_UP 3 @4?", "ENDED BOUND_REACHED @4?")},
		}},
		{name: "one after another", lines: numbered(3), rewritten: true, script: []fakeeve.Fault{
			{Verbatim: body(heartbeat, position(1), position(1), position(2), numbered(3)[2])},
		}, calls: []call{
			{ask: whole, want: join("SOURCE_SKIPPED 0..1 @1?", "SOURCE_SKIPPED 1..2 @2?", pages(2, 3), "CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3")},
		}},
		{name: "spelled as JavaScript reads it", lines: numbered(8), rewritten: true, script: []fakeeve.Fault{
			{Verbatim: body(heartbeat, position("2.0"), numbered(3)[2], position("50e-1"), numbered(6)[5], position("0.7E1"), numbered(8)[7])},
		}, calls: []call{{
			ask: whole,
			want: join("SOURCE_SKIPPED 0..2 @2?", pages(2, 3), "SOURCE_SKIPPED 3..5 @5?", pages(5, 6), "SOURCE_SKIPPED 6..7 @7?",
				pages(7, 8), "CAUGHT_UP 7 @8", "ENDED BOUND_REACHED @8"),
		}}},
		{name: "live", open: true, lines: numbered(2), calls: []call{{
			during: []moment{{time.Second, func(s *fakeeve.Session) {
				s.MemLog().AppendRaw(nil, nil, []byte(numbered(5)[4]))
				s.MemLog().End()
			}}},
			want: join(pages(0, 2), "CAUGHT_UP 1 @2", "SOURCE_SKIPPED 2..4 @4?", pages(4, 5), closed(5)),
		}}},
	})
}

// Going back or standing still is no news: the marker is ignored, and the numbering goes on.
func TestPositionIgnored(t *testing.T) {
	var cases []contractCase
	for _, next := range []any{0, 1, 2, 3, -1, -5, "3.0"} {
		cases = append(cases, contractCase{
			name: fmt.Sprint(next), lines: numbered(6), always: always(fakeeve.Fault{Rewrite: fakeeve.Insert(3, position(next))}),
			calls: []call{{want: join(pages(0, 6), "CAUGHT_UP 5 @6", "ENDED STREAM_CLOSED @6")}},
		})
	}
	runCases(t, cases)
}

// A marker that names no line is a line that cannot be read, and counts: the numbers stay those of the reference
// client (contract 2.2, row 4).
func TestPositionMalformed(t *testing.T) {
	var cases []contractCase
	for _, record := range []string{
		`{"$eve":"position"}`, position(`"7"`), position(1.5), position("9007199254740992"), position("1e400"), position("null"), position("[5]"),
		`{"$eve":"position","next":5,"next":true}`,
	} {
		lines := numbered(4)
		lines[1] = record
		cases = append(cases, contractCase{name: record, lines: lines, rewritten: true, calls: []call{
			{want: join(pages(0, 1), "unreadable 1 MALFORMED_POSITION @2", pages(2, 4), "CAUGHT_UP 3 @4", "ENDED STREAM_CLOSED @4")},
		}})
	}
	// Before 27 the record does not exist, and unknown transport records do not count.
	cases = append(cases, contractCase{
		name: "below version 27", version: 26, rewritten: true, lines: []string{legacy(0, "session.started"), legacy(1, "turn.started")},
		script: []fakeeve.Fault{{Rewrite: fakeeve.Insert(1, `{"$eve":"position","next":"7"}`)}},
		calls: []call{{ask: whole, want: []string{
			"event 0 session.started @1", "event 1 turn.started @2", "CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2",
		}}},
	})
	runCases(t, cases)
}

// A jump over the rest of a line that was begun names that rest.
func TestPositionInsideLine(t *testing.T) {
	lines := []string{commit(0, "a"), commit(1, "b", "c", "d"), commit(2, "e"), commit(3, "f")}
	trim := func(from, to int64) func(*fakeeve.Session) {
		return func(s *fakeeve.Session) { s.MemLog().Trim(from, to) }
	}
	begun := call{stop: 2, want: []string{"fact 0.0 a @1", "fact 1.0 b @1.1"}}
	last := []string{"fact 3.0 f @4", "CAUGHT_UP 3 @4", "ENDED STREAM_CLOSED @4"}
	runCases(t, []contractCase{
		{name: "over the rest of the line", lines: lines, rewritten: true, calls: []call{
			begun, {before: trim(1, 2), want: join("SOURCE_SKIPPED 1.1..2 @2?", "fact 2.0 e @3", last)},
		}},
		{name: "and over more", lines: lines, rewritten: true, calls: []call{
			begun, {before: trim(1, 3), want: join("SOURCE_SKIPPED 1.1..3 @3?", last)},
		}},
		{name: "over what stands before it, too", lines: lines, rewritten: true, calls: []call{
			begun, {before: trim(0, 3), want: join("SOURCE_SKIPPED 1.1..3 @3?", last)},
		}},
		{name: "over the line before it alone", lines: lines, rewritten: true, calls: []call{
			begun, {before: trim(0, 1), want: join("fact 1.1 c @1.2", "fact 1.2 d @2", "fact 2.0 e @3", last)},
		}},
		{name: "behind it", lines: lines, rewritten: true, calls: []call{
			begun, {before: trim(2, 3), want: join("fact 1.1 c @1.2", "fact 1.2 d @2", "SOURCE_SKIPPED 2..3 @3?", last)},
		}},
	})
}

// Coverage that was reported is kept, whatever happens right behind the report.
func TestPositionThenCut(t *testing.T) {
	var cases []contractCase
	for _, how := range []fakeeve.How{fakeeve.Clean, fakeeve.Abort, fakeeve.Reset} {
		cut := fakeeve.Fault{CutAt: fakeeve.AtLine(5, 0), Cut: how}
		cases = append(cases, contractCase{
			name: fmt.Sprintf("cut %d", how), log: trimmed(8, 2, 5), script: []fakeeve.Fault{cut, cut, cut}, calls: []call{
				{want: join(pages(0, 2), "SOURCE_SKIPPED 2..5 @5?", pages(5, 8), "CAUGHT_UP 7 @8", "ENDED STREAM_CLOSED @8")},
			},
		})
	}
	cases = append(cases,
		contractCase{name: "the client leaves", log: trimmed(8, 2, 5), calls: []call{
			{stop: 3, want: join(pages(0, 2), "SOURCE_SKIPPED 2..5 @5?")},
			{want: join(pages(5, 8), "CAUGHT_UP 7 @8", "ENDED STREAM_CLOSED @8"), reads: []string{"tail 4", "live 7"}},
		}},
		contractCase{name: "the lease ends", lines: numbered(8), rewritten: true, script: []fakeeve.Fault{
			{Verbatim: body(heartbeat, numbered(8)[0], position(5), leaseEnded)},
		}, calls: []call{
			{ask: whole, want: join(pages(0, 1), "SOURCE_SKIPPED 1..5 @5?", pages(5, 8), "CAUGHT_UP 7 @8", "ENDED BOUND_REACHED @8"), reads: []string{"tail 0", "tail 4"}},
		}},
		contractCase{name: "nothing follows for many leases", log: func() fakeeve.Log {
			l := fakeeve.NewMemLog(numbered(5)...)
			l.Trim(3, 5)
			return l
		}(), calls: []call{{
			during: []moment{{5*time.Minute + time.Second, func(s *fakeeve.Session) { s.Append(numbered(6)[5]); s.MemLog().End() }}},
			want:   join(pages(0, 3), "SOURCE_SKIPPED 3..5 @5?", "CAUGHT_UP 4 @5?", pages(5, 6), "ENDED STREAM_CLOSED @6"),
		}}},
	)
	runCases(t, cases)
}

// A jump over the bound of a read completes it, and is kept. What lies behind the tail is no place to start from.
func TestPositionOverBound(t *testing.T) {
	runCases(t, []contractCase{
		{name: "from the last line", lines: numbered(3), rewritten: true, script: []fakeeve.Fault{
			{Verbatim: body(heartbeat, numbered(3)[0], numbered(3)[1], numbered(3)[2], position(9))},
		}, calls: []call{
			{ask: whole, want: join(pages(0, 3), "CAUGHT_UP 2 @3", "SOURCE_SKIPPED 3..9 @9?", "ENDED BOUND_REACHED @9?"), reads: []string{"tail 0"}},
			{status: "OUT_OF_RANGE CURSOR_AHEAD line=8 tail=2"},
		}},
		{name: "from before it", lines: numbered(5), rewritten: true, script: []fakeeve.Fault{
			{Verbatim: body(heartbeat, numbered(3)[0], position(9))},
		}, calls: []call{
			{ask: whole, want: join(pages(0, 1), "SOURCE_SKIPPED 1..9 @9?", "CAUGHT_UP 4 @9?", "ENDED BOUND_REACHED @9?"), reads: []string{"tail 0"}},
		}},
		{name: "to exactly behind it", lines: numbered(5), rewritten: true, script: []fakeeve.Fault{
			{Verbatim: body(heartbeat, numbered(3)[0], position(5))},
		}, calls: []call{
			{ask: whole, want: join(pages(0, 1), "SOURCE_SKIPPED 1..5 @5?", "CAUGHT_UP 4 @5?", "ENDED BOUND_REACHED @5?"), reads: []string{"tail 0"}},
		}},
		{name: "to the last line", lines: numbered(5), rewritten: true, script: []fakeeve.Fault{
			{Verbatim: body(heartbeat, numbered(3)[0], position(4), numbered(5)[4])},
		}, calls: []call{
			{ask: whole, want: join(pages(0, 1), "SOURCE_SKIPPED 1..4 @4?", pages(4, 5), "CAUGHT_UP 4 @5", "ENDED BOUND_REACHED @5"), reads: []string{"tail 0"}},
		}},
	})
}

// The last jump of transcript 06 names line 60 behind line 53. Where the server stores as much, skipped lines
// included, the stream goes on there, to its end. Where its tail is 53, that is a place nothing is known of: whoever
// gets there, in a stream or by a cursor, is refused after two seconds, as everywhere beyond the tail.
func TestPositionBeyondTail(t *testing.T) {
	file, err := fakeeve.Transcript("06")
	if err != nil {
		t.Fatal(err)
	}
	stored := func(closed bool) *fakeeve.MemLog {
		l := fakeeve.NewMemLog()
		for i := range file.Tail + 1 {
			l.AppendRaw(file.Line(i))
		}
		if closed {
			l.End()
		}
		return l
	}
	first := []fakeeve.Fault{{Verbatim: append(body(heartbeat, position(file.Start)), file.Body...)}}
	seen := []string{
		"fact 47.0 turn.started @47.1", "fact 47.1 delivery.consumed @48", "fact 48.0 model.requested @48.1", "fact 48.1 model.started @49",
		"SOURCE_SKIPPED 49..52 @52?", "fact 52.0 content.completed @52.1", "fact 52.1 model.settled @53",
		"fact 53.0 turn.settled @53.1", "fact 53.1 delivery.settled @54", "CAUGHT_UP 53 @54", "SOURCE_SKIPPED 54..60 @60?",
	}
	refused := call{status: "OUT_OF_RANGE CURSOR_AHEAD line=59 tail=53", reads: []string{
		"tail 59", "tail 59 +250ms", "tail 59 +500ms", "tail 59 +750ms", "tail 59 +1s", "tail 59 +1.25s", "tail 59 +1.5s", "tail 59 +1.75s", "tail 59 +2s",
	}}
	runCases(t, []contractCase{
		{name: "stored", log: file, script: first, rewritten: true, calls: []call{
			{ask: at(47), want: join(seen[:9], "SOURCE_SKIPPED 54..60 @60?", "CAUGHT_UP 59 @60?", "ENDED STREAM_CLOSED @60?")},
			{want: []string{"CAUGHT_UP 59 @60?", "ENDED STREAM_CLOSED @60?"}, reads: []string{"tail 59", "live 59"}},
		}},
		{name: "not stored, closed", log: stored(true), script: first, calls: []call{
			{ask: at(47), want: seen, status: refused.status},
			refused,
		}},
		{name: "not stored, bounded", log: stored(true), script: first, calls: []call{
			{
				ask:  func(*evev1.Cursor) *evev1.SubscribeRequest { return rig.UntilTail(rig.From(rig.At(session, 27, 47))) },
				want: join(seen, "ENDED BOUND_REACHED @60?"), reads: []string{"tail 46"},
			},
			refused,
		}},
		{name: "not stored yet", log: stored(false), script: first, calls: []call{{
			ask: at(47),
			during: []moment{{time.Second, func(s *fakeeve.Session) {
				s.MemLog().AppendRaw(nil, nil, nil, nil, nil, nil, []byte(commit(60, "turn.started")))
				s.MemLog().End()
			}}},
			want: join(seen, "fact 60.0 turn.started @61", "ENDED STREAM_CLOSED @61"),
		}}},
	})
}
