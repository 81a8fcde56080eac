package contract_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/rig"
)

// contentOf says what a record brought: "raw", "typed", both, an error of decoding, or nothing.
func contentOf(m *evev1.SubscribeResponse) string {
	var parts []string
	add := func(have bool, name string) {
		if have {
			parts = append(parts, name)
		}
	}
	switch item := m.GetItem().(type) {
	case *evev1.SubscribeResponse_Fact:
		add(item.Fact.GetRecordJson() != "", "raw")
		add(item.Fact.GetData() != nil, "typed")
		add(item.Fact.GetDecodeError() != "", "decode error")
	case *evev1.SubscribeResponse_Progress:
		add(item.Progress.GetRecordJson() != "", "raw")
		add(item.Progress.GetData() != nil, "typed")
		add(item.Progress.GetDecodeError() != "", "decode error")
	case *evev1.SubscribeResponse_Event:
		add(item.Event.GetRecordJson() != "", "raw")
	case *evev1.SubscribeResponse_UnreadableLine:
		add(item.UnreadableLine.GetText() != "", "raw")
	}
	return strings.Join(parts, ", ")
}

// Each form brings what it says, and none but the empty one loses anything; the cursors are the same in all.
func TestPayload(t *testing.T) {
	lines := []string{
		`{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"turn.paused","scope":{"turnId":"turn_0"},"data":{"turnId":"turn_0","awaiting":[]}},` +
			`{"type":"almanac.page","data":{"n":1}},{"type":"turn.paused","data":{"turnId":7}}]}`,
		delta("a"),
		`{"progress":{"type":"content.shimmer","data":{}}}`,
		legacy(3, "turn.waiting"),
		"not json",
	}
	names := []string{"known fact", "unknown fact", "fact that does not decode", "known progress", "unknown progress", "older event", "unreadable line"}
	tests := []struct {
		payload evev1.Payload
		want    []string
	}{
		{evev1.Payload_PAYLOAD_UNSPECIFIED, []string{"raw, typed", "raw", "raw, decode error", "raw, typed", "raw", "raw", "raw"}},
		{evev1.Payload_PAYLOAD_RAW_AND_TYPED, []string{"raw, typed", "raw", "raw, decode error", "raw, typed", "raw", "raw", "raw"}},
		{evev1.Payload_PAYLOAD_RAW, []string{"raw", "raw", "raw", "raw", "raw", "raw", "raw"}},
		{evev1.Payload_PAYLOAD_TYPED, []string{"typed", "raw", "raw, decode error", "typed", "raw", "raw", "raw"}},
		{evev1.Payload_PAYLOAD_NONE, []string{"", "", "", "", "", "", ""}},
	}
	var cursors []*evev1.Cursor
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			c := contractCase{lines: lines}
			r := rig.New(t, c.options())
			defer r.Close()
			s := r.Eve.AddSession(session, c.spec())
			req := rig.FromStart(session)
			req.Payload = tt.payload
			res := r.Subscribe(t.Context(), req, nil)
			var got []string
			var seen []*evev1.Cursor
			for i, m := range res.Records() {
				got = append(got, contentOf(m))
				seen = append(seen, m.GetCursor())
				if f := m.GetFact(); f != nil && (f.GetType() == "" || f.GetRecordedAt() == nil || f.GetSource() == nil) {
					t.Errorf("%v: %s lacks what every form has: %v", tt.payload, names[i], f)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%v: %v (-want +got):\n%s", tt.payload, names, diff)
			}
			if got := res.Records()[0].GetFact().GetScope().GetTurnId(); got != "turn_0" {
				t.Errorf("%v: scope has turn %q", tt.payload, got)
			}
			checkRecords(t, tt.payload.String(), s.Log(), 27, res.Records())
			if cursors == nil {
				cursors = seen
			}
			if diff := cmp.Diff(cursors, seen, protocmp.Transform()); diff != "" {
				t.Errorf("%v: cursors differ from those of the default (-want +got):\n%s", tt.payload, diff)
			}
		})
	}
}

// large is a commit with a known fact of about n bytes between two small ones.
func large(n int) string {
	return fmt.Sprintf(`{"at":%q,"facts":[{"type":"almanac.page"},{"type":"content.completed","scope":{"turnId":"turn_0"},`+
		`"data":{"partId":"part_0","runId":"run_0","kind":"text","value":%q,"phase":"reply"}},{"type":"almanac.page"}]}`, clock(1), strings.Repeat("x", n))
}

// A message that is exactly as large as the client can receive comes whole; one byte more, and its content is left
// out, with its size, and nothing else is.
func TestOmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := contractCase{lines: []string{large(10_000)}}
		r := rig.New(t, c.options())
		defer r.Close()
		r.Eve.AddSession(session, c.spec())
		get := func(limit uint32, payload evev1.Payload) (rig.Result, *evev1.SubscribeResponse) {
			req := rig.FromStart(session)
			req.MaxMessageBytes, req.Payload = limit, payload
			res := r.Subscribe(t.Context(), req, nil)
			if res.Err != nil || len(res.Records()) != 3 {
				t.Fatalf("limit %d: %v, %d records", limit, res.Err, len(res.Records()))
			}
			return res, res.Records()[1]
		}
		for _, payload := range []evev1.Payload{evev1.Payload_PAYLOAD_RAW_AND_TYPED, evev1.Payload_PAYLOAD_RAW, evev1.Payload_PAYLOAD_TYPED} {
			_, whole := get(0, payload)
			size := uint32(proto.Size(whole))
			if _, m := get(size, payload); !proto.Equal(m, whole) {
				t.Errorf("%v: at exactly its size, %d, the message is not whole", payload, size)
			}
			res, m := get(size-1, payload)
			f := m.GetFact()
			if o := f.GetOmitted(); o.GetReason() != evev1.OmittedReason_OMITTED_REASON_TOO_LARGE || o.GetSize() != uint64(recordSize(t, c.lines[0], 1)) {
				t.Errorf("%v: below its size omitted is %v", payload, o)
			}
			if f.GetRecordJson() != "" || f.GetData() != nil || f.GetDecodeError() != "" {
				t.Errorf("%v: an omitted record has content: %v", payload, f)
			}
			if f.GetType() != "content.completed" || f.GetScope().GetTurnId() != "turn_0" || f.GetSource().GetRecordIndex() != 1 || f.GetRecordedAt() == nil {
				t.Errorf("%v: an omitted record lacks more than its content: %v", payload, f)
			}
			if !proto.Equal(m.GetCursor(), whole.GetCursor()) {
				t.Errorf("%v: cursors differ: %v, %v", payload, m.GetCursor(), whole.GetCursor())
			}
			if other := res.Records()[2].GetFact(); other.GetOmitted() != nil || other.GetRecordJson() == "" {
				t.Errorf("%v: the record behind it is touched: %v", payload, other)
			}
		}
	})
}

func recordSize(t *testing.T, line string, slot int) int {
	t.Helper()
	for r := range recordsOf(line) {
		if int(r.Slot) == slot {
			return len(r.Raw)
		}
	}
	t.Fatalf("line has no slot %d", slot)
	return 0
}

// Every kind of record can be too large; a message that is left then fits the smallest limit there is.
func TestOmittedKinds(t *testing.T) {
	text := strings.Repeat("x", 20_000)
	small := func(last *evev1.Cursor) *evev1.SubscribeRequest {
		req := rig.FromStart(session)
		if last != nil {
			req = rig.From(last)
		}
		req.MaxMessageBytes = 4 << 10
		return req
	}
	lines := []string{
		large(20_000), delta(text), `{"type":"message.completed","data":{"message":"` + text + `"},"meta":{"id":"evt_1"}}`, "not json: " + text,
		commit(9, "session.ended"),
	}
	runCases(t, []contractCase{{name: "27", lines: lines, calls: []call{{
		ask: small,
		want: []string{
			"fact 0.0 almanac.page @0.1", fmt.Sprintf("fact 0.1 content.completed omitted %d @0.2", recordSize(t, lines[0], 1)), "fact 0.2 almanac.page @1",
			fmt.Sprintf("progress 1 content.delta omitted %d @2", recordSize(t, lines[1], 0)),
			fmt.Sprintf("event 2 message.completed omitted %d @3", len(lines[2])),
			"unreadable 3 INVALID_JSON @4", "fact 4.0 session.ended @5 ended", "CAUGHT_UP 4 @5 ended", "ENDED SESSION_ENDED @5 ended",
		},
	}}}})
}

// With the limits that both sides have by default nothing is ever too large to be received, not even bytes that
// become three each, three times over.
func TestDefaultLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		damaged := func(n int) string {
			return strings.Replace(large(10), strings.Repeat("x", 10), strings.Repeat("\xff", n), 1)
		}
		lines := []string{large(5 << 20), large(2500 << 10), damaged(750 << 10), damaged(490 << 10), large(1 << 20), commit(9, "session.ended")}
		c := contractCase{lines: lines}
		r := rig.New(t, c.options())
		defer r.Close()
		r.Eve.AddSession(session, c.spec())
		for payload, want := range map[evev1.Payload][]bool{
			evev1.Payload_PAYLOAD_RAW_AND_TYPED: {true, true, true, true, false},
			evev1.Payload_PAYLOAD_RAW:           {true, false, false, false, false},
			evev1.Payload_PAYLOAD_TYPED:         {true, true, true, false, false},
			evev1.Payload_PAYLOAD_NONE:          {false, false, false, false, false},
		} {
			req := rig.FromStart(session)
			req.Payload = payload
			res := r.Subscribe(t.Context(), req, nil)
			if res.Err != nil {
				t.Fatalf("%v: %v", payload, res.Err)
			}
			var got []bool
			for line := range want {
				got = append(got, res.Records()[3*line+1].GetFact().GetOmitted() != nil)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v: omitted by line (-want +got):\n%s", payload, diff)
			}
		}
	})
}

// A client that receives less than it said fails at the message that is too large for it, and gets past it once it
// says the truth.
func TestClientLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := contractCase{lines: []string{commit(0, "almanac.page"), large(20_000), commit(9, "session.ended")}}
		r := rig.New(t, c.options())
		defer r.Close()
		r.Eve.AddSession(session, c.spec())
		client := evev1.NewStreamServiceClient(r.Conn)
		read := func(req *evev1.SubscribeRequest) (messages []*evev1.SubscribeResponse, err error) {
			stream, err := client.Subscribe(t.Context(), req, grpc.MaxCallRecvMsgSize(8<<10))
			if err != nil {
				return nil, err
			}
			for {
				m, err := stream.Recv()
				if err != nil {
					return messages, err
				}
				messages = append(messages, m)
			}
		}
		messages, err := read(rig.FromStart(session))
		if status.Code(err) != codes.ResourceExhausted || len(messages) != 2 {
			t.Fatalf("%d messages, then %v", len(messages), err)
		}
		req := rig.From(messages[1].GetCursor())
		req.MaxMessageBytes = 8 << 10
		messages, err = read(req)
		var got []string
		for _, m := range messages {
			got = append(got, textOf(m, 27))
		}
		want := []string{
			fmt.Sprintf("fact 1.1 content.completed omitted %d @1.2", recordSize(t, c.lines[1], 1)), "fact 1.2 almanac.page @2",
			"fact 2.0 session.ended @3 ended", "CAUGHT_UP 2 @3 ended", "ENDED SESSION_ENDED @3 ended",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("messages (-want +got):\n%s\n%v", diff, err)
		}
	})
}
