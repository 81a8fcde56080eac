package contract_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// event is a stored line of versions 21 to 26 with a payload, attributed to deliveries. Events without one have no
// deliveryIds at all.
func event(n int, typ, data string, deliveries ...string) string {
	ids := ""
	if len(deliveries) > 0 {
		ids = `,"deliveryIds":["` + strings.Join(deliveries, `","`) + `"]`
	}
	return fmt.Sprintf(`{"type":%q,"data":{%s},"meta":{"at":%q,"id":"evt_%03d"%s}}`, typ, data, clock(n), n, ids)
}

// story numbers events; each is "type data" and, in brackets, its deliveries: `turn.waiting "on":"input" [d1,d2]`.
func story(events ...string) (lines, want []string) {
	for n, text := range events {
		var deliveries []string
		if rest, ids, ok := strings.Cut(text, " ["); ok {
			text, deliveries = rest, strings.Split(strings.TrimSuffix(ids, "]"), ",")
		}
		typ, data, _ := strings.Cut(text, " ")
		lines = append(lines, event(n, typ, data, deliveries...))
		ended := ""
		if typ == "session.completed" || typ == "session.failed" {
			ended = " ended"
		}
		want = append(want, fmt.Sprintf("event %d %s @%d%s", n, typ, n+1, ended))
	}
	return lines, want
}

const (
	asks      = `input.requested "requests":[{"requestId":"r1","kind":"question"}]`
	asksTwo   = `input.requested "requests":[{"requestId":"r1"},{"requestId":"r2"}]`
	answers   = `input.resolved "resolutions":[{"requestId":"r1","outcome":"answered"}]`
	waits     = `turn.waiting "on":"input"`
	waitsTask = `turn.waiting "on":"tasks"`
	rests     = `session.waiting "wait":"next-user-message"`
	signIn    = `authorization.required "name":"harbour","attemptId":"a1","webhookUrl":"https://eve.test/callback"`
	signedIn  = `authorization.completed "name":"harbour","attemptId":"a1","outcome":"authorized"`
)

// Up to version 26 a turn rests where an event says so (contract 5.6), in whatever order its requests and its waiting
// are told (O11).
func TestUntilTurnLegacy(t *testing.T) {
	// ends is at which event each of the waits, one behind the other, ends.
	tests := []struct {
		name    string
		version int
		events  []string
		ends    []int
	}{
		{"the session waits", 21, []string{"turn.started", "message.completed", "turn.completed", rests, "turn.started"}, []int{3}},
		{"the turn fails and may be tried again", 26, []string{"turn.started", "turn.failed", rests, "turn.started"}, []int{2}},
		{"the turn is cancelled", 26, []string{"turn.started", "turn.cancelled", rests, "turn.started"}, []int{2}},
		{"the turn waits for input", 26, []string{"turn.started", waits, "message.completed"}, []int{1}},
		{"the turn waits for tasks", 26, []string{"turn.started", waitsTask, "task.settled", "step.started", "turn.completed", rests, "turn.started"}, []int{5}},
		{"an approval: requested, then waiting", 26, []string{
			"step.completed", asks, waits, "approval.settled \"requestId\":\"r1\"", answers, "step.started", "turn.completed", rests, "turn.started",
		}, []int{2, 7}},
		{"a question: waiting for tasks, requested, then waiting for input", 26, []string{
			"step.completed", waitsTask, asks, waits, answers, "action.result", "step.started", "turn.completed", rests, "turn.started",
		}, []int{3, 8}},
		{"waiting for tasks with a request open", 26, []string{asks, waitsTask, "step.started"}, []int{1}},
		{"waiting for tasks with the request answered", 26, []string{asks, answers, waitsTask, "step.started", "turn.completed", rests, "turn.started"}, []int{5}},
		{"waiting for tasks with one of two answered", 26, []string{asksTwo, waits, answers, waitsTask, "step.started"}, []int{1}},
		{"partial answers", 26, []string{
			asksTwo, waits, answers, waits, `input.resolved "resolutions":[{"requestId":"r2"}]`, "step.started", "turn.completed", rests, "turn.started",
		}, []int{1, 3, 7}},
		{"an approval settled and not resolved", 26, []string{asks, `approval.settled "requestId":"r1"`, waitsTask, "turn.completed", rests, "turn.started"}, []int{4}},
		{"another person's answer is refused", 26, []string{asks, waits, "message.completed", waits, answers, "turn.completed", rests, "turn.started"}, []int{1, 3, 6}},
		{"a request of a turn that is over is not open", 26, []string{asks, "turn.cancelled", "turn.started", waitsTask, "turn.completed", rests, "turn.started"}, []int{5}},
		{"before 0.70 without a word on what it waits for, with a request", 26, []string{asks, "turn.waiting", "step.started"}, []int{1}},
		{"before 0.70, without a request", 26, []string{"turn.waiting", "task.settled", "turn.completed", rests, "turn.started"}, []int{3}},
		{"waiting for something to come", 26, []string{`turn.waiting "on":"weather"`, "turn.completed", rests, "turn.started"}, []int{2}},
		{"payloads of other types than they should have", 26, []string{
			`input.requested "requests":[7,{"requestId":5},{"kind":"question","requestId":"r1","prompt":{}}],"callId":[]`,
			`input.resolved "resolutions":{"requestId":"r1"}`, `turn.waiting "usage":7,"on":["tasks"]`, "step.started",
		}, []int{2}},
		{"a sign-in that a callback completes is followed", 26, []string{signIn, waits, signedIn, "step.started", "turn.completed", rests, "turn.started"}, []int{5}},
		{"a sign-in with a request open beside it", 26, []string{signIn, asks, waits, "step.started"}, []int{2}},
		{"a sign-in that somebody must report", 26, []string{`authorization.required "name":"harbour"`, waits, "step.started"}, []int{1}},
		{"one of two sign-ins is complete", 26, []string{
			signIn, `authorization.required "name":"pilot","attemptId":"a2","webhookUrl":"u"`, signedIn, waits, `authorization.completed "name":"pilot"`, waits, "step.started",
		}, []int{5}},
		{"two attempts for one name", 26, []string{
			signIn, strings.Replace(signIn, "a1", "a2", 1), signedIn, waits, strings.Replace(signedIn, "a1", "a2", 1), waits, "step.started",
		}, []int{5}},
		{"a sign-in that was withdrawn with its turn", 26, []string{signIn, waits, "turn.completed", rests, "turn.started"}, []int{3}},
		{"up to 25 a sign-in ends its turn, and goes on", 25, []string{
			"turn.started", signIn, "turn.completed", rests, signedIn, "turn.started", "turn.completed", rests, "turn.started",
		}, []int{7}},
		{"up to 25 a sign-in is over when another message comes", 25, []string{
			"turn.started", signIn, "turn.completed", rests, "turn.started", "turn.completed", rests, "turn.started",
		}, []int{6}},
		{"up to 25 a sign-in is over when its turn is cancelled", 25, []string{signIn, "turn.cancelled", rests, "turn.started"}, []int{2}},
		{"types that begin like it", 26, []string{"session.waiting.long", "turn.waiting.long", rests, "turn.started"}, []int{2}},
		{"events of 26 in a stream of 27", 27, []string{"turn.started", asks, waits, answers, "turn.completed", rests, "turn.started"}, []int{2, 5}},
	}
	var cases []contractCase
	for _, tt := range tests {
		lines, want := story(tt.events...)
		c := contractCase{name: tt.name, version: tt.version, open: true, lines: lines}
		from := 0
		for _, end := range tt.ends {
			c.calls = append(c.calls, call{ask: untilTurn(), want: join(want[from:end+1], fmt.Sprintf("ENDED BOUND_REACHED @%d", end+1))})
			from = end + 1
		}
		cases = append(cases, c)
	}
	lines, want := story("turn.started", `turn.failed "terminal":true`, "session.failed")
	cases = append(cases, contractCase{name: "the session fails", version: 26, open: true, lines: lines, calls: []call{
		{ask: untilTurn(), want: join(want, "CAUGHT_UP 2 @3 ended", "ENDED SESSION_ENDED @3 ended")},
	}})
	runCases(t, cases)
}

// Up to version 26 a delivery is followed by the ids on its events: what comes before the first of them is another's,
// and so is what names only others; what names none counts.
func TestUntilDeliveryLegacy(t *testing.T) {
	tests := []struct {
		name   string
		events []string
		end    int
	}{
		{"its own turn", []string{"turn.started [d1]", "message.completed [d1]", "turn.completed [d1]", rests + " [d1]", "turn.started [d2]"}, 3},
		{"the session waited for others before", []string{"turn.started [d0]", rests + " [d0]", waits, rests, "turn.started [d1]", rests + " [d1]", "turn.started [d2]"}, 5},
		{"unattributed events count once it began", []string{rests, "turn.started [d1]", "turn.completed", rests, "turn.started"}, 3},
		{"other deliveries' boundaries do not", []string{"turn.started [d1]", waits + " [d2]", rests + " [d2,d3]", "message.received [d1]", rests + " [d1]", "turn.started"}, 4},
		{"steered into its turn", []string{"turn.started [d1]", "message.received [d1,d2]", "turn.completed [d1,d2]", rests + " [d1,d2]", "turn.started [d3]"}, 3},
		{"steers another's turn", []string{"turn.started [d0]", "message.received [d0,d1]", rests + " [d0,d1]", "turn.started [d3]"}, 2},
		{"coalesced with others", []string{"turn.started [d0,d1,d2]", rests + " [d2,d1,d0]", "turn.started [d3]"}, 1},
		{"pauses on a person", []string{"turn.started [d1]", asks, waits + " [d1]", "step.started [d1]"}, 2},
		{"a question's events name nobody", []string{"turn.started [d1]", waitsTask + " [d1]", asks, waits, answers, "step.started [d1]"}, 3},
		{"an id that begins like it", []string{"turn.started [d10]", rests + " [d10]", "turn.started [d1]", rests + " [d1]", "turn.started"}, 3},
	}
	var cases []contractCase
	for _, tt := range tests {
		lines, want := story(tt.events...)
		cases = append(cases, contractCase{name: tt.name, version: 26, open: true, lines: lines, calls: []call{
			{ask: untilDelivery("d1"), want: join(want[:tt.end+1], fmt.Sprintf("ENDED BOUND_REACHED @%d", tt.end+1)), reads: []string{"tail 0"}},
		}})
	}
	runCases(t, cases)

	own, wantOwn := story("session.started", "turn.started [d1]", "message.completed [d1]", "turn.completed [d1]", rests, "turn.started [d2]")
	other, wantOther := story("turn.started [d2]", rests+" [d2]", "session.completed", "turn.started [d1]")
	tail := []string{"CAUGHT_UP 5 @6", "ENDED BOUND_REACHED @6"}
	runCases(t, []contractCase{
		{name: "settled before the cursor", version: 26, open: true, lines: own, calls: []call{
			{stop: 5, want: wantOwn[:5]},
			{ask: untilDelivery("d1"), want: join(wantOwn[5:], tail), reads: []string{"tail 0", "tail 0"}},
			{ask: untilDelivery("d1"), want: tail, reads: []string{"tail 0", "tail 0"}},
		}},
		{name: "settled behind the cursor, by an event that names nobody", version: 26, open: true, lines: own, calls: []call{
			{stop: 3, want: wantOwn[:3]},
			{ask: untilDelivery("d1"), want: join(wantOwn[3:5], "ENDED BOUND_REACHED @5"), reads: []string{"tail 0"}},
		}},
		{name: "all that named it was before the cursor", version: 26, open: true, lines: own, calls: []call{
			{stop: 4, want: wantOwn[:4]},
			{ask: untilDelivery("d1"), want: join(wantOwn[4:], tail), reads: []string{"tail 0", "tail 0"}},
		}},
		{name: "all that named it was before the cursor, and what it waits for is to come", version: 26, open: true, lines: own[:4], calls: []call{
			{stop: 4, want: wantOwn[:4]},
			{
				ask: untilDelivery("d1"), during: []moment{appends(time.Second, own[4:]...)},
				want: join("CAUGHT_UP 3 @4", wantOwn[4:5], "ENDED BOUND_REACHED @5"), reads: []string{"tail 0", "tail 0", "live 0"},
			},
		}},
		{name: "unknown: waits", version: 26, open: true, lines: own, calls: []call{
			{ask: untilDelivery("d9"), leave: 5 * time.Minute, status: "LEFT", want: join(wantOwn, "CAUGHT_UP 5 @6")},
		}},
		{name: "the session ends first", version: 26, open: true, lines: other, calls: []call{
			{ask: untilDelivery("d1"), want: join(wantOther[:3], "ENDED SESSION_ENDED @3 ended")},
		}},
		{name: "over a cut and a lease", version: 26, open: true, lines: own[:3], script: []fakeeve.Fault{
			{}, {CutAt: fakeeve.AtLine(3, 10), Cut: fakeeve.Abort},
		}, calls: []call{{
			ask: untilDelivery("d1"), during: []moment{appends(time.Second, own[3]), appends(100*time.Second, own[4:]...)},
			want: join(wantOwn[:3], "CAUGHT_UP 2 @3", wantOwn[3:5], "ENDED BOUND_REACHED @5"),
		}}},
	})
}
