package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// nine is a fixed time.
func nine() *timestamppb.Timestamp {
	return timestamppb.New(time.Date(2026, 11, 18, 9, 0, 2, 5_000_000, time.UTC))
}

func source(line uint64, slot uint32) *evev1.SourceCoordinates {
	return &evev1.SourceCoordinates{StreamVersion: 27, Line: line, RecordIndex: slot}
}

func fact(f *evev1.Fact) *evev1.SubscribeResponse {
	f.Source, f.RecordedAt = source(7, 1), nine()
	return &evev1.SubscribeResponse{Item: &evev1.SubscribeResponse_Fact{Fact: f}}
}

func progress(p *evev1.Progress) *evev1.SubscribeResponse {
	p.Source = source(8, 0)
	return &evev1.SubscribeResponse{Item: &evev1.SubscribeResponse_Progress{Progress: p}}
}

func checkpoint(c *evev1.Checkpoint) *evev1.SubscribeResponse {
	return &evev1.SubscribeResponse{
		Cursor: &evev1.Cursor{StreamIndex: 9, StreamEventIndex: 2}, Item: &evev1.SubscribeResponse_Checkpoint{Checkpoint: c},
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	const front = "09:00:02.005     7.1  "
	tests := []struct {
		name string
		m    *evev1.SubscribeResponse
		want string
	}{
		{"text", fact(&evev1.Fact{Type: "content.completed", Data: &evev1.Fact_ContentCompleted{ContentCompleted: &evev1.ContentCompleted{
			Kind: "text", Phase: "reply", Text: new("High water\nis at 06:41."),
		}}}), front + `content.completed    text reply "High water\nis at 06:41."`},
		{"value", fact(&evev1.Fact{Type: "content.completed", Data: &evev1.Fact_ContentCompleted{ContentCompleted: &evev1.ContentCompleted{
			Kind: "result", Phase: "reply", ValueJson: new(`{"a":1}`),
		}}}), front + `content.completed    result reply {"a":1}`},
		{"value by reference", fact(&evev1.Fact{Type: "content.completed", Data: &evev1.Fact_ContentCompleted{ContentCompleted: &evev1.ContentCompleted{
			Kind: "file", ValueRef: &evev1.ValueReference{MediaType: new("image/png"), Size: proto.Uint64(918233)},
		}}}), front + `content.completed    file (by reference image/png 918233 bytes)`},
		{"parts", fact(&evev1.Fact{Type: "delivery.consumed", Data: &evev1.Fact_DeliveryConsumed{DeliveryConsumed: &evev1.DeliveryConsumed{
			Parts: []*evev1.UserPart{{Kind: "text", Text: new("Compare.")}, {Kind: "file", Filename: new("berths.csv"), MediaType: new("text/csv")}},
		}}}), front + `delivery.consumed    "Compare." file berths.csv text/csv`},
		{"call", fact(&evev1.Fact{Type: "call.requested", Data: &evev1.Fact_CallRequested{CallRequested: &evev1.CallRequested{
			CallId: "call_a", Capability: &evev1.Capability{Name: "berth_lookup"}, InputJson: new(`{"berth":"B12"}`),
		}}}), front + `call.requested       call_a berth_lookup {"berth":"B12"}`},
		{"failed call", fact(&evev1.Fact{Type: "call.settled", Data: &evev1.Fact_CallSettled{CallSettled: &evev1.CallSettled{
			CallId: "call_b", Outcome: evev1.CallOutcome_CALL_OUTCOME_FAILED, Error: &evev1.EveError{Code: "INVALID_INPUT", Message: "no berth"},
		}}}), front + `call.settled         call_b failed INVALID_INPUT "no berth"`},
		{"turn", fact(&evev1.Fact{Type: "turn.settled", Data: &evev1.Fact_TurnSettled{TurnSettled: &evev1.TurnSettled{
			TurnId: "turn_0", Outcome: evev1.TurnOutcome_TURN_OUTCOME_COMPLETED,
		}}}), front + `turn.settled         turn_0 completed`},
		{"end", fact(&evev1.Fact{Type: "session.ended", Data: &evev1.Fact_SessionEnded{SessionEnded: &evev1.SessionEnded{
			Outcome: evev1.SessionOutcome_SESSION_OUTCOME_FAILED, Error: &evev1.EveError{Code: "x", Message: "y"},
		}}}), front + `session.ended        failed x "y"`},
		{"prompt", fact(&evev1.Fact{Type: "interaction.opened", Data: &evev1.Fact_InteractionOpened{InteractionOpened: &evev1.InteractionOpened{
			InteractionId: "i_1", Request: &evev1.InteractionRequest{Kind: "approval", Prompt: "Refund?"},
		}}}), front + `interaction.opened   i_1 approval "Refund?"`},
		{"any other payload", fact(&evev1.Fact{Type: "delivery.settled", Data: &evev1.Fact_DeliverySettled{DeliverySettled: &evev1.DeliverySettled{
			DeliveryId: "d_1", Outcome: evev1.DeliveryOutcome_DELIVERY_OUTCOME_AWAITING_INPUT, TurnId: new("turn 0"),
		}}}), front + `delivery.settled     delivery_id=d_1 outcome=awaiting-input turn_id="turn 0"`},
		{"lists and messages", fact(&evev1.Fact{Type: "turn.paused", Data: &evev1.Fact_TurnPaused{TurnPaused: &evev1.TurnPaused{
			TurnId: "turn_0", Awaiting: []*evev1.Awaited{{Awaited: &evev1.Awaited_CallId{CallId: "c"}}, {}},
		}}}), front + `turn.paused          turn_id=turn_0 awaiting=[{call_id=c} {}]`},
		{"an outcome of a newer build", fact(&evev1.Fact{Type: "task.ended", Data: &evev1.Fact_TaskEnded{TaskEnded: &evev1.TaskEnded{Outcome: 99}}}),
			front + `task.ended           outcome=99`},
		{"unknown type", fact(&evev1.Fact{Type: "x.y", RecordJson: `{"type":"x.y","data":{"n": 1}}`}), front + `x.y                  {"n": 1}`},
		{"unknown type without data", fact(&evev1.Fact{Type: "x.y", RecordJson: `{"type":"x.y"}`}), front + `x.y                  {"type":"x.y"}`},
		{"not decoded", fact(&evev1.Fact{Type: "turn.started", DecodeError: "data: not an object", RecordJson: `{"type":"turn.started","data":1}`}),
			front + `turn.started         (not decoded: data: not an object) 1`},
		{"left out", fact(&evev1.Fact{Type: "call.settled", Omitted: &evev1.Omitted{Size: 5 << 20}}), front + `call.settled         (left out: 5242880 bytes)`},
		{"no payload", fact(&evev1.Fact{Type: "turn.started"}), front + `turn.started`},
		{"long", fact(&evev1.Fact{Type: strings.Repeat("t", 41), RecordJson: strings.Repeat("ä", 111)}),
			front + strings.Repeat("t", 39) + "… " + strings.Repeat("ä", 109) + "…"},

		{"delta without a time", progress(&evev1.Progress{Type: "content.delta", Data: &evev1.Progress_ContentDelta{ContentDelta: &evev1.ContentDelta{Delta: "High "}}}),
			`                 8.0  content.delta        "High "`},
		{"input", progress(&evev1.Progress{Type: "call.input", Data: &evev1.Progress_CallInput{CallInput: &evev1.CallInput{CallId: "c", Delta: `{"a`}}}),
			`                 8.0  call.input           c {"a`},
		{"snapshot", progress(&evev1.Progress{Type: "call.progress", Data: &evev1.Progress_CallProgress{CallProgress: &evev1.CallProgress{CallId: "c", Title: new("Pricing")}}}),
			`                 8.0  call.progress        c Pricing`},
		{"unknown progress", progress(&evev1.Progress{Type: "x", RecordJson: `{"data":[]}`}), `                 8.0  x                    []`},
		{"progress not decoded", progress(&evev1.Progress{Type: "x", DecodeError: "e"}), `                 8.0  x                    (not decoded: e)`},
		{"progress left out", progress(&evev1.Progress{Type: "x", Omitted: &evev1.Omitted{Size: 1}}), `                 8.0  x                    (left out: 1 bytes)`},

		{"event", &evev1.SubscribeResponse{Item: &evev1.SubscribeResponse_Event{Event: &evev1.LegacyEvent{
			Type: "turn.waiting", Source: source(3, 0), MetaAt: nine(), RecordJson: `{"type":"turn.waiting","data":{"sequence":0},"meta":{}}`,
		}}}, `09:00:02.005     3.0  turn.waiting         {"sequence":0}`},
		{"event left out", &evev1.SubscribeResponse{Item: &evev1.SubscribeResponse_Event{Event: &evev1.LegacyEvent{
			Type: "x", Source: source(3, 0), Omitted: &evev1.Omitted{Size: 9},
		}}}, `                 3.0  x                    (left out: 9 bytes)`},
		{"unreadable", &evev1.SubscribeResponse{Item: &evev1.SubscribeResponse_UnreadableLine{UnreadableLine: &evev1.UnreadableLine{
			Source: source(4, 0), Reason: evev1.UnreadableReason_UNREADABLE_REASON_INVALID_JSON, Text: "{\x1b[31m", Size: 6, Detail: "cut short",
		}}}, `                 4.0  (unreadable line)    invalid json, 6 bytes: cut short {\x1b[31m`},
		{"nothing known", &evev1.SubscribeResponse{}, `                      (an item this build does not know)`},

		{"heartbeat", checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_HEARTBEAT}), ""},
		{"positioned", checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_POSITIONED}), `                 9.2  --                   positioned`},
		{"caught up", checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_CAUGHT_UP, CaughtUpLine: proto.Uint64(8)}),
			`                 9.2  --                   caught up with line 8`},
		{"caught up with nothing", checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_CAUGHT_UP}),
			`                 9.2  --                   caught up: the session has no line yet`},
		{"skipped", checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_SOURCE_SKIPPED, Skipped: &evev1.SourceRange{FromLine: 3, FromRecordIndex: 1, ToLine: 9}}),
			`                 9.2  --                   the agent skipped 3.1 up to 9.0: gone`},
		{"version", checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_VERSION_CHANGED, StreamVersion: 26}),
			`                 9.2  --                   stream version 26 from here on`},
		{"fell behind", checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_FELL_BEHIND}), `                 9.2  --                   fell behind`},
		{"session ended", checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_ENDED, End: evev1.EndReason_END_REASON_SESSION_ENDED}),
			`                 9.2  --                   end: the session has ended`},
		{"bound", checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_ENDED, End: evev1.EndReason_END_REASON_BOUND_REACHED}),
			`                 9.2  --                   end: read as far as was asked for`},
		{"closed", checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_ENDED, End: evev1.EndReason_END_REASON_STREAM_CLOSED}),
			`                 9.2  --                   end: the agent has closed the stream without an end of the session`},
		{"end of a newer build", checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_ENDED, End: 99}), `                 9.2  --                   end`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.want
			if want != "" {
				want += "\n"
			}
			var out bytes.Buffer
			p := printer{w: &out}
			if err := p.print(tt.m); err != nil || out.String() != want {
				t.Errorf("%v\ngot  %swant %s", err, &out, want)
			}
			// In colour it is the same, and no colour is left switched on.
			out.Reset()
			p.colour = true
			if err := p.print(tt.m); err != nil {
				t.Error(err)
			}
			coloured := out.String()
			for _, c := range []colour{dim, red, green, yellow, blue} {
				coloured = strings.ReplaceAll(coloured, "\x1b["+string(c)+"m", "")
			}
			coloured = strings.ReplaceAll(coloured, "\x1b[0m", "")
			if strings.TrimRight(coloured, " \n") != strings.TrimRight(want, "\n") || strings.Count(out.String(), "\x1b[") != 2*strings.Count(out.String(), "\x1b[0m") {
				t.Errorf("in colour: %q", out.String())
			}
		})
	}
}

// TestPrintJSON: what is printed reads back as the message, is one line, and is safe to show.
func TestPrintJSON(t *testing.T) {
	t.Parallel()
	want := fact(&evev1.Fact{Type: "x", RecordJson: "{\"a\": \"\x1b[2J \u009b31m \u202e \U000e0041 \x7f \n é 日本 \U0001f600\"}"})
	var out bytes.Buffer
	p := printer{w: &out, json: true}
	if err := p.print(want); err != nil {
		t.Fatal(err)
	}
	line, ok := strings.CutSuffix(out.String(), "\n")
	if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); !ok || i >= 0 {
		t.Errorf("not one line of printable characters: %q", out.String())
	}
	if !strings.Contains(line, "é 日本 😀") {
		t.Errorf("text was escaped that needs no escape: %s", line)
	}
	var got evev1.SubscribeResponse
	if err := protojson.Unmarshal([]byte(line), &got); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"", ""},
		{"Ebbe & Flut, 潮汐 🌊", "Ebbe & Flut, 潮汐 🌊"},
		{"a\tb\nc\r", `a\tb\nc\x0d`},
		{"\x1b]0;title\x07", `\x1b]0;title\x07`},
		{"\u009b2J", `\u009b2J`},
		{"\u202egnp.exe", `\u202egnp.exe`},
		{"\U000e0041", `\ue0041`},
		{"a\xffb\x1b", "a\ufffdb\\x1b"},
	}
	for _, tt := range tests {
		if got := printable(tt.text); got != tt.want {
			t.Errorf("printable(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestColourful(t *testing.T) {
	t.Parallel()
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	tests := []struct {
		name string
		w    *os.File
		env  map[string]string
		want bool
	}{
		{"terminal", terminal, nil, true},
		{"file", file, nil, false},
		{"NO_COLOR", terminal, map[string]string{"NO_COLOR": "1"}, false},
		{"NO_COLOR empty", terminal, map[string]string{"NO_COLOR": ""}, true},
		{"dumb terminal", terminal, map[string]string{"TERM": "dumb"}, false},
	}
	for _, tt := range tests {
		if got := colourful(tt.w, func(name string) string { return tt.env[name] }); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	if colourful(&bytes.Buffer{}, func(string) string { return "" }) {
		t.Error("a buffer has no colours")
	}
}
