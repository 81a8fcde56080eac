package contract_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/evegateway/evegateway/gateway"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// A request that cannot be meant is refused with the field at fault, before Eve is asked anything.
func TestRequestInvalid(t *testing.T) {
	tests := []struct {
		name   string
		change func(*evev1.SubscribeRequest)
		field  string
	}{
		{"no session", func(r *evev1.SubscribeRequest) { r.SessionId = "" }, "session_id"},
		{"session with a slash", func(r *evev1.SubscribeRequest) { r.SessionId = "wrun_1/stream" }, "session_id"},
		{"session that leaves its place", func(r *evev1.SubscribeRequest) { r.SessionId = "wrun..1" }, "session_id"},
		{"session that is a path", func(r *evev1.SubscribeRequest) { r.SessionId = ".." }, "session_id"},
		{"session with an escape", func(r *evev1.SubscribeRequest) { r.SessionId = "wrun%2F1" }, "session_id"},
		{"session with a query", func(r *evev1.SubscribeRequest) { r.SessionId = "wrun_1?follow=0" }, "session_id"},
		{"session with a line end", func(r *evev1.SubscribeRequest) { r.SessionId = "wrun_1\r\nx: y" }, "session_id"},
		{"session of letters Eve does not use", func(r *evev1.SubscribeRequest) { r.SessionId = "wrün_1" }, "session_id"},
		{"session beyond all length", func(r *evev1.SubscribeRequest) { r.SessionId = strings.Repeat("a", 257) }, "session_id"},
		{"unknown agent", func(r *evev1.SubscribeRequest) { r.Agent = "ebb" }, "agent"},
		{"unknown position", func(r *evev1.SubscribeRequest) { r.Start = &evev1.SubscribeRequest_Position{Position: 7} }, "position"},
		{"no last lines", func(r *evev1.SubscribeRequest) { r.Start = &evev1.SubscribeRequest_LastLines{} }, "last_lines"},
		{"too many last lines", func(r *evev1.SubscribeRequest) { r.Start = &evev1.SubscribeRequest_LastLines{LastLines: 1 << 31} }, "last_lines"},
		{"until nothing", func(r *evev1.SubscribeRequest) { r.Until = &evev1.Until{} }, "until"},
		{"unknown payload", func(r *evev1.SubscribeRequest) { r.Payload = 5 }, "payload"},
		{"negative payload", func(r *evev1.SubscribeRequest) { r.Payload = -1 }, "payload"},
		{"no heartbeat", func(r *evev1.SubscribeRequest) { r.HeartbeatInterval = durationpb.New(0) }, "heartbeat_interval"},
		{"negative heartbeat", func(r *evev1.SubscribeRequest) { r.HeartbeatInterval = durationpb.New(-time.Second) }, "heartbeat_interval"},
		{"heartbeat that is no duration", func(r *evev1.SubscribeRequest) {
			r.HeartbeatInterval = &durationpb.Duration{Seconds: 1, Nanos: -1}
		}, "heartbeat_interval"},
		{"heartbeat beyond all durations", func(r *evev1.SubscribeRequest) {
			r.HeartbeatInterval = &durationpb.Duration{Seconds: math.MaxInt64}
		}, "heartbeat_interval"},
		{"messages too small for anything", func(r *evev1.SubscribeRequest) { r.MaxMessageBytes = 4<<10 - 1 }, "max_message_bytes"},
		{"unknown treatment of large lines", func(r *evev1.SubscribeRequest) { r.OnOversizeLine = 3 }, "on_oversize_line"},
	}
	var cases []contractCase
	for _, tt := range tests {
		cases = append(cases, contractCase{name: tt.name, lines: numbered(2), calls: []call{{
			ask: request(tt.change), reads: none(), status: "INVALID_ARGUMENT REQUEST_INVALID field=" + tt.field,
		}}})
	}
	runCases(t, cases)
}

// With several agents a request says which.
func TestRequestAgent(t *testing.T) {
	two := func(cfg *gateway.Config) {
		cfg.Agents = append(cfg.Agents, gateway.Agent{Name: "ebb", URL: cfg.Agents[0].URL, Transport: cfg.Agents[0].Transport})
	}
	named := func(agent string) func(*evev1.Cursor) *evev1.SubscribeRequest {
		return request(func(r *evev1.SubscribeRequest) { r.Agent = agent })
	}
	runCases(t, []contractCase{
		{name: "missing", config: two, calls: []call{
			{ask: named(""), reads: none(), status: "INVALID_ARGUMENT REQUEST_INVALID field=agent"},
		}},
		{name: "named, then taken from the cursor", config: two, lines: numbered(2), calls: []call{
			{ask: named("ebb"), want: pages(0, 1), stop: 1},
			{want: join(pages(1, 2), "CAUGHT_UP 1 @2", "ENDED STREAM_CLOSED @2")},
		}},
		{name: "the only one may be left out", lines: numbered(1), calls: []call{
			{ask: named(""), want: join(pages(0, 1), "CAUGHT_UP 0 @1", "ENDED STREAM_CLOSED @1")},
		}},
	})
}

// Requests at the edge of what is allowed work.
func TestRequestLimits(t *testing.T) {
	tests := []struct {
		name   string
		change func(*evev1.SubscribeRequest)
	}{
		{"smallest messages", func(r *evev1.SubscribeRequest) { r.MaxMessageBytes = 4 << 10 }},
		{"largest messages", func(r *evev1.SubscribeRequest) { r.MaxMessageBytes = math.MaxUint32 }},
		{"shortest heartbeat", func(r *evev1.SubscribeRequest) { r.HeartbeatInterval = durationpb.New(1) }},
		{"longest heartbeat", func(r *evev1.SubscribeRequest) { r.HeartbeatInterval = durationpb.New(math.MaxInt64) }},
		{"explicit beginning", func(r *evev1.SubscribeRequest) { r.Start = &evev1.SubscribeRequest_Position{} }},
		{"empty cursor", func(r *evev1.SubscribeRequest) { r.Start = &evev1.SubscribeRequest_Cursor{Cursor: &evev1.Cursor{}} }},
		{"cursor of the beginning", func(r *evev1.SubscribeRequest) {
			r.Start = &evev1.SubscribeRequest_Cursor{Cursor: &evev1.Cursor{Agent: rig.Agent, SessionId: session, StreamVersion: 27}}
		}},
		{"everything named twice", func(r *evev1.SubscribeRequest) {
			r.Agent = rig.Agent
			r.Start = &evev1.SubscribeRequest_Cursor{Cursor: &evev1.Cursor{Agent: rig.Agent, SessionId: session}}
		}},
		{"explicit payload", func(r *evev1.SubscribeRequest) { r.Payload = evev1.Payload_PAYLOAD_RAW_AND_TYPED }},
		{"explicit failure of large lines", func(r *evev1.SubscribeRequest) { r.OnOversizeLine = evev1.OnOversizeLine_ON_OVERSIZE_LINE_FAIL }},
	}
	var cases []contractCase
	for _, tt := range tests {
		cases = append(cases, contractCase{name: tt.name, lines: numbered(2), calls: []call{{
			ask: request(tt.change), want: join(pages(0, 2), "CAUGHT_UP 1 @2", "ENDED STREAM_CLOSED @2"),
		}}})
	}
	runCases(t, cases)
}

// A forged cursor gets the documented error, never a record that is not its own, never silence. The true cursor
// stands behind slot 0 of line 2, whose commit has three facts; the session goes on behind it to line 4.
func TestCursorForged(t *testing.T) {
	lines := []string{
		commit(0, "session.started"), commit(1, "turn.started"), commit(2, "model.requested", "model.started", "almanac.page"),
		delta("a"), commit(4, "turn.settled"),
	}
	const invalid = "INVALID_ARGUMENT CURSOR_INVALID field=cursor."
	other := func(agent, id string) func(*evev1.Cursor) *evev1.SubscribeRequest {
		return func(last *evev1.Cursor) *evev1.SubscribeRequest {
			req := rig.From(last)
			req.Agent, req.SessionId = agent, id
			return req
		}
	}
	tests := []struct {
		name   string
		ask    func(*evev1.Cursor) *evev1.SubscribeRequest
		status string
		reads  []string
	}{
		// Names.
		{"another session than the request's", other("", "wrun_2"), invalid + "session_id", none()},
		{"another agent than the request's", other("ebb", ""), invalid + "agent", none()},
		{"unknown agent", forged(func(c *evev1.Cursor) { c.Agent = "flood" }), invalid + "agent", none()},
		{"agent with control characters", forged(func(c *evev1.Cursor) { c.Agent = "tide\n" }), invalid + "agent", none()},
		{"session that is a path", forged(func(c *evev1.Cursor) { c.SessionId = "../wrun_1" }), invalid + "session_id", none()},
		{"session beyond all length", forged(func(c *evev1.Cursor) { c.SessionId = strings.Repeat("a", 513) }), invalid + "session_id", none()},

		// Position.
		{"version before all", forged(func(c *evev1.Cursor) { c.StreamVersion = 20 }), invalid + "stream_version", none()},
		{"version to come", forged(func(c *evev1.Cursor) { c.StreamVersion = 28 }), invalid + "stream_version", none()},
		{"version beyond all", forged(func(c *evev1.Cursor) { c.StreamVersion = math.MaxUint32 }), invalid + "stream_version", none()},
		{"version 0 with a position", forged(func(c *evev1.Cursor) { c.StreamVersion = 0 }), invalid + "stream_version", none()},
		{"version 0 with a slot", forged(func(c *evev1.Cursor) { c.StreamVersion, c.StreamIndex = 0, 0 }), invalid + "stream_version", none()},
		{"slot before version 27", forged(func(c *evev1.Cursor) { c.StreamVersion = 26 }), invalid + "stream_event_index", none()},
		{"line beyond 2^53-1", forged(func(c *evev1.Cursor) { c.StreamIndex = 1 << 53 }), invalid + "stream_index", none()},
		{"line beyond all", forged(func(c *evev1.Cursor) { c.StreamIndex = math.MaxUint64 }), invalid + "stream_index", none()},
		{
			"line 2^53-1", forged(func(c *evev1.Cursor) { c.StreamIndex, c.StreamEventIndex = 1<<53-1, 0 }),
			"OUT_OF_RANGE CURSOR_AHEAD line=9007199254740990 tail=4", nil,
		},
		{"a line beyond the tail", forged(func(c *evev1.Cursor) { c.StreamIndex, c.StreamEventIndex = 6, 0 }), "OUT_OF_RANGE CURSOR_AHEAD line=5 tail=4", nil},
		{"inside a line beyond the tail", forged(func(c *evev1.Cursor) { c.StreamIndex = 5 }), "OUT_OF_RANGE CURSOR_AHEAD line=5 tail=4", nil},
		{"slot beyond the line", forged(func(c *evev1.Cursor) { c.StreamEventIndex = 4 }), invalid + "stream_event_index", nil},
		{"slot beyond all", forged(func(c *evev1.Cursor) { c.StreamEventIndex = math.MaxUint32 }), invalid + "stream_event_index", nil},
		{"slot of a progress line", forged(func(c *evev1.Cursor) { c.StreamIndex, c.StreamEventIndex, c.Anchor = 3, 2, "" }), invalid + "stream_event_index", nil},

		// What stands behind the position.
		{"another line", forged(func(c *evev1.Cursor) { c.StreamIndex = 1 }), "FAILED_PRECONDITION CURSOR_DIVERGED line=1", nil},
		{"another line's start", forged(func(c *evev1.Cursor) { c.StreamIndex, c.StreamEventIndex = 2, 0 }), "FAILED_PRECONDITION CURSOR_DIVERGED line=1", nil},
		{"anchor of nothing", forged(func(c *evev1.Cursor) { c.Anchor = "1cAAAAAAAAAAAAAAAA" }), "FAILED_PRECONDITION CURSOR_DIVERGED line=2", nil},
		{"anchor with control characters", forged(func(c *evev1.Cursor) { c.Anchor = "1c\x00" }), invalid + "anchor", none()},
		{"anchor beyond all length", forged(func(c *evev1.Cursor) { c.Anchor = strings.Repeat("1", 257) }), invalid + "anchor", none()},
		{"anchor at the beginning", forged(func(c *evev1.Cursor) { c.StreamIndex, c.StreamEventIndex, c.LastCommitTime = 0, 0, nil }), invalid + "anchor", none()},

		// Time.
		{"negative time", forged(func(c *evev1.Cursor) { c.LastCommitTime = &timestamppb.Timestamp{Seconds: -1} }), invalid + "last_commit_time", none()},
		{"negative nanoseconds", forged(func(c *evev1.Cursor) { c.LastCommitTime.Nanos = -1 }), invalid + "last_commit_time", none()},
		{"1970", forged(func(c *evev1.Cursor) { c.LastCommitTime = &timestamppb.Timestamp{} }), invalid + "last_commit_time", none()},
		{"the year 10000", forged(func(c *evev1.Cursor) { c.LastCommitTime.Seconds = 253402300800 }), invalid + "last_commit_time", none()},
		{"time at the beginning", forged(func(c *evev1.Cursor) { c.StreamIndex, c.StreamEventIndex, c.Anchor = 0, 0, "" }), invalid + "last_commit_time", none()},

		// The end.
		{"ended inside a line", forged(func(c *evev1.Cursor) { c.SessionEnded = true }), invalid + "session_ended", none()},
		{"ended at the beginning", forged(func(c *evev1.Cursor) { c.Reset(); c.SessionId, c.SessionEnded = session, true }), invalid + "session_ended", none()},
	}
	var cases []contractCase
	for _, tt := range tests {
		cases = append(cases, contractCase{name: tt.name, lines: lines, open: true, calls: []call{
			{stop: 3, want: []string{"fact 0.0 session.started @1", "fact 1.0 turn.started @2", "fact 2.0 model.requested @2.1"}},
			{ask: tt.ask, status: tt.status, reads: tt.reads},
		}})
	}
	runCases(t, cases)
}

// A cursor taken to another session that exists is refused by what that session says, not served.
func TestCursorOfAnotherSession(t *testing.T) {
	runCases(t, []contractCase{{name: "same length, other content", lines: numbered(3), calls: []call{
		{stop: 2, want: pages(0, 2)},
		{
			before: func(s *fakeeve.Session) { other := numbered(9)[6:]; s.MemLog().Truncate(0); s.Append(other...) },
			status: "FAILED_PRECONDITION CURSOR_DIVERGED line=1", reads: []string{"tail 1"},
		},
	}}})
}
