package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// demoTurn is one exchange of the demo's live session.
type demoTurn struct {
	question, tool, input, output, answer string
}

func demoTurns() []demoTurn {
	return []demoTurn{
		{
			"When is high water at Gull Point tomorrow?", "tide_table", `{"place":"Gull Point","day":"tomorrow"}`,
			`{"high":["06:41","19:02"]}`, "High water at Gull Point is at 06:41 and 19:02 tomorrow.",
		},
		{
			"Is berth B12 deep enough for 3.5 m?", "berth_lookup", `{"berth":"B12"}`,
			`{"berth":"B12","depthM":4.2}`, "Yes. B12 is 4.2 m deep, which leaves 0.7 m under a draught of 3.5 m.",
		},
		{
			"Will it be windy tonight?", "wind_forecast", `{"place":"harbor","hours":12}`,
			`{"knots":[11,14,18,15]}`, "It picks up to 18 knots around midnight and eases towards the morning.",
		},
	}
}

// demoRecord and demoLine are the wire's (contract 2.3).
type demoRecord struct {
	Type  string            `json:"type"`
	Scope map[string]string `json:"scope,omitempty"`
	Data  any               `json:"data"`
}

type demoLine struct {
	At       string       `json:"at,omitempty"`
	Facts    []demoRecord `json:"facts,omitempty"`
	Progress *demoRecord  `json:"progress,omitempty"`
}

// demoSteps is how many steps a turn has, the pause behind it included.
const demoSteps = 19

// demoStep is the line that step n of the live session appends; empty: none. The session is a sequence of turns that
// keep the rules of contract 3.15, for ever.
func demoStep(n int, now time.Time) string {
	turns := demoTurns()
	t, step := n/demoSteps, n%demoSteps
	turn := turns[t%len(turns)]
	turnID, deliveryID, callID, partID := fmt.Sprintf("turn_%d", t), fmt.Sprintf("delivery_%d", t), fmt.Sprintf("call_%d", t), fmt.Sprintf("part_%d", t)
	run := func(i int) string { return fmt.Sprintf("run_%d", 2*t+i) } // the first asks for the call, the second answers
	inTurn := map[string]string{"turnId": turnID}
	inRun := func(i int) map[string]string { return map[string]string{"turnId": turnID, "runId": run(i)} }

	modelStarts := func(i int) []demoRecord {
		return []demoRecord{
			{"model.requested", inRun(i), map[string]any{"runId": run(i), "owner": map[string]any{"turnId": turnID}}},
			{"model.started", inRun(i), map[string]any{"runId": run(i), "modelId": "acme/brine-2"}},
		}
	}
	modelSettles := func(i int, why string) []demoRecord {
		usage := map[string]any{"inputTokens": 800 + 40*t, "outputTokens": 20 + 9*i, "cacheReadTokens": 640, "cacheWriteTokens": 0}
		return []demoRecord{
			{"usage.recorded", inRun(i), map[string]any{"owner": map[string]any{"runId": run(i)}, "kind": "model", "usage": usage}},
			{"model.settled", inRun(i), map[string]any{"runId": run(i), "outcome": "completed", "finishReason": why}},
		}
	}
	commit := func(facts ...demoRecord) string {
		return demoLine{At: now.UTC().Format("2006-01-02T15:04:05.000Z"), Facts: facts}.text()
	}
	progress := func(typ string, run int, data map[string]any) string {
		return demoLine{Progress: &demoRecord{typ, inRun(run), data}}.text()
	}

	switch step {
	case 0:
		facts := []demoRecord{{"delivery.admitted", nil, map[string]any{
			"deliveryId": deliveryID, "principal": map[string]any{"id": "user-ada", "type": "user"}, "source": map[string]any{"channel": "eve"},
		}}}
		if t == 0 {
			facts = append([]demoRecord{{"session.started", nil, map[string]any{
				"runtime": map[string]any{"agentId": demoAgent, "agentName": "Tide Desk", "eveVersion": "1.0.1"},
			}}}, facts...)
		}
		return commit(facts...)
	case 1:
		var follows any
		if t > 0 {
			follows = fmt.Sprintf("turn_%d", t-1)
		}
		return commit(
			demoRecord{"turn.started", inTurn, map[string]any{"turnId": turnID, "cause": map[string]any{"deliveryId": deliveryID}, "follows": follows}},
			demoRecord{"delivery.consumed", inTurn, map[string]any{
				"deliveryId": deliveryID, "turnId": turnID, "parts": []any{map[string]any{"kind": "text", "text": turn.question}},
			}},
		)
	case 2:
		return commit(modelStarts(0)...)
	case 3:
		return progress("call.input", 0, map[string]any{"callId": callID, "name": turn.tool, "delta": turn.input[:10]})
	case 4:
		return progress("call.input", 0, map[string]any{"callId": callID, "delta": turn.input[10:]})
	case 5:
		return commit(append([]demoRecord{{"call.requested", inRun(0), map[string]any{
			"callId": callID, "owner": map[string]any{"runId": run(0)}, "capability": map[string]any{"kind": "tool", "name": turn.tool},
			"input": json.RawMessage(turn.input),
		}}}, modelSettles(0, "tool-calls")...)...)
	case 6:
		return commit(demoRecord{"call.started", inRun(0), map[string]any{"callId": callID, "clearedBy": map[string]any{"policy": "read-only"}}})
	case 7:
		return progress("call.progress", 0, map[string]any{"callId": callID, "title": "Looking it up", "output": map[string]any{"stage": "asking"}})
	case 8:
		return commit(demoRecord{"call.settled", inRun(0), map[string]any{"callId": callID, "outcome": "completed", "output": json.RawMessage(turn.output)}})
	case 9:
		return commit(modelStarts(1)...)
	case 10, 11, 12, 13, 14:
		data := map[string]any{"partId": partID, "delta": demoPiece(turn.answer, step-10, 5)}
		if step == 10 {
			data["kind"] = "text"
		}
		return progress("content.delta", 1, data)
	case 15:
		return commit(append([]demoRecord{{"content.completed", inRun(1), map[string]any{
			"partId": partID, "runId": run(1), "kind": "text", "value": turn.answer, "phase": "reply",
		}}}, modelSettles(1, "stop")...)...)
	case 16:
		return commit(
			demoRecord{"turn.settled", inTurn, map[string]any{"turnId": turnID, "outcome": "completed", "reply": []string{partID}}},
			demoRecord{"delivery.settled", nil, map[string]any{"deliveryId": deliveryID, "outcome": "handled", "turnId": turnID}},
		)
	}
	return ""
}

// demoPiece is the i-th of n pieces of a text, cut between words.
func demoPiece(text string, i, n int) string {
	words := strings.SplitAfter(text, " ")
	return strings.Join(words[i*len(words)/n:(i+1)*len(words)/n], "")
}

// text is the line as it is stored.
func (l demoLine) text() string {
	text, err := json.Marshal(l)
	if err != nil {
		panic("demo: a line of the script is no JSON: " + err.Error())
	}
	return string(text)
}
