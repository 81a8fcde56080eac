package fakeeve

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Scripted is an [Agent] that answers the n-th message or answer it is told of, over all sessions, with the n-th batch
// of lines, and ends a session on reset and end as [Echo] does. It does nothing else.
func Scripted(batches ...[]string) Agent {
	var mu sync.Mutex
	next := 0
	return func(s *Session, c Command) {
		switch {
		case c.Route == RouteReset || c.Route == RouteEnd:
			Echo(s, c)
		case c.HasMessage || c.Route == RouteSend:
			mu.Lock()
			defer mu.Unlock()
			if next < len(batches) {
				s.Append(batches[next]...)
				next++
			}
		}
	}
}

// Silent is an [Agent] that accepts everything and does nothing.
func Silent(*Session, Command) {}

// Echo is an [Agent] that answers every message with the message, in one whole turn, appended at once; answers to
// interactions are messages to it. Controls settle at once; reset and end close the stream. It needs a [MemLog].
func Echo(s *Session, c Command) {
	if s.MemLog() == nil {
		return
	}
	s.echoing.Lock()
	defer s.echoing.Unlock()
	e := echo{session: s, command: c, at: time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), turn: s.echoed}
	if s.Spec().Version >= 27 {
		e.facts()
	} else {
		e.events()
	}
	s.echoed = e.turn
}

// echo writes the lines of one command.
type echo struct {
	session *Session
	command Command
	at      string
	turn    int // of the next message
}

// quote is a text as JSON.
func quote(text string) string {
	b, _ := jsontext.AppendQuote(nil, text)
	return string(b)
}

// commit is a line of version 27.
func (e *echo) commit(facts ...string) string {
	return `{"at":"` + e.at + `","facts":[` + strings.Join(facts, ",") + `]}`
}

func (e *echo) facts() {
	c, log := e.command, e.session.MemLog()
	admitted := fmt.Sprintf(`{"type":"delivery.admitted","data":{"deliveryId":%q,"principal":{"id":%s,"type":"user"},"source":%s}}`,
		c.DeliveryID, quote(c.Principal), e.source())
	if log.Len() == 0 {
		admitted = `{"type":"session.started","data":{"runtime":{"agentId":"tide-desk","eveVersion":"1.0.1"}}},` + admitted
	}
	settled := func(outcome string) string {
		return fmt.Sprintf(`{"type":"delivery.settled","data":{"deliveryId":%q,"outcome":%q}}`, c.DeliveryID, outcome)
	}
	switch {
	case c.HasMessage || c.Route == RouteSend:
		log.Append(append([]string{e.commit(admitted)}, e.turnOfFacts()...)...)
		e.turn++
	case c.Route == RouteCancel:
		log.Append(e.commit(admitted, settled("ignored")))
	case c.Route == RouteCompact, c.Route == RouteClear:
		log.Append(e.commit(admitted, e.change(), settled("applied")))
	case c.Route == RouteReset, c.Route == RouteEnd:
		log.Append(e.commit(admitted, settled("applied"),
			fmt.Sprintf(`{"type":"session.ended","data":{"outcome":"completed","cause":{"deliveryId":%q}}}`, c.DeliveryID)))
		log.End()
	}
}

func (e *echo) source() string {
	if e.command.HasMessage || e.command.Route == RouteSend {
		return `{"channel":"http"}`
	}
	return `{"control":` + quote(string(e.command.Route)) + `}`
}

// change is a context change from beginning to end.
func (e *echo) change() string {
	kind, selects := "clear", "null"
	if e.command.Route == RouteCompact {
		kind = "compaction"
		if e.turn > 0 {
			selects = fmt.Sprintf(`{"turnId":"turn_%d"}`, e.turn-1)
		}
	}
	id := "change_" + e.command.DeliveryID
	return fmt.Sprintf(`{"type":"context.started","scope":{"changeId":%q},"data":{"changeId":%q,"kind":%q,"cause":{"deliveryId":%q}}},`,
		id, id, kind, e.command.DeliveryID) +
		fmt.Sprintf(`{"type":"context.settled","scope":{"changeId":%q},"data":{"changeId":%q,"kind":%q,"outcome":"completed","selects":%s}}`,
			id, id, kind, selects)
}

func (e *echo) turnOfFacts() []string {
	id, text := e.command.DeliveryID, e.text()
	follows := "null"
	if e.turn > 0 {
		follows = fmt.Sprintf(`"turn_%d"`, e.turn-1)
	}
	turn := fmt.Sprintf(`"scope":{"turnId":"turn_%d"},"data":{"turnId":"turn_%d"`, e.turn, e.turn)
	run := fmt.Sprintf(`"scope":{"turnId":"turn_%d","runId":"run_%d"},"data":{`, e.turn, e.turn)
	runID := fmt.Sprintf(`"runId":"run_%d"`, e.turn)
	part := fmt.Sprintf(`"partId":"part_%d"`, e.turn)
	return []string{
		e.commit(
			`{"type":"turn.started",`+turn+`,"cause":{"deliveryId":"`+id+`"},"follows":`+follows+`}}`,
			`{"type":"delivery.consumed",`+turn+`,"deliveryId":"`+id+`","parts":[{"kind":"text","text":`+text+`}]}}`),
		e.commit(
			`{"type":"model.requested",`+run+runID+`,"owner":{"turnId":"turn_`+fmt.Sprint(e.turn)+`"}}}`,
			`{"type":"model.started",`+run+runID+`,"modelId":"acme/echo-1"}}`),
		`{"progress":{"type":"content.delta",` + run + part + `,"kind":"text","delta":` + text + `}}}`,
		e.commit(
			`{"type":"content.completed",`+run+part+`,`+runID+`,"kind":"text","value":`+text+`,"phase":"reply"}}`,
			`{"type":"model.settled",`+run+runID+`,"outcome":"completed","finishReason":"stop"}}`,
			`{"type":"usage.recorded",`+run+`"owner":{`+runID+`},"kind":"model","usage":{"inputTokens":1,"outputTokens":1,"cacheReadTokens":0,"cacheWriteTokens":0}}}`),
		e.commit(
			`{"type":"turn.settled",`+turn+`,"outcome":"completed","reply":[`+strings.TrimPrefix(part, `"partId":`)+`]}}`,
			`{"type":"delivery.settled","data":{"deliveryId":"`+id+`","outcome":"handled","turnId":"turn_`+fmt.Sprint(e.turn)+`"}}`),
	}
}

// text is what is echoed, as JSON: the message, or the answers as they were sent.
func (e *echo) text() string {
	if e.command.HasMessage {
		return quote(e.command.Text)
	}
	return quote(string(e.command.Body))
}

func (e *echo) events() {
	log := e.session.MemLog()
	number := log.Len()
	var lines []string
	event := func(typ, data string) {
		if data != "" {
			data = `"data":{` + data + `},`
		}
		lines = append(lines, fmt.Sprintf(`{%s"type":%q,"meta":{"at":%q,"id":"evt_%026d","deliveryIds":[%q]}}`,
			data, typ, e.at, number+int64(len(lines)), e.command.DeliveryID))
	}
	if number == 0 && (e.command.HasMessage || e.command.Route == RouteSend) {
		event("session.started", `"runtime":{"agentId":"tide-desk","eveVersion":"0.80.1"}`)
	}
	turn := fmt.Sprintf(`"sequence":%d,"turnId":"turn_%d"`, e.turn, e.turn)
	step := turn + `,"stepIndex":0`
	const usage = `"usage":{"inputTokens":1,"outputTokens":1,"cacheReadTokens":0,"cacheWriteTokens":0}`
	waiting := `"continuationToken":` + quote(e.session.id) + `,"wait":"next-user-message",` + usage
	switch c := e.command; {
	case c.HasMessage || c.Route == RouteSend:
		text := e.text()
		appended := `"messageDelta":` + text
		if e.session.Spec().Version < 25 {
			appended += `,"messageSoFar":` + text
		}
		event("turn.started", turn)
		event("message.received", turn+`,"message":`+text+`,"parts":[{"type":"text","text":`+text+`}]`)
		event("step.started", step+`,"modelId":"acme/echo-1"`)
		event("message.appended", step+`,`+appended)
		event("message.completed", step+`,"message":`+text+`,"finishReason":"stop"`)
		event("step.completed", step+`,"finishReason":"stop",`+usage)
		event("turn.completed", turn)
		event("session.waiting", waiting)
		e.turn++
	case c.Route == RouteCompact:
		about := step + `,"modelId":"acme/echo-1","sessionId":` + quote(e.session.id)
		event("compaction.requested", about+`,"usageInputTokens":1`)
		event("compaction.completed", about)
		event("session.waiting", waiting)
	case c.Route == RouteClear:
		event("context.cleared", turn+`,"sessionId":`+quote(e.session.id))
		event("session.waiting", waiting)
	case c.Route == RouteReset, c.Route == RouteEnd:
		event("session.completed", usage)
	}
	log.Append(lines...)
	if e.command.Route == RouteReset || e.command.Route == RouteEnd {
		log.End()
	}
}
