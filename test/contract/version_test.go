package contract_test

import (
	"fmt"
	"testing"
	"time"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// upgrade makes the session one of another stream version from the next connection on.
func upgrade(version int, lines ...string) func(*fakeeve.Session) {
	return func(s *fakeeve.Session) {
		s.Update(func(spec *fakeeve.SessionSpec) { spec.Version = version })
		s.Append(lines...)
		s.CutAll(fakeeve.Abort)
	}
}

// Each row of contract 6.4 has its answer; none resets a position or guesses one. What a record is decides how it is
// read, the header only which server answers. The cursor behind a commit says 27, whoever sent it: only a line of 27
// can be resumed inside.
func TestVersionCrossing(t *testing.T) {
	old := []string{legacy(0, "session.started"), legacy(1, "turn.started")}
	oldSeen := []string{"event 0 session.started @1", "event 1 turn.started @2"}
	later := commit(2, "turn.started", "model.requested")
	runCases(t, []contractCase{
		{name: "A: 27 answers with its lines", open: true, lines: []string{later}, calls: []call{
			{ask: whole, want: []string{"fact 0.0 turn.started @0.1", "fact 0.1 model.requested @1", "CAUGHT_UP 0 @1", "ENDED BOUND_REACHED @1"}},
		}},
		{name: "B: 26 answers with its events", version: 26, open: true, lines: old, calls: []call{
			{ask: whole, want: join(oldSeen, "CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2")},
		}},
		{name: "C: 27 answers with events", open: true, lines: old, calls: []call{
			{ask: whole, want: join(oldSeen, "CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2")},
			{ask: restUntilTail, want: []string{"CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2"}, reads: []string{"tail 0"}},
		}},
		{name: "C: 27 answers with both, and the end of an older session", lines: join(old, later, legacy(3, "session.completed"), commit(4, "never")), calls: []call{
			{want: join(oldSeen, "fact 2.0 turn.started @2.1", "fact 2.1 model.requested @3", "event 3 session.completed @4 ended", "ENDED SESSION_ENDED @4 ended")},
		}},
		{name: "C: an event without meta is none", lines: []string{`{"type":"session.started","data":{}}`}, calls: []call{
			{want: []string{"unreadable 0 UNKNOWN_SHAPE @1", "CAUGHT_UP 0 @1", "ENDED STREAM_CLOSED @1"}},
		}},
		{name: "D: 26 becomes 27 between two reads", version: 26, open: true, lines: old, calls: []call{
			{ask: whole, want: join(oldSeen, "CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2")},
			{
				before: upgrade(27, later), ask: restUntilTail,
				want: []string{
					"VERSION_CHANGED 27 @2", "fact 2.0 turn.started @2.1 v27", "fact 2.1 model.requested @3 v27", "CAUGHT_UP 2 @3 v27", "ENDED BOUND_REACHED @3 v27",
				},
			},
			{ask: restUntilTail, want: []string{"CAUGHT_UP 2 @3 v27", "ENDED BOUND_REACHED @3 v27"}},
		}},
		{name: "D: 26 becomes 27 under a stream", version: 26, open: true, lines: old, calls: []call{{
			during: []moment{{time.Second, upgrade(27, later, legacy(3, "session.failed"))}},
			want: join(oldSeen, "CAUGHT_UP 1 @2", "VERSION_CHANGED 27 @2", "fact 2.0 turn.started @2.1 v27", "fact 2.1 model.requested @3 v27",
				"event 3 session.failed @4 v27 ended", "ENDED SESSION_ENDED @4 v27 ended"),
		}}},
		{name: "E: 27 becomes 26 between two reads", open: true, lines: []string{later}, calls: []call{
			{ask: whole, want: []string{"fact 0.0 turn.started @0.1", "fact 0.1 model.requested @1", "CAUGHT_UP 0 @1", "ENDED BOUND_REACHED @1"}},
			{
				before: upgrade(26, commit(1, "a", "b"), delta("c"), legacy(3, "turn.completed")), ask: restUntilTail,
				want: []string{
					"VERSION_CHANGED 26 @1", "fact 1.0 a @1.1", "fact 1.1 b @2", "progress 2 content.delta @3 v26", "event 3 turn.completed @4 v26",
					"CAUGHT_UP 3 @4 v26", "ENDED BOUND_REACHED @4 v26",
				},
			},
		}},
		{name: "E: 27 becomes 26 under a stream", open: true, lines: []string{later}, calls: []call{{
			during: []moment{{time.Second, upgrade(26, legacy(1, "session.completed"))}},
			want: []string{
				"fact 0.0 turn.started @0.1", "fact 0.1 model.requested @1", "CAUGHT_UP 0 @1", "VERSION_CHANGED 26 @1",
				"event 1 session.completed @2 v26 ended", "ENDED SESSION_ENDED @2 v26 ended",
			},
		}}},
		{name: "there and back", open: true, lines: []string{later}, calls: []call{{
			during: []moment{
				{time.Second, upgrade(26, legacy(1, "a"))}, {20 * time.Second, upgrade(27, commit(2, "b"))}, ends(40 * time.Second),
			},
			want: []string{
				"fact 0.0 turn.started @0.1", "fact 0.1 model.requested @1", "CAUGHT_UP 0 @1", "VERSION_CHANGED 26 @1", "event 1 a @2 v26",
				"VERSION_CHANGED 27 @2 v26", "fact 2.0 b @3", "ENDED STREAM_CLOSED @3",
			},
		}}},
		{name: "among 21 to 26: no matter", version: 21, open: true, lines: old, calls: []call{
			{ask: whole, want: join(oldSeen, "CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2")},
			{
				before: upgrade(24, legacy(2, "turn.completed")), ask: restUntilTail,
				want: []string{"event 2 turn.completed @3 v24", "CAUGHT_UP 2 @3 v24", "ENDED BOUND_REACHED @3 v24"},
			},
			{
				before: upgrade(26, legacy(3, "session.completed")),
				want:   []string{"event 3 session.completed @4 v26 ended", "CAUGHT_UP 3 @4 v26 ended", "ENDED SESSION_ENDED @4 v26 ended"},
			},
		}},
	})
}

// A position inside a line has no meaning to a server before 27: it is refused, and works again with one of 27.
func TestVersionInsideLine(t *testing.T) {
	lines := []string{commit(0, "a"), commit(1, "b", "c")}
	begun := call{stop: 2, want: []string{"fact 0.0 a @1", "fact 1.0 b @1.1"}}
	const changed = "FAILED_PRECONDITION STREAM_VERSION_CHANGED stream_version="
	rest := []string{"fact 1.1 c @2", "CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2"}
	var cases []contractCase
	for _, v := range []int{21, 26} {
		cases = append(cases, contractCase{name: fmt.Sprint("answered by ", v), open: true, lines: lines, calls: []call{
			begun,
			{before: upgrade(v), status: changed + fmt.Sprint(v), reads: []string{"tail 0"}},
			{before: upgrade(27), ask: restUntilTail, want: rest},
		}})
	}
	cases = append(cases,
		contractCase{name: "answered by 26 with a commit, begun and refused", version: 26, open: true, lines: lines, calls: []call{
			{stop: 2, want: []string{"fact 0.0 a @1 v27", "fact 1.0 b @1.1 v27"}},
			{status: changed + "26"},
			{before: upgrade(27), ask: restUntilTail, want: []string{"fact 1.1 c @2 v27", "CAUGHT_UP 1 @2 v27", "ENDED BOUND_REACHED @2 v27"}},
		}},
		contractCase{name: "a slot of an event", version: 26, open: true, lines: []string{legacy(0, "a")}, calls: []call{{
			ask: func(*evev1.Cursor) *evev1.SubscribeRequest {
				c := rig.At(session, 27, 0)
				c.StreamEventIndex = 1
				return rig.From(c)
			},
			status: changed + "26",
		}}},
	)
	runCases(t, cases)
}

// The end of an older session is told by its last event alone. The end of a body never is one.
func TestLegacyEnd(t *testing.T) {
	old := []string{legacy(0, "session.started"), legacy(1, "turn.started")}
	seen := []string{"event 0 session.started @1", "event 1 turn.started @2"}
	var cases []contractCase
	for v := 21; v <= 26; v++ {
		cases = append(cases,
			contractCase{name: fmt.Sprint(v, ": the body ends, and ends again"), version: v, lines: old, calls: []call{
				{leave: time.Minute, want: join(seen, "CAUGHT_UP 1 @2")},
				{leave: time.Minute, want: []string{"CAUGHT_UP 1 @2"}},
				{ask: restUntilTail, want: []string{"CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2"}},
			}},
			contractCase{name: fmt.Sprint(v, ": session.completed"), version: v, lines: join(old, `{"type":"session.completed"}`), calls: []call{
				{want: join(seen, "event 2 session.completed @3 ended", "CAUGHT_UP 2 @3 ended", "ENDED SESSION_ENDED @3 ended"), reads: []string{"tail 0"}},
				{want: []string{"ENDED SESSION_ENDED @3 ended"}, reads: none()},
			}},
			contractCase{name: fmt.Sprint(v, ": session.failed, live"), version: v, open: true, lines: old, calls: []call{{
				during: []moment{appends(time.Second, legacy(2, "turn.failed"), legacy(3, "session.failed"))},
				want:   join(seen, "CAUGHT_UP 1 @2", "event 2 turn.failed @3", "event 3 session.failed @4 ended", "ENDED SESSION_ENDED @4 ended"),
				reads:  []string{"tail 0", "live 0", "tail 0 +1.375s"},
			}}},
			contractCase{name: fmt.Sprint(v, ": a resume behind the end by a cursor that does not know it"), version: v, lines: join(old, legacy(2, "session.completed")), calls: []call{{
				ask:   func(*evev1.Cursor) *evev1.SubscribeRequest { return rig.From(rig.At(session, uint32(v), 3)) },
				want:  []string{"CAUGHT_UP 2 @3?", "ENDED SESSION_ENDED @3? ended"},
				reads: []string{"tail 2"},
			}}},
		)
	}
	runCases(t, cases)
}

// At 27 the fact tells the session's end and the record the stream's; the fact alone is enough.
func TestEnd(t *testing.T) {
	ending := []string{commit(0, "session.started"), commit(1, "turn.settled", "session.ended", "delivery.settled")}
	seen := []string{
		"fact 0.0 session.started @1", "fact 1.0 turn.settled @1.1", "fact 1.1 session.ended @1.2", "fact 1.2 delivery.settled @2 ended",
		"CAUGHT_UP 1 @2 ended", "ENDED SESSION_ENDED @2 ended",
	}
	runCases(t, []contractCase{
		{name: "closed", lines: ending, calls: []call{{want: seen, reads: []string{"tail 0"}}, {want: seen[5:], reads: none()}}},
		{name: "not closed yet", open: true, lines: ending, calls: []call{{want: seen, reads: []string{"tail 0"}}}},
		{name: "and what is written behind it", lines: join(ending, commit(2, "never")), calls: []call{
			{want: join(seen[:4], seen[5]), reads: []string{"tail 0"}},
		}},
		{name: "live", open: true, lines: ending[:1], calls: []call{{
			during: []moment{appends(time.Second, ending[1], commit(2, "never"))},
			want:   join(seen[0], "CAUGHT_UP 0 @1", seen[1:4], seen[5]), reads: []string{"tail 0", "live 0"},
		}}},
		{name: "the line cut inside its last fact", lines: ending, script: []fakeeve.Fault{{CutAt: fakeeve.AtLine(1, int64(len(ending[1]))-5)}}, calls: []call{
			{want: seen, reads: []string{"tail 0", "live 0 +125ms"}},
		}},
		{name: "a resume behind it by a cursor that does not know it", open: true, lines: ending, calls: []call{
			{ask: at(2), want: []string{"CAUGHT_UP 1 @2?", "ENDED SESSION_ENDED @2? ended"}, reads: []string{"tail 1"}},
		}},
		{name: "the stream closes without the session's end", lines: ending[:1], calls: []call{
			{want: []string{seen[0], "CAUGHT_UP 0 @1", "ENDED STREAM_CLOSED @1"}},
			{want: []string{"CAUGHT_UP 0 @1", "ENDED STREAM_CLOSED @1"}},
		}},
		{name: "a body that ends without a word is cut", open: true, lines: ending[:1], script: []fakeeve.Fault{
			{}, {Verbatim: body(heartbeat, ending[0])}, {Verbatim: body(heartbeat, ending[0])},
		}, calls: []call{
			{leave: 10 * time.Second, want: []string{seen[0], "CAUGHT_UP 0 @1"}, reads: []string{"tail 0", "live 0", "live 0 +125ms", "live 0 +375ms"}},
		}},
		{name: "an unknown transport record ends nothing", open: true, lines: ending[:1], script: []fakeeve.Fault{
			{}, {Verbatim: body(heartbeat, ending[0], `{"$eve":"stream.closing"}`)},
		}, calls: []call{
			{leave: time.Second, want: []string{seen[0], "CAUGHT_UP 0 @1"}, reads: []string{"tail 0", "live 0", "live 0 +125ms"}},
		}},
	})
}

// Events come as they were written in their time: cumulative appends, offsets, no ids, no meta, no data.
func TestLegacyShapes(t *testing.T) {
	runCases(t, []contractCase{{
		name: "resumed behind each", version: 24, open: true, lines: []string{
			`{"type":"session.started","data":{"trace":{"traceId":"0af7651916cd43dd8448eb211c80319c"}},"meta":{"id":"evt_1","at":"2026-11-18T09:00:00.000Z"}}`,
			`{"type":"message.appended","data":{"messageDelta":"Hi","messageSoFar":"Hi"},"meta":{"id":"evt_2","at":"2026-11-18T09:00:01.000Z","deliveryIds":["d1"]}}`,
			`{"type":"message.appended","data":{"messageDelta":"!","messageSoFar":"Hi!"},"meta":{"id":"evt_3"}}`,
			`{"type":"action.input.appended","data":{"callId":"c","inputTextDelta":"{}","inputTextOffset":4},"meta":{"at":"2026-11-18T09:00:02.000Z"}}`,
			`{"type":"message.completed","data":{"message":null}}`,
			`{"type":"almanac.opened"}`,
			`{"facts":[]}`,
			`{"data":{},"type":"turn.completed","meta":{"id":"evt_8"}}`,
		},
		calls: resumeAfterEach([]string{
			"event 0 session.started @1", "event 1 message.appended @2", "event 2 message.appended @3", "event 3 action.input.appended @4",
			"event 4 message.completed @5", "event 5 almanac.opened @6", "unreadable 6 UNKNOWN_SHAPE @7", "event 7 turn.completed @8", "CAUGHT_UP 7 @8",
		}),
	}})
}
