package contract_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evegateway/evegateway/gateway"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// fact is a fact with a payload; data is the members of its object.
func fact(typ, data string) string { return fmt.Sprintf(`{"type":%q,"data":{%s}}`, typ, data) }

// facts is a stored line with these facts.
func facts(second int, list ...string) string {
	return fmt.Sprintf(`{"at":%q,"facts":[%s]}`, clock(second), strings.Join(list, ","))
}

func admitted(id string) string { return fact("delivery.admitted", `"deliveryId":"`+id+`"`) }
func consumed(id string) string {
	return fact("delivery.consumed", `"deliveryId":"`+id+`","turnId":"turn_0","parts":[]`)
}
func settled(id, outcome string) string {
	return fact("delivery.settled", `"deliveryId":"`+id+`","outcome":"`+outcome+`"`)
}
func turnSettled(outcome string) string {
	return fact("turn.settled", `"turnId":"turn_0","outcome":"`+outcome+`"`)
}
func paused(awaiting string) string {
	return fact("turn.paused", `"turnId":"turn_0","awaiting":[`+awaiting+`]`)
}
func sessionEnded() string { return fact("session.ended", `"outcome":"completed"`) }

// untilDelivery and untilTurn resume with a bound, or begin with it.
func untilDelivery(id string) func(*evev1.Cursor) *evev1.SubscribeRequest {
	return bounded(&evev1.Until{Bound: &evev1.Until_DeliveryId{DeliveryId: id}})
}

func untilTurn() func(*evev1.Cursor) *evev1.SubscribeRequest {
	return bounded(&evev1.Until{Bound: &evev1.Until_TurnEnd_{TurnEnd: &evev1.Until_TurnEnd{}}})
}

func bounded(u *evev1.Until) func(*evev1.Cursor) *evev1.SubscribeRequest {
	return func(last *evev1.Cursor) *evev1.SubscribeRequest {
		req := rig.FromStart(session)
		if last != nil {
			req = rig.From(last)
		}
		req.Until = u
		return req
	}
}

// with changes what a call asks for.
func with(ask func(*evev1.Cursor) *evev1.SubscribeRequest, change func(*evev1.SubscribeRequest)) func(*evev1.Cursor) *evev1.SubscribeRequest {
	return func(last *evev1.Cursor) *evev1.SubscribeRequest {
		req := ask(last)
		change(req)
		return req
	}
}

func atTail(r *evev1.SubscribeRequest) {
	r.Start = &evev1.SubscribeRequest_Position{Position: evev1.Position_POSITION_TAIL}
}

// A wait for a delivery ends with the line in which the delivery settles, all of it, whatever the outcome, and with
// nothing behind it.
func TestUntilDelivery(t *testing.T) {
	// The settlement stands in the middle of its commit, and the session goes on.
	story := func(outcome string) []string {
		return []string{
			facts(0, fact("session.started", ""), admitted("d1")),
			facts(1, consumed("d1"), admitted("d2")),
			facts(2, settled("d2", "ignored"), fact("almanac.page", "")),
			facts(3, turnSettled("completed"), settled("d1", outcome), fact("usage.recorded", ""), fact("almanac.page", "")),
			facts(4, fact("turn.started", "")),
		}
	}
	want := []string{
		"fact 0.0 session.started @0.1", "fact 0.1 delivery.admitted @1", "fact 1.0 delivery.consumed @1.1", "fact 1.1 delivery.admitted @2",
		"fact 2.0 delivery.settled @2.1", "fact 2.1 almanac.page @3",
		"fact 3.0 turn.settled @3.1", "fact 3.1 delivery.settled @3.2", "fact 3.2 usage.recorded @3.3", "fact 3.3 almanac.page @4",
		"ENDED BOUND_REACHED @4",
	}
	var cases []contractCase
	for _, outcome := range []string{"handled", "awaiting-input", "applied", "ignored", "refused", "failed", "an outcome to come"} {
		cases = append(cases, contractCase{name: outcome, open: true, lines: story(outcome), calls: []call{
			{ask: untilDelivery("d1"), want: want, reads: []string{"tail 0"}},
		}})
	}
	runCases(t, cases)

	replaced := func(old, text string) []string {
		lines := story("handled")
		lines[3] = strings.Replace(lines[3], old, text, 1)
		return lines
	}
	runCases(t, []contractCase{
		{name: "an empty start and a settlement in the first line", open: true, lines: []string{
			facts(0, fact("session.started", ""), admitted("d1"), settled("d1", "ignored"), fact("almanac.page", "")), facts(1, fact("almanac.page", "")),
		}, calls: []call{{ask: untilDelivery("d1"), want: []string{
			"fact 0.0 session.started @0.1", "fact 0.1 delivery.admitted @0.2", "fact 0.2 delivery.settled @0.3", "fact 0.3 almanac.page @1", "ENDED BOUND_REACHED @1",
		}, reads: []string{"tail 0"}}}},
		{name: "with everything left out by a filter", open: true, lines: story("handled"), calls: []call{{
			ask:  with(untilDelivery("d1"), func(r *evev1.SubscribeRequest) { r.Filter = only("ledger.closed") }),
			want: []string{"ENDED BOUND_REACHED @4"},
		}}},
		{name: "without payload", open: true, lines: story("handled"), calls: []call{{
			ask:  with(untilDelivery("d1"), func(r *evev1.SubscribeRequest) { r.Payload = evev1.Payload_PAYLOAD_NONE }),
			want: want,
		}}},
		{name: "a settlement of which this build understands no more than whose it is", open: true, calls: []call{{ask: untilDelivery("d1"), want: want}},
			lines: replaced(`"outcome":"handled"`, `"outcome":{"kind":"handled"},"turnId":7,"reason":[]`)},
		{name: "the last of two ids counts", open: true, calls: []call{{ask: untilDelivery("d1"), want: want}},
			lines: replaced(`"deliveryId":"d1"`, `"deliveryId":"d2","deliveryId":"d1"`)},
		{name: "an id in escapes", open: true, calls: []call{{ask: untilDelivery("d1"), want: want}},
			lines: replaced(`"deliveryId":"d1"`, `"deliveryId":"\u0064\u0031"`)},
		{name: "over cuts in the line that ends it", open: true, lines: story("handled"), script: []fakeeve.Fault{
			{CutAt: fakeeve.AtLine(3, 150), Cut: fakeeve.Abort}, {CutAt: fakeeve.AtLine(3, 1)},
		}, calls: []call{{ask: untilDelivery("d1"), want: want}}},
		{name: "live, on a session that was made before its first message", open: true, calls: []call{{
			ask: untilDelivery("d1"), timed: true,
			during: []moment{
				appends(90*time.Second, facts(0, fact("session.started", ""), admitted("d1"), consumed("d1"))),
				appends(91*time.Second, delta("a")),
				appends(200*time.Second, facts(2, settled("d1", "handled"), turnSettled("completed")), facts(3, fact("almanac.page", ""))),
			},
			want: []string{
				"CAUGHT_UP - @0", "fact 0.0 session.started @0.1 +1m30s", "fact 0.1 delivery.admitted @0.2 +1m30s", "fact 0.2 delivery.consumed @1 +1m30s",
				"progress 1 content.delta @2 +1m31s", "fact 2.0 delivery.settled @2.1 +3m20s", "fact 2.1 turn.settled @3 +3m20s", "ENDED BOUND_REACHED @3 +3m20s",
			},
		}}},
		{name: "turns settle and pause meanwhile", open: true, lines: []string{
			facts(0, admitted("d1"), turnSettled("completed")), facts(1, paused(`{"interactionId":"i1"}`)), facts(2, settled("d1", "handled")),
		}, calls: []call{{ask: untilDelivery("d1"), want: []string{
			"fact 0.0 delivery.admitted @0.1", "fact 0.1 turn.settled @1", "fact 1.0 turn.paused @2", "fact 2.0 delivery.settled @3", "ENDED BOUND_REACHED @3",
		}}}},
	})
}

// What else can become of the wait: the session ends first, the stored stream does, or nothing happens at all.
func TestUntilDeliveryNotSettled(t *testing.T) {
	const first = "fact 0.0 delivery.admitted @1"
	runCases(t, []contractCase{
		{name: "the session ends first", open: true, lines: []string{
			facts(0, admitted("d1")), facts(1, sessionEnded(), fact("almanac.page", "")), facts(2, settled("d1", "failed")),
		}, calls: []call{
			{ask: untilDelivery("d1"), want: []string{first, "fact 1.0 session.ended @1.1", "fact 1.1 almanac.page @2 ended", "ENDED SESSION_ENDED @2 ended"}},
			{ask: untilDelivery("d1"), want: []string{"ENDED SESSION_ENDED @2 ended"}, reads: none()},
		}},
		{name: "the session ends with it", open: true, lines: []string{
			facts(0, admitted("d1")), facts(1, settled("d1", "failed"), sessionEnded()),
		}, calls: []call{
			{ask: untilDelivery("d1"), want: []string{first, "fact 1.0 delivery.settled @1.1", "fact 1.1 session.ended @2 ended", "CAUGHT_UP 1 @2 ended", "ENDED SESSION_ENDED @2 ended"}},
		}},
		{name: "the session ended before it was admitted", open: true, lines: []string{facts(0, sessionEnded())}, calls: []call{
			{ask: untilDelivery("d1"), want: []string{"fact 0.0 session.ended @1 ended", "CAUGHT_UP 0 @1 ended", "ENDED SESSION_ENDED @1 ended"}},
		}},
		{name: "the stored stream is closed first", lines: []string{facts(0, admitted("d1"))}, calls: []call{
			{ask: untilDelivery("d1"), want: []string{first, "CAUGHT_UP 0 @1", "ENDED STREAM_CLOSED @1"}},
		}},
		{name: "unknown: waits", open: true, lines: []string{facts(0, admitted("d1")), facts(1, settled("d1", "handled"))}, calls: []call{
			{
				ask: untilDelivery("d2"), leave: 10 * time.Minute, status: "LEFT",
				want: []string{first, "fact 1.0 delivery.settled @2", "CAUGHT_UP 1 @2"},
			},
			// It costs one look at the history, once, and is met when it comes.
			{
				ask: untilDelivery("d2"), during: []moment{appends(150*time.Second, facts(2, admitted("d2"))), appends(170*time.Second, facts(3, settled("d2", "handled")))},
				want:  []string{"CAUGHT_UP 1 @2", "fact 2.0 delivery.admitted @3", "fact 3.0 delivery.settled @4", "ENDED BOUND_REACHED @4"},
				reads: []string{"tail 1", "tail 0", "live 1", "live 1 +1m0s", "live 1 +2m0s"},
			},
		}},
		{name: "an id is not another that begins like it", open: true, lines: []string{facts(0, admitted("d1"), settled("d10", "handled"), settled("D1", "handled"), settled("", "handled"))}, calls: []call{
			{ask: untilDelivery("d1"), leave: time.Minute, status: "LEFT", want: []string{
				"fact 0.0 delivery.admitted @0.1", "fact 0.1 delivery.settled @0.2", "fact 0.2 delivery.settled @0.3", "fact 0.3 delivery.settled @1", "CAUGHT_UP 0 @1",
			}},
		}},
		{name: "the stranded session's history is read, and the error told", open: true, stranded: "0.79.0", lines: []string{facts(0, admitted("d1"))}, calls: []call{
			{ask: untilDelivery("d1"), want: []string{first, "CAUGHT_UP 0 @1"}, status: "FAILED_PRECONDITION SESSION_STRANDED code=session_stranded eve_version=0.79.0 status=409"},
		}},
		{name: "no id", open: true, lines: numbered(1), calls: []call{
			{ask: untilDelivery(""), reads: none(), status: "INVALID_ARGUMENT REQUEST_INVALID field=until.delivery_id"},
			{ask: untilDelivery(strings.Repeat("d", 513)), reads: none(), status: "INVALID_ARGUMENT REQUEST_INVALID field=until.delivery_id"},
		}},
	})
}

// A delivery that had settled before the cursor ends the read when it has caught up, for the price of one bounded look
// at the history; one that is met behind the cursor costs nothing.
func TestUntilDeliverySettledBefore(t *testing.T) {
	lines := []string{
		facts(0, fact("session.started", ""), admitted("d1")),
		facts(1, settled("d1", "handled"), fact("almanac.page", "")),
		facts(2, admitted("d2")),
		facts(3, consumed("d2")),
	}
	behind := "fact 3.0 delivery.consumed @4"
	before := call{stop: 4, want: []string{
		"fact 0.0 session.started @0.1", "fact 0.1 delivery.admitted @1", "fact 1.0 delivery.settled @1.1", "fact 1.1 almanac.page @2",
	}}
	three := func(k call) call { k.stop, k.want = 5, append(k.want[:4:4], "fact 2.0 delivery.admitted @3"); return k }
	runCases(t, []contractCase{
		{name: "behind it at once", open: true, lines: lines, calls: []call{
			before,
			{ask: untilDelivery("d1"), want: []string{"fact 2.0 delivery.admitted @3", behind, "CAUGHT_UP 3 @4", "ENDED BOUND_REACHED @4"}, reads: []string{"tail 1", "tail 0"}},
		}},
		{name: "at the tail, and again", open: true, lines: lines[:2], calls: []call{
			before,
			{ask: untilDelivery("d1"), want: []string{"CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2"}, reads: []string{"tail 1", "tail 0"}},
			{ask: untilDelivery("d1"), want: []string{"CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2"}, reads: []string{"tail 1", "tail 0"}},
		}},
		{name: "from the tail", open: true, lines: lines[:2], calls: []call{{
			ask:  with(untilDelivery("d1"), atTail),
			want: []string{"POSITIONED @2", "CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2"}, reads: []string{"tail -1", "tail 0"},
		}}},
		{name: "inside the line that ends it: the rest of that line", open: true, lines: lines, calls: []call{
			{stop: 3, want: before.want[:3]},
			{ask: untilDelivery("d1"), want: []string{"fact 1.1 almanac.page @2", "ENDED BOUND_REACHED @2"}, reads: []string{"tail 0"}},
		}},
		{name: "before the cursor inside a line that is another's", open: true, lines: append(lines[:2:2], facts(2, admitted("d2"), fact("almanac.page", ""))), calls: []call{
			{stop: 5, want: append(before.want[:4:4], "fact 2.0 delivery.admitted @2.1")},
			{ask: untilDelivery("d1"), want: []string{"fact 2.1 almanac.page @3", "CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3"}, reads: []string{"tail 1", "tail 0"}},
		}},
		{name: "met behind the cursor: no look back", open: true, lines: lines, calls: []call{
			before,
			{
				ask: untilDelivery("d2"), during: []moment{appends(time.Second, facts(4, settled("d2", "handled")))},
				want:  []string{"fact 2.0 delivery.admitted @3", behind, "CAUGHT_UP 3 @4", "fact 4.0 delivery.settled @5", "ENDED BOUND_REACHED @5"},
				reads: []string{"tail 1", "live 3"},
			},
		}},
		{name: "admitted before the cursor and settled behind it", open: true, lines: lines[:3], calls: []call{
			three(before),
			{
				ask: untilDelivery("d2"), during: []moment{appends(time.Second, facts(3, settled("d2", "handled")))},
				want:  []string{"CAUGHT_UP 2 @3", "fact 3.0 delivery.settled @4", "ENDED BOUND_REACHED @4"},
				reads: []string{"tail 2", "tail 0", "live 2"},
			},
		}},
		{name: "the look back is cut, and goes on", open: true, lines: lines[:2], script: []fakeeve.Fault{
			{}, {}, {CutAt: fakeeve.AtLine(0, 9), Cut: fakeeve.Abort}, {CutAt: fakeeve.AtLine(1, 9)},
		}, calls: []call{
			before,
			{ask: untilDelivery("d1"), want: []string{"CAUGHT_UP 1 @2", "ENDED BOUND_REACHED @2"}},
		}},
		{name: "the look back passes lines over the limit", open: true, config: func(c *gateway.Config) { c.MaxLineBytes = 300 },
			lines: []string{facts(0, fact("almanac.page", `"text":"`+strings.Repeat("x", 300)+`"`)), facts(1, settled("d1", "handled")), facts(2, admitted("d2"))},
			calls: []call{{
				ask:  with(untilDelivery("d1"), atTail),
				want: []string{"POSITIONED @3", "CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3"},
			}},
		},
		{name: "the look back passes lines that are gone", open: true, log: func() fakeeve.Log {
			l := fakeeve.NewMemLog(lines...)
			l.Trim(0, 1)
			return l
		}(), calls: []call{{
			ask:  with(untilDelivery("d1"), atTail),
			want: []string{"POSITIONED @4", "CAUGHT_UP 3 @4", "ENDED BOUND_REACHED @4"},
		}}},
	})
}

// A wait for a turn ends with the line in which the turn settles or pauses on a person, or the session ends; a pause on
// calls or tasks alone is none.
func TestUntilTurn(t *testing.T) {
	person := `{"interactionId":"i1"}`
	start := facts(0, fact("session.started", ""), fact("turn.started", ""))
	begun := []string{"fact 0.0 session.started @0.1", "fact 0.1 turn.started @1"}
	more := facts(9, fact("almanac.page", ""))
	ending := func(name, ending, typ string) contractCase {
		return contractCase{name: name, open: true, lines: []string{start, facts(1, fact("almanac.page", ""), ending, fact("usage.recorded", "")), more}, calls: []call{
			{ask: untilTurn(), want: join(begun, "fact 1.0 almanac.page @1.1", "fact 1.1 "+typ+" @1.2", "fact 1.2 usage.recorded @2", "ENDED BOUND_REACHED @2"), reads: []string{"tail 0"}},
		}}
	}
	passing := func(name, passed, typ string) contractCase {
		return contractCase{name: name, open: true, lines: []string{start, facts(1, passed), facts(2, turnSettled("completed")), more}, calls: []call{
			{ask: untilTurn(), want: join(begun, "fact 1.0 "+typ+" @2", "fact 2.0 turn.settled @3", "ENDED BOUND_REACHED @3")},
		}}
	}
	runCases(t, []contractCase{
		ending("completed", turnSettled("completed"), "turn.settled"),
		ending("failed", turnSettled("failed"), "turn.settled"),
		ending("cancelled", turnSettled("cancelled"), "turn.settled"),
		ending("an outcome to come", turnSettled("dissolved"), "turn.settled"),
		ending("settled in a way this build cannot decode", fact("turn.settled", `"turnId":["turn_0"],"outcome":null,"reply":7`), "turn.settled"),
		ending("settled without a payload", `{"type":"turn.settled"}`, "turn.settled"),
		ending("paused on a person", paused(person), "turn.paused"),
		ending("paused on a person among others", paused(`{"callId":"c1"},{"taskId":"t1"},`+person+`,{"almanac":"a1"}`), "turn.paused"),
		ending("paused on a person among what this build cannot decode", paused(`7,{"callId":{}},`+person), "turn.paused"),
		ending("paused in a way this build cannot decode, but on a person", fact("turn.paused", `"turnId":5,"awaiting":[`+person+`]`), "turn.paused"),
		passing("paused on a call", paused(`{"callId":"c1"}`), "turn.paused"),
		passing("paused on tasks", paused(`{"taskId":"t1"},{"taskId":"t2"}`), "turn.paused"),
		passing("paused on something to come", paused(`{"almanac":"a1"}`), "turn.paused"),
		passing("paused on nothing", paused(""), "turn.paused"),
		passing("paused on a person that is no longer among them", fact("turn.paused", `"turnId":"turn_0","awaiting":[`+person+`],"awaiting":[{"callId":"c1"}]`), "turn.paused"),
		passing("a delivery settles", settled("d1", "handled"), "delivery.settled"),
		passing("a type that begins like it", fact("turn.settled.later", ""), "turn.settled.later"),
		{name: "the session ends", open: true, lines: []string{start, facts(1, sessionEnded(), turnSettled("cancelled")), more}, calls: []call{
			{ask: untilTurn(), want: join(begun, "fact 1.0 session.ended @1.1", "fact 1.1 turn.settled @2 ended", "ENDED SESSION_ENDED @2 ended")},
		}},
		{name: "the stored stream is closed", lines: []string{start}, calls: []call{
			{ask: untilTurn(), want: join(begun, "CAUGHT_UP 0 @1", "ENDED STREAM_CLOSED @1")},
		}},
		{name: "no look back: the next turn counts", open: true, lines: []string{start, facts(1, turnSettled("completed"))}, calls: []call{
			{ask: untilTurn(), want: join(begun, "fact 1.0 turn.settled @2", "ENDED BOUND_REACHED @2")},
			{
				ask: untilTurn(), during: []moment{appends(time.Second, facts(2, turnSettled("completed")))},
				want: []string{"CAUGHT_UP 1 @2", "fact 2.0 turn.settled @3", "ENDED BOUND_REACHED @3"}, reads: []string{"tail 1", "live 1"},
			},
		}},
		{name: "inside the line that ends it: the rest of that line", open: true, lines: []string{facts(0, turnSettled("completed"), fact("usage.recorded", "")), more}, calls: []call{
			{stop: 1, want: []string{"fact 0.0 turn.settled @0.1"}},
			{ask: untilTurn(), want: []string{"fact 0.1 usage.recorded @1", "ENDED BOUND_REACHED @1"}},
		}},
		{name: "from the tail", open: true, lines: []string{start, facts(1, turnSettled("completed"))}, calls: []call{{
			ask: with(untilTurn(), atTail), during: []moment{appends(time.Second, facts(2, paused(person)))},
			want: []string{"POSITIONED @2", "CAUGHT_UP 1 @2", "fact 2.0 turn.paused @3", "ENDED BOUND_REACHED @3"},
		}}},
		{name: "partial answers: every pause on a person ends it", open: true, lines: []string{
			start, facts(1, paused(person+`,{"interactionId":"i2"}`)), facts(2, fact("response.submitted", "")), facts(3, paused(`{"interactionId":"i2"}`)),
			facts(4, fact("turn.resumed", "")), facts(5, turnSettled("completed")),
		}, calls: []call{
			{ask: untilTurn(), want: join(begun, "fact 1.0 turn.paused @2", "ENDED BOUND_REACHED @2")},
			{ask: untilTurn(), want: []string{"fact 2.0 response.submitted @3", "fact 3.0 turn.paused @4", "ENDED BOUND_REACHED @4"}},
			{ask: untilTurn(), want: []string{"fact 4.0 turn.resumed @5", "fact 5.0 turn.settled @6", "ENDED BOUND_REACHED @6"}},
		}},
	})
}
