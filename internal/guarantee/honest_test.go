package guarantee_test

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/guarantee"
)

const (
	agent   = "tide"
	session = "wrun_1"
)

// linesOf takes stored lines apart; an empty one was skipped by the server.
func linesOf(version int, raw ...string) guarantee.Lines {
	log := fakeeve.NewMemLog()
	for _, l := range raw {
		if l == "" {
			log.AppendRaw(nil)
			continue
		}
		log.Append(l)
	}
	return slices.Collect(fakeeve.Entries(log, version, 0, -1))
}

// sessionOf is a closed session of one history.
func sessionOf(lines guarantee.Lines) guarantee.Session {
	return guarantee.Session{Agent: agent, ID: session, Histories: []guarantee.Log{lines}, Closed: true}
}

func commit(n int, types ...string) string {
	facts := make([]string, len(types))
	for slot, typ := range types {
		facts[slot] = fmt.Sprintf(`{"type":%q,"data":{"m":"%d.%d"}}`, typ, n, slot)
	}
	return fmt.Sprintf(`{"at":"2026-11-18T09:00:%02d.000Z","facts":[%s]}`, n, strings.Join(facts, ","))
}

func progress(n int) string {
	return fmt.Sprintf(`{"progress":{"type":"content.delta","data":{"delta":"%d"}}}`, n)
}

func event(n int, typ string) string {
	return fmt.Sprintf(`{"type":%q,"data":{"n":%d},"meta":{"id":"evt_%d"}}`, typ, n, n)
}

// whole is a session with a bit of everything: 0 a commit of three, 1 progress, 2 garbage, 3 a commit of none, 4 and 5
// skipped, 6 a commit of two, 7 the end with a fact behind it, 8 what nobody is to see.
func whole() guarantee.Lines {
	return linesOf(27,
		commit(0, "session.started", "x.a", "turn.started"), progress(1), "no line", commit(3), "", "",
		commit(6, "turn.settled", "x.b"), commit(7, "session.ended", "x.last"), commit(8, "x.behind"))
}

// honest is what a gateway sends that keeps its promises: from a position of a session on, for a filter.
type honest struct {
	lines  guarantee.Lines
	filter *evev1.Filter
	line   int64
	slot   int64
	out    []*evev1.SubscribeResponse
}

func (h *honest) cursor(line, slot int64) *evev1.Cursor {
	c := &evev1.Cursor{Agent: agent, SessionId: session, StreamVersion: 27, StreamIndex: uint64(line), StreamEventIndex: uint32(slot)}
	if line == 0 && slot == 0 {
		c.StreamVersion = 0
		return c
	}
	last := line
	if slot == 0 {
		last--
	}
	if last < int64(len(h.lines)) && h.lines[last].Kind != fakeeve.Skipped {
		c.Anchor = fmt.Sprintf("line %d", last)
	}
	if slot == 0 && isEnd(h.lines, last) {
		c.SessionEnded = true
	}
	return c
}

func isEnd(lines guarantee.Lines, i int64) bool {
	return i >= 0 && i < int64(len(lines)) && slices.ContainsFunc(lines[i].Records, func(r fakeeve.Record) bool {
		return r.Type == "session.ended" || r.Type == "session.completed"
	})
}

func (h *honest) send(m *evev1.SubscribeResponse) {
	m.Cursor = h.cursor(h.line, h.slot)
	h.out = append(h.out, m)
}

func (h *honest) checkpoint(c *evev1.Checkpoint) {
	h.send(&evev1.SubscribeResponse{Item: &evev1.SubscribeResponse_Checkpoint{Checkpoint: c}})
}

func (h *honest) wanted(typ string) bool {
	f := h.filter
	return !slices.Contains(f.GetExcludeTypes(), typ) && (len(f.GetIncludeTypes()) == 0 || slices.Contains(f.GetIncludeTypes(), typ))
}

// read sends everything to the end of the session or the log.
func (h *honest) read() {
	for h.line < int64(len(h.lines)) {
		e := h.lines[h.line]
		switch e.Kind {
		case fakeeve.Skipped:
			from, slot := h.line, h.slot
			for h.line < int64(len(h.lines)) && h.lines[h.line].Kind == fakeeve.Skipped {
				h.line++
			}
			h.slot = 0
			h.checkpoint(&evev1.Checkpoint{
				Reason:  evev1.CheckpointReason_CHECKPOINT_REASON_SOURCE_SKIPPED,
				Skipped: &evev1.SourceRange{FromLine: uint64(from), FromRecordIndex: uint32(slot), ToLine: uint64(h.line)},
			})
		case fakeeve.Unreadable:
			at := &evev1.SourceCoordinates{StreamVersion: 27, Line: uint64(h.line), EndOfLine: true}
			h.line++
			h.send(&evev1.SubscribeResponse{Item: &evev1.SubscribeResponse_UnreadableLine{
				UnreadableLine: &evev1.UnreadableLine{Source: at, Text: string(e.Raw), Size: uint64(len(e.Raw))},
			}})
		default:
			h.records(e)
		}
		if isEnd(h.lines, h.line-1) {
			h.ended(evev1.EndReason_END_REASON_SESSION_ENDED)
			return
		}
	}
	h.ended(evev1.EndReason_END_REASON_STREAM_CLOSED)
}

func (h *honest) ended(why evev1.EndReason) {
	h.checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_ENDED, End: why})
}

func (h *honest) records(e fakeeve.Entry) {
	slot, last := h.slot, int64(-1)
	for i := slot; i < int64(len(e.Records)); i++ {
		if h.wanted(e.Records[i].Type) {
			last = i
		}
	}
	for ; slot <= last; slot++ {
		if !h.wanted(e.Records[slot].Type) {
			continue
		}
		at := &evev1.SourceCoordinates{StreamVersion: 27, Line: uint64(e.Line), RecordIndex: uint32(slot), EndOfLine: slot == last}
		h.line, h.slot = e.Line, slot+1
		if slot == last {
			h.line, h.slot = e.Line+1, 0
		}
		h.send(message(e.Records[slot], at))
	}
	h.line, h.slot = e.Line+1, 0
}

func message(r fakeeve.Record, at *evev1.SourceCoordinates) *evev1.SubscribeResponse {
	m := &evev1.SubscribeResponse{}
	switch r.Kind {
	case fakeeve.Commit:
		m.Item = &evev1.SubscribeResponse_Fact{Fact: &evev1.Fact{Type: r.Type, Source: at, RecordJson: string(r.Raw)}}
	case fakeeve.Progress:
		m.Item = &evev1.SubscribeResponse_Progress{Progress: &evev1.Progress{Type: r.Type, Source: at, RecordJson: string(r.Raw)}}
	default:
		m.Item = &evev1.SubscribeResponse_Event{Event: &evev1.LegacyEvent{Type: r.Type, Source: at, RecordJson: string(r.Raw)}}
	}
	return m
}

// reading is the call of an honest gateway, from a cursor, or from the beginning when that is nil.
func reading(lines guarantee.Lines, from *evev1.Cursor, filter *evev1.Filter) guarantee.Call {
	req := &evev1.SubscribeRequest{SessionId: session, Filter: filter}
	if from != nil {
		req.Start = &evev1.SubscribeRequest_Cursor{Cursor: from}
	}
	h := &honest{lines: lines, filter: filter, line: int64(from.GetStreamIndex()), slot: int64(from.GetStreamEventIndex())}
	if from.GetSessionEnded() {
		h.ended(evev1.EndReason_END_REASON_SESSION_ENDED)
	} else {
		h.read()
	}
	return guarantee.Call{Request: req, Messages: h.out}
}

// stop is the call, left after n messages.
func stop(c guarantee.Call, n int) guarantee.Call {
	c.Messages, c.Left = c.Messages[:n], true
	return c
}

// bounded gives a call that ended with the session the bound of the tail, and the last stored line as the tail.
func until(c guarantee.Call, u *evev1.Until, tail int64) guarantee.Call {
	c.Request.Until, c.Tail, c.Known = u, tail, true
	return c
}

// at finds the first message whose cursor stands there.
func at(c guarantee.Call, line, slot int) int {
	return slices.IndexFunc(c.Messages, func(m *evev1.SubscribeResponse) bool {
		return m.GetCursor().GetStreamIndex() == uint64(line) && m.GetCursor().GetStreamEventIndex() == uint32(slot)
	})
}

// drop takes messages out.
func drop(c guarantee.Call, from, to int) guarantee.Call {
	c.Messages = slices.Delete(slices.Clone(c.Messages), from, to)
	return c
}

// change changes one message.
func change(c guarantee.Call, i int, f func(*evev1.SubscribeResponse)) guarantee.Call {
	c.Messages = slices.Clone(c.Messages)
	m, ok := proto.Clone(c.Messages[i]).(*evev1.SubscribeResponse)
	if !ok {
		panic("not a message")
	}
	f(m)
	c.Messages[i] = m
	return c
}

// insert puts a message in.
func insert(c guarantee.Call, i int, m *evev1.SubscribeResponse) guarantee.Call {
	c.Messages = slices.Insert(slices.Clone(c.Messages), i, m)
	return c
}

// failed ends a call with an error of the gateway behind n messages.
func failed(c guarantee.Call, n int, reason string) guarantee.Call {
	s, err := status.New(codes.FailedPrecondition, "no").WithDetails(&errdetails.ErrorInfo{Domain: "eve.v1", Reason: reason})
	if err != nil {
		panic(err)
	}
	c.Messages, c.Err = c.Messages[:n], s.Err()
	return c
}

// heartbeat is a checkpoint at a position.
func heartbeat(lines guarantee.Lines, line, slot int64) *evev1.SubscribeResponse {
	h := &honest{lines: lines, line: line, slot: slot}
	h.checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_HEARTBEAT})
	return h.out[0]
}
