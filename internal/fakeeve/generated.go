package fakeeve

import (
	"fmt"
	"strconv"
	"time"
)

// Shape is what the lines of a generated session are like.
type Shape uint8

const (
	// SmallDeltas are text deltas of about 64 bytes.
	SmallDeltas Shape = iota
	// Commits are tool calls with about 1 KB of input and output: one commit of three facts, or one event.
	Commits
	// LargeResults are tool calls with a result of 64 KB.
	LargeResults
	// Mixed is what a working agent writes, in the proportions of the transcripts: mostly deltas and small calls, now
	// and then a result of a few KB.
	Mixed
)

// block is how many lines a turn of a generated session has.
const block = 32

// generated is a session made up line by line, from nothing but the number of the line.
type generated struct {
	n       int64
	shape   Shape
	version int
}

var (
	_ Log      = (*generated)(nil)
	_ appender = (*generated)(nil)
)

// Generated is a finished session of n lines in a stream version, 21 to 27, that takes no memory: each line is computed
// from its number, the same every time. Its records keep the lifecycle rules of contract 3.15: a session that starts,
// one turn of 32 lines after the other, and in the last line the end of everything that is open. [Continue] makes it
// the history of a live session (to which its last line, the session's end, should then not belong: see [Head]).
func Generated(n int64, shape Shape, version int) Log {
	if shape > Mixed || version < 21 || version > 27 {
		panic(fmt.Sprintf("fakeeve: no generated log of shape %d in version %d", shape, version))
	}
	return &generated{n: n, shape: shape, version: version}
}

// Head is the first n lines of a log.
func Head(l Log, n int64) Log {
	h := MemLog{base: l, baseLen: min(n, l.Len()), ended: true}
	return &h
}

// Len implements [Log].
func (g *generated) Len() int64 { return g.n }

// Line implements [Log].
func (g *generated) Line(i int64) []byte { return g.appendLine(make([]byte, 0, 512), i) }

func (g *generated) appendLine(dst []byte, i int64) []byte {
	// Line 0 opens the session; from line 1 on turns follow one another.
	w := writer{b: dst, line: i, turn: (i - 1) / block, place: (i - 1) % block, shape: g.shape, version: g.version}
	last := i == g.n-1
	if g.version >= 27 {
		w.commitLine(last)
	} else {
		w.eventLine(last)
	}
	return w.b
}

// writer writes one line.
type writer struct {
	b           []byte
	line        int64
	turn, place int64 // the turn the line is in, and which of its lines it is
	shape       Shape
	version     int
	facts       int // written in this commit
}

// bodyShape is what a line in the middle of a turn is.
type bodyShape uint8

const (
	deltaLine bodyShape = iota
	callLine
)

// content tells what the line at this place of the turn holds, and how large its text is.
func (w *writer) content(place int64) (bodyShape, int) {
	switch w.shape {
	case Commits:
		if w.version < 27 {
			return callLine, 700
		}
		return callLine, 400
	case LargeResults:
		return callLine, 64 << 10
	case Mixed:
		switch {
		case place == 25:
			return callLine, 4 << 10
		case place%5 == 4:
			return callLine, 160
		}
		return deltaLine, 16 + int(place*7%80)
	default:
		return deltaLine, 64
	}
}

// The places of a turn's lines that are not its body.
const (
	placeStart   = 0
	placeModel   = 1
	placeContent = block - 2
	placeSettled = block - 1
)

func (w *writer) str(s string) *writer { w.b = append(w.b, s...); return w }
func (w *writer) num(n int64) *writer  { w.b = strconv.AppendInt(w.b, n, 10); return w }

// hex pads a number, for ids of one width.
func (w *writer) hex(n int64, width int) *writer {
	const digits = "0123456789abcdef"
	for shift := (width - 1) * 4; shift >= 0; shift -= 4 {
		d := int64(0)
		if shift < 64 {
			d = n >> shift & 15
		}
		w.b = append(w.b, digits[d])
	}
	return w
}

// genesis is the time of line 0, in milliseconds since 1970; each line is 10 ms later.
const genesis = 1794992400000

func (w *writer) time() *writer {
	w.b = time.UnixMilli(genesis+10*w.line).UTC().AppendFormat(w.b, "2006-01-02T15:04:05.000Z")
	return w
}

// words is what generated text is cut from: nothing in it needs an escape in JSON.
const words = "The tide at Gull Point turns at a quarter to seven and the ferry waits for no one; berth B12 is free until noon. "

// text appends n bytes of text, beginning at a place of its own for each line.
func (w *writer) text(seed int64, n int) *writer {
	at := int(seed * 37 % int64(len(words)))
	for n > 0 {
		piece := words[at:min(len(words), at+n)]
		w.b = append(w.b, piece...)
		n -= len(piece)
		at = 0
	}
	return w
}

// deltas appends the text of all delta lines of the turn before place.
func (w *writer) deltas(before int64) *writer {
	for place := int64(placeModel + 1); place < before; place++ {
		if kind, size := w.content(place); kind == deltaLine {
			w.text(w.turn*block+1+place, size)
		}
	}
	return w
}

func (w *writer) hasDeltas(before int64) bool {
	for place := int64(placeModel + 1); place < before; place++ {
		if kind, _ := w.content(place); kind == deltaLine {
			return true
		}
	}
	return false
}

func (w *writer) delivery() *writer { return w.str("00000000-0000-4000-8000-").hex(w.turn, 12) }

// fact opens a fact of the turn, or of its run, up to the members of data.
func (w *writer) fact(typ string, turn, run bool) *writer {
	if w.facts > 0 {
		w.str(",")
	}
	w.facts++
	w.str(`{"type":"`).str(typ).str(`",`)
	if turn {
		w.str(`"scope":{"turnId":"turn_`).num(w.turn)
		if run {
			w.str(`","runId":"run_`).num(w.turn)
		}
		w.str(`"},`)
	}
	return w.str(`"data":{`)
}

func (w *writer) admit() {
	w.fact("delivery.admitted", false, false).str(`"deliveryId":"`).delivery().
		str(`","principal":{"id":"user_1","type":"user"},"source":{"channel":"http"}}}`)
}

// commitLine writes a line of version 27.
func (w *writer) commitLine(last bool) {
	if w.line > 0 && !last && w.place > placeModel && w.place < placeContent {
		if kind, size := w.content(w.place); kind == deltaLine {
			w.str(`{"progress":{"type":"content.delta","scope":{"turnId":"turn_`).num(w.turn).str(`","runId":"run_`).num(w.turn).
				str(`"},"data":{"partId":"part_`).num(w.turn).str(`",`)
			if !w.hasDeltas(w.place) {
				w.str(`"kind":"text",`)
			}
			w.str(`"delta":"`).text(w.line, size).str(`"}}}`)
			return
		}
	}
	w.str(`{"at":"`).time().str(`","facts":[`)
	switch {
	case w.line == 0:
		w.fact("session.started", false, false).str(`"runtime":{"agentId":"tide-desk","agentName":"Tide Desk","eveVersion":"1.0.1"}}}`)
		if last {
			w.fact("session.ended", false, false).str(`"outcome":"completed"}}`)
		} else {
			w.admit()
		}
	case last:
		w.closing()
	case w.place == placeStart:
		if w.turn > 0 {
			w.admit()
		}
		w.fact("turn.started", true, false).str(`"turnId":"turn_`).num(w.turn).str(`","cause":{"deliveryId":"`).delivery().str(`"},"follows":`)
		if w.turn > 0 {
			w.str(`"turn_`).num(w.turn - 1).str(`"}}`)
		} else {
			w.str(`null}}`)
		}
		w.fact("delivery.consumed", true, false).str(`"deliveryId":"`).delivery().str(`","turnId":"turn_`).num(w.turn).
			str(`","parts":[{"kind":"text","text":"`).text(w.turn, 48).str(`"}]}}`)
	case w.place == placeModel:
		w.fact("model.requested", true, true).str(`"runId":"run_`).num(w.turn).str(`","owner":{"turnId":"turn_`).num(w.turn).str(`"}}}`)
		w.fact("model.started", true, true).str(`"runId":"run_`).num(w.turn).str(`","modelId":"acme/brine-2"}}`)
	case w.place == placeContent:
		w.fact("content.completed", true, true).str(`"partId":"part_`).num(w.turn).str(`","runId":"run_`).num(w.turn).
			str(`","kind":"text","value":"`).deltas(placeContent).str(`","phase":"reply"}}`)
		w.fact("model.settled", true, true).str(`"runId":"run_`).num(w.turn).str(`","outcome":"completed","finishReason":"stop"}}`)
		w.fact("usage.recorded", true, true).str(`"owner":{"runId":"run_`).num(w.turn).
			str(`"},"kind":"model","usage":{"inputTokens":812,"outputTokens":`).num(w.turn % 500).
			str(`,"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.0021}}}`)
	case w.place == placeSettled:
		w.settle("completed")
	default:
		_, size := w.content(w.place)
		w.fact("call.requested", true, true).str(`"callId":"call_`).num(w.line).str(`","owner":{"runId":"run_`).num(w.turn).
			str(`"},"capability":{"kind":"tool","name":"read_tide_table"},"input":{"station":"`).text(w.line, min(size, 160)).str(`"}}}`)
		w.fact("call.started", true, true).str(`"callId":"call_`).num(w.line).str(`"}}`)
		w.fact("call.settled", true, true).str(`"callId":"call_`).num(w.line).str(`","outcome":"completed","output":{"rows":"`).
			text(w.line+1, size).str(`"}}}`)
	}
	w.str(`]}`)
}

// settle ends the turn and its delivery.
func (w *writer) settle(outcome string) {
	w.fact("turn.settled", true, false).str(`"turnId":"turn_`).num(w.turn).str(`","outcome":"`).str(outcome)
	if outcome == "completed" {
		w.str(`","reply":["part_`).num(w.turn).str(`"]}}`)
	} else {
		w.str(`","cause":{"policy":"session-timeout"}}}`)
	}
	w.fact("delivery.settled", false, false).str(`"deliveryId":"`).delivery().str(`","outcome":"handled","turnId":"turn_`).num(w.turn).str(`"}}`)
}

// closing ends the session and all that the lines before left open.
func (w *writer) closing() {
	if w.place == placeStart { // between two turns; before the first one its message still waits
		if w.turn == 0 {
			w.fact("delivery.settled", false, false).str(`"deliveryId":"`).delivery().str(`","outcome":"failed","reason":"session-ended"}}`)
		}
	} else {
		if w.place > placeModel && w.place <= placeContent {
			w.fact("model.settled", true, true).str(`"runId":"run_`).num(w.turn).str(`","outcome":"interrupted"}}`)
		}
		w.settle("cancelled")
	}
	w.fact("session.ended", false, false).str(`"outcome":"completed","cause":{"policy":"session-timeout"}}}`)
}

// event opens an event of the turn, up to the members of data; step says whether it belongs to its step.
func (w *writer) event(typ string, turn, step bool) *writer {
	w.str(`{"type":"`).str(typ).str(`","data":{`)
	if turn {
		w.str(`"sequence":`).num(w.turn).str(`,"turnId":"turn_`).num(w.turn).str(`"`)
		if step {
			w.str(`,"stepIndex":0`)
		}
	}
	return w
}

// eventLine writes a line of version 21 to 26. One event a line: a turn of 32 lines has fewer things in it.
func (w *writer) eventLine(last bool) {
	kind, size := w.eventContent(w.place)
	turn := true
	switch {
	case w.line == 0:
		turn = false
		w.event("session.started", false, false).str(`"runtime":{"agentId":"tide-desk","eveVersion":"0.80.1"}}`)
	case last:
		turn = false
		w.event("session.completed", false, false).
			str(`"usage":{"inputTokens":812,"outputTokens":40,"cacheReadTokens":0,"cacheWriteTokens":0}}`)
	case w.place == 0:
		w.event("turn.started", true, false).str(`}`)
	case w.place == 1:
		w.event("message.received", true, false).str(`,"message":"`).text(w.turn, 48).
			str(`","parts":[{"type":"text","text":"`).text(w.turn, 48).str(`"}]}`)
	case w.place == 2:
		w.event("step.started", true, true).str(`,"modelId":"acme/brine-1"}`)
	case w.place == block-4:
		w.event("message.completed", true, true).str(`,"message":"`).eventDeltas(w.place).str(`","finishReason":"stop"}`)
	case w.place == block-3:
		w.event("step.completed", true, true).
			str(`,"finishReason":"stop","usage":{"inputTokens":812,"outputTokens":40,"cacheReadTokens":0,"cacheWriteTokens":0}}`)
	case w.place == block-2:
		w.event("turn.completed", true, false).str(`}`)
	case w.place == block-1:
		w.event("session.waiting", false, false).str(`"continuationToken":"wrun_generated","wait":"next-user-message"}`)
	case kind == deltaLine:
		w.event("message.appended", true, true).str(`,"messageDelta":"`).text(w.line, size).str(`"`)
		if w.version < 25 {
			w.str(`,"messageSoFar":"`).eventDeltas(w.place + 1).str(`"`)
		}
		w.str(`}`)
	case w.place%2 == 1:
		w.event("actions.requested", true, true).str(`,"actions":[{"kind":"tool-call","callId":"call_`).num(w.line).
			str(`","toolName":"read_tide_table","input":{"station":"`).text(w.line, min(size, 160)).str(`"}}]}`)
	default:
		w.event("action.result", true, true).str(`,"status":"completed","result":{"kind":"tool-result","callId":"call_`).num(w.line-1).
			str(`","toolName":"read_tide_table","output":{"rows":"`).text(w.line, size).str(`"}}}`)
	}
	w.str(`,"meta":{"at":"`).time().str(`","id":"evt_`).hex(w.line, 26).str(`"`)
	if turn {
		w.str(`,"deliveryIds":["`).delivery().str(`"]`)
	}
	w.str(`}}`)
}

// eventContent is content for the places events have: a call takes two of them, and the last is a delta.
func (w *writer) eventContent(place int64) (bodyShape, int) {
	if place == block-5 {
		return deltaLine, 64
	}
	return w.content(place - (place+1)%2)
}

// eventDeltas is deltas for the places events have.
func (w *writer) eventDeltas(before int64) *writer {
	for place := int64(3); place < min(before, block-4); place++ {
		if kind, size := w.eventContent(place); kind == deltaLine {
			w.text(w.turn*block+1+place, size)
		}
	}
	return w
}
