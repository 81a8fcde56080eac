package translate_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/gateway/translate"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// item translates a record, and checks that the result can be sent.
func item(tb testing.TB, l *source.Line, slot int, p evev1.Payload) *evev1.SubscribeResponse {
	tb.Helper()
	resp := new(evev1.SubscribeResponse)
	translate.Item(resp, l, slot, true, time.Time{}, translate.FormOf(p))
	if _, err := proto.Marshal(resp); err != nil {
		tb.Errorf("line %q: %v", l.Raw, err)
	}
	return resp
}

// compare compares a response with one in prototext.
func compare(tb testing.TB, got *evev1.SubscribeResponse, want string) {
	tb.Helper()
	m := new(evev1.SubscribeResponse)
	if err := prototext.Unmarshal([]byte(want), m); err != nil {
		tb.Fatalf("%s: %v", want, err)
	}
	if diff := cmp.Diff(m, got, protocmp.Transform()); diff != "" {
		tb.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFormOf(t *testing.T) {
	for p, want := range map[evev1.Payload]translate.Form{
		evev1.Payload_PAYLOAD_UNSPECIFIED:   {Raw: true, Typed: true},
		evev1.Payload_PAYLOAD_RAW_AND_TYPED: {Raw: true, Typed: true},
		evev1.Payload_PAYLOAD_RAW:           {Raw: true},
		evev1.Payload_PAYLOAD_TYPED:         {Typed: true},
		evev1.Payload_PAYLOAD_NONE:          {},
		evev1.Payload(99):                   {Raw: true, Typed: true},
	} {
		if got := translate.FormOf(p); got != want {
			t.Errorf("FormOf(%v) = %+v, want %+v", p, got, want)
		}
	}
}

// TestForms checks which of record_json (R), data (D) and decode_error (E) each form makes of each sort of record.
func TestForms(t *testing.T) {
	event := line(t, []byte(`{"type":"turn.completed","data":{"turnId":"t"},"meta":{"id":"e"}}`), 26, 0)
	for _, tc := range []struct {
		name string
		l    *source.Line
		want map[evev1.Payload]string
	}{
		{"known fact", factLine(t, "response.admitted", `{"responseId":"x"}`), map[evev1.Payload]string{raw: "R", rawTyped: "RD", typed: "D", none: ""}},
		{"unknown fact", factLine(t, "almanac.opened", `{}`), map[evev1.Payload]string{raw: "R", rawTyped: "R", typed: "R", none: ""}},
		{"older task.started", factLine(t, "task.started", `{"taskId":"k"}`), map[evev1.Payload]string{raw: "R", rawTyped: "R", typed: "R", none: ""}},
		{"broken fact", factLine(t, "response.admitted", `{"responseId":7}`), map[evev1.Payload]string{raw: "R", rawTyped: "RE", typed: "RE", none: ""}},
		{"known progress", progressLine(t, "content.delta", `{"partId":"x"}`), map[evev1.Payload]string{raw: "R", rawTyped: "RD", typed: "D", none: ""}},
		{"unknown progress", progressLine(t, "content.shimmer", `{}`), map[evev1.Payload]string{raw: "R", rawTyped: "R", typed: "R", none: ""}},
		{"broken progress", progressLine(t, "content.delta", `[]`), map[evev1.Payload]string{raw: "R", rawTyped: "RE", typed: "RE", none: ""}},
		{"event", event, map[evev1.Payload]string{raw: "R", rawTyped: "R", typed: "R", none: ""}},
	} {
		for p, want := range tc.want {
			resp := item(t, tc.l, 0, p)
			var recordJSON, decodeError string
			var hasData bool
			switch it := resp.Item.(type) {
			case *evev1.SubscribeResponse_Fact:
				recordJSON, decodeError, hasData = it.Fact.RecordJson, it.Fact.DecodeError, it.Fact.Data != nil
			case *evev1.SubscribeResponse_Progress:
				recordJSON, decodeError, hasData = it.Progress.RecordJson, it.Progress.DecodeError, it.Progress.Data != nil
			case *evev1.SubscribeResponse_Event:
				recordJSON = it.Event.RecordJson
			}
			got := ""
			if recordJSON != "" {
				got += "R"
				if recordJSON != string(tc.l.Records[0].Raw) {
					t.Errorf("%s, %v: record_json = %q", tc.name, p, recordJSON)
				}
			}
			if hasData {
				got += "D"
			}
			if decodeError != "" {
				got += "E"
			}
			if got != want {
				t.Errorf("%s, %v: made %q, want %q", tc.name, p, got, want)
			}
		}
	}
}

func TestFact(t *testing.T) {
	const commit = `{"at":"2026-11-18T09:00:00.012Z","facts":[{"type":"x.y","scope":{"turnId":"t","runId":"r","taskId":"k","changeId":"c"}}, {"type":"x.z","scope":{}},{"type":"x"},7]}`
	l := line(t, []byte(commit), 27, 41)
	resp := new(evev1.SubscribeResponse)
	translate.Item(resp, l, 0, false, time.Time{}, translate.FormOf(raw))
	compare(t, resp, `fact:{type:"x.y" scope:{turn_id:"t" run_id:"r" task_id:"k" change_id:"c"} source:{stream_version:27 line:41}
		recorded_at:{seconds:1794992400 nanos:12000000} record_json:'{"type":"x.y","scope":{"turnId":"t","runId":"r","taskId":"k","changeId":"c"}}'}`)
	compare(t, item(t, l, 1, raw), `fact:{type:"x.z" scope:{} source:{stream_version:27 line:41 record_index:1 end_of_line:true}
		recorded_at:{seconds:1794992400 nanos:12000000} record_json:'{"type":"x.z","scope":{}}'}`)
	compare(t, item(t, l, 2, raw), `fact:{type:"x" source:{stream_version:27 line:41 record_index:2 end_of_line:true}
		recorded_at:{seconds:1794992400 nanos:12000000} record_json:'{"type":"x"}'}`)
	// A slot that holds no object is a slot all the same.
	l.Records[3] = source.Record{Raw: l.Records[3].Raw}
	compare(t, item(t, l, 3, rawTyped), `fact:{source:{stream_version:27 line:41 record_index:3 end_of_line:true}
		recorded_at:{seconds:1794992400 nanos:12000000} record_json:'7'}`)
}

// TestItemKeepsCursor checks that Item sets the item and nothing else.
func TestItemKeepsCursor(t *testing.T) {
	resp := &evev1.SubscribeResponse{Cursor: &evev1.Cursor{SessionId: "s"}, Item: &evev1.SubscribeResponse_Checkpoint{}}
	translate.Item(resp, factLine(t, "x", `{}`), 0, true, time.Time{}, translate.FormOf(none))
	if resp.GetCursor().GetSessionId() != "s" || resp.GetFact().GetType() != "x" {
		t.Errorf("got %v", resp)
	}
}

func TestRecordedAt(t *testing.T) {
	for _, tc := range []struct {
		at       string
		wantText string // "": a Timestamp
	}{
		{"2026-11-18T09:00:00.012Z", ""},
		{"2026-11-18T10:00:00.012+01:00", ""},
		{"9999-12-31T23:59:59.999999999Z", ""},
		{"9999-12-31T23:59:59-01:00", "9999-12-31T23:59:59-01:00"}, // the year 10000
		{"0000-06-01T00:00:00Z", "0000-06-01T00:00:00Z"},
		{"yesterday", "yesterday"},
		{"2026-11-18 \xff", "2026-11-18 \ufffd"},
		{"", ""},
	} {
		l := line(t, []byte(`{"at":"`+tc.at+`","facts":[{"type":"x"}]}`), 27, 0)
		f := item(t, l, 0, none).GetFact()
		if f.RecordedAtText != tc.wantText {
			t.Errorf("at %q: recorded_at_text = %q, want %q", tc.at, f.RecordedAtText, tc.wantText)
		}
		switch want := timeOf(tc.at); {
		case tc.wantText != "" || tc.at == "":
			if f.RecordedAt != nil {
				t.Errorf("at %q: recorded_at = %v, want none", tc.at, f.RecordedAt)
			}
		case f.RecordedAt.CheckValid() != nil || !f.RecordedAt.AsTime().Equal(want):
			t.Errorf("at %q: recorded_at = %v, want %v", tc.at, f.RecordedAt, want)
		}
	}
}

func TestProgressTime(t *testing.T) {
	l := progressLine(t, "content.delta", `{"partId":"p"}`)
	at := time.Date(2026, 11, 18, 9, 0, 0, 12e6, time.FixedZone("", 3600))
	for _, tc := range []struct {
		latest time.Time
		want   *timestamppb.Timestamp
	}{
		{at, timestamppb.New(at)},
		{time.Time{}, nil},               // unknown is unset, never 1970
		{time.Unix(1<<40, 0).UTC(), nil}, // no Timestamp holds it
	} {
		resp := new(evev1.SubscribeResponse)
		translate.Item(resp, l, 0, true, tc.latest, translate.FormOf(raw))
		if diff := cmp.Diff(tc.want, resp.GetProgress().RecordedAt, protocmp.Transform()); diff != "" {
			t.Errorf("latest %v: (-want +got)\n%s", tc.latest, diff)
		}
	}
}

func TestEvent(t *testing.T) {
	const full = `{"type":"turn.started","data":{"turnId":"t"},"meta":{"id":"evt_1","at":"2026-11-18T09:00:00.005Z","deliveryIds":["a","b"]}}`
	compare(t, item(t, line(t, []byte(full), 26, 5), 0, typed), `event:{type:"turn.started" source:{stream_version:26 line:5 end_of_line:true}
		meta_id:"evt_1" meta_at:{seconds:1794992400 nanos:5000000} delivery_ids:"a" delivery_ids:"b" record_json:'`+full+`'}`)
	compare(t, item(t, line(t, []byte(full), 26, 5), 0, none), `event:{type:"turn.started" source:{stream_version:26 line:5 end_of_line:true}
		meta_id:"evt_1" meta_at:{seconds:1794992400 nanos:5000000} delivery_ids:"a" delivery_ids:"b"}`)
	compare(t, item(t, line(t, []byte(`{"type":"session.waiting"}`), 21, 5), 0, raw), `event:{type:"session.waiting" source:{stream_version:21 line:5 end_of_line:true} record_json:'{"type":"session.waiting"}'}`)
	bad := "{\"type\":\"x\xff\",\"meta\":{\"id\":\"i\xff\",\"at\":\"then\xff\",\"deliveryIds\":[\"a\",\"b\xff\",\"c\xc3\"]}}"
	compare(t, item(t, line(t, []byte(bad), 26, 5), 0, none), `event:{type:"x\ufffd" source:{stream_version:26 line:5 end_of_line:true}
		meta_id:"i\ufffd" meta_at_text:"then\ufffd" delivery_ids:"a" delivery_ids:"b\ufffd" delivery_ids:"c\ufffd"}`)
}

func TestUnreadable(t *testing.T) {
	for flaw, want := range map[source.Flaw]evev1.UnreadableReason{
		source.NoFlaw:            evev1.UnreadableReason_UNREADABLE_REASON_UNSPECIFIED,
		source.InvalidJSON:       evev1.UnreadableReason_UNREADABLE_REASON_INVALID_JSON,
		source.NotAnObject:       evev1.UnreadableReason_UNREADABLE_REASON_NOT_AN_OBJECT,
		source.UnknownShape:      evev1.UnreadableReason_UNREADABLE_REASON_UNKNOWN_SHAPE,
		source.MalformedPosition: evev1.UnreadableReason_UNREADABLE_REASON_MALFORMED_POSITION,
		source.TooLarge:          evev1.UnreadableReason_UNREADABLE_REASON_TOO_LARGE,
	} {
		if got := item(t, &source.Line{Flaw: flaw}, 0, raw).GetUnreadableLine().GetReason(); got != want {
			t.Errorf("flaw %d: reason %v, want %v", flaw, got, want)
		}
	}
	l := &source.Line{Number: 9, Version: 27, Raw: []byte("tide\xff"), Size: 5, Flaw: source.InvalidJSON, Detail: "bad \xff"}
	for _, p := range []evev1.Payload{raw, typed, rawTyped} {
		compare(t, item(t, l, 0, p), `unreadable_line:{source:{stream_version:27 line:9 end_of_line:true} reason:UNREADABLE_REASON_INVALID_JSON text:"tide\ufffd" size:5 detail:"bad \ufffd"}`)
	}
	compare(t, item(t, l, 0, none), `unreadable_line:{source:{stream_version:27 line:9 end_of_line:true} reason:UNREADABLE_REASON_INVALID_JSON truncated:true size:5 detail:"bad \ufffd"}`)
	compare(t, item(t, &source.Line{Version: 27, Size: 1 << 40, Flaw: source.TooLarge, Detail: "d"}, 0, raw),
		`unreadable_line:{source:{stream_version:27 end_of_line:true} reason:UNREADABLE_REASON_TOO_LARGE truncated:true size:1099511627776 detail:"d"}`)
}

func TestUnreadableText(t *testing.T) {
	const bound = 4096
	for _, tc := range []struct {
		name, line, want string
		truncated        bool
	}{
		{"empty", "", "", false},
		{"at the bound", strings.Repeat("a", bound), strings.Repeat("a", bound), false},
		{"one more", strings.Repeat("a", bound+1), strings.Repeat("a", bound), true},
		{"far more", strings.Repeat("a", 1<<20), strings.Repeat("a", bound), true},
		{"a character across the bound", strings.Repeat("a", bound-1) + "🐟" + "b", strings.Repeat("a", bound-1), true},
		{"a character up to the bound", strings.Repeat("a", bound-4) + "🐟", strings.Repeat("a", bound-4) + "🐟", false},
		{"a character behind the bound", strings.Repeat("a", bound) + "🐟", strings.Repeat("a", bound), true},
		{"replacements count as written out", strings.Repeat("\xff", bound), strings.Repeat("\ufffd", bound/3), true},
		{"a cut character is never replaced", strings.Repeat("🐟", bound), strings.Repeat("🐟", bound/4), true},
		{"three bytes each", strings.Repeat("€", bound), strings.Repeat("€", bound/3), true},
	} {
		l := &source.Line{Raw: []byte(tc.line), Size: int64(len(tc.line)), Flaw: source.InvalidJSON}
		u := item(t, l, 0, raw).GetUnreadableLine()
		if u.Text != tc.want || u.Truncated != tc.truncated || u.Size != uint64(len(tc.line)) {
			t.Errorf("%s: %d bytes of text, truncated %t, size %d; want %d, %t, %d", tc.name, len(u.Text), u.Truncated, u.Size, len(tc.want), tc.truncated, len(tc.line))
		}
	}
}

func TestOmit(t *testing.T) {
	for _, tc := range []struct {
		name string
		l    *source.Line
		want string
	}{
		{"fact", factLine(t, "response.admitted", `{"responseId":"x"}`), `fact:{type:"response.admitted" source:{stream_version:27 line:7 end_of_line:true}
			recorded_at:{seconds:1794992400 nanos:12000000} omitted:{reason:OMITTED_REASON_TOO_LARGE size:54}}`},
		{"broken fact", factLine(t, "response.admitted", "\"\xff\""), `fact:{type:"response.admitted" source:{stream_version:27 line:7 end_of_line:true}
			recorded_at:{seconds:1794992400 nanos:12000000} omitted:{reason:OMITTED_REASON_TOO_LARGE size:39}}`},
		{"progress", line(t, []byte("{\"progress\":{\"type\":\"content.delta\",\"scope\":{\"runId\":\"r\"},\"data\":{\"partId\":\"\xff\"}}}"), 27, 7),
			`progress:{type:"content.delta" scope:{run_id:"r"} source:{stream_version:27 line:7 end_of_line:true} omitted:{reason:OMITTED_REASON_TOO_LARGE size:68}}`},
		{"event", line(t, []byte("{\"type\":\"x\",\"data\":\"\xff\",\"meta\":{\"id\":\"e\"}}"), 26, 7),
			`event:{type:"x" source:{stream_version:26 line:7 end_of_line:true} meta_id:"e" omitted:{reason:OMITTED_REASON_TOO_LARGE size:41}}`},
		{"unreadable", line(t, []byte("not json"), 27, 7),
			`unreadable_line:{source:{stream_version:27 line:7 end_of_line:true} reason:UNREADABLE_REASON_INVALID_JSON truncated:true size:8 detail:"not JSON"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp := item(t, tc.l, 0, rawTyped)
			translate.Omit(resp, tc.l, 0)
			compare(t, resp, tc.want)
		})
	}
	resp := &evev1.SubscribeResponse{Item: &evev1.SubscribeResponse_Checkpoint{Checkpoint: &evev1.Checkpoint{}}}
	translate.Omit(resp, nil, 0)
	compare(t, resp, `checkpoint:{}`)
}

// TestLossy compares the replacement of bytes that are not UTF-8 with what TextDecoder of Node.js 20 makes of them.
func TestLossy(t *testing.T) {
	const r = "\ufffd"
	for _, tc := range []struct{ hex, want string }{
		{"61c080", "a" + r + r},
		{"e28261", r + "a"}, // one for a sequence that breaks off, however long
		{"e282", r},
		{"f09f9062", r + "b"},
		{"f09f90", r},
		{"f0808080", r + r + r + r},
		{"f4908080", r + r + r + r},
		{"eda080", r + r + r}, // half a surrogate pair, encoded
		{"edbfbf", r + r + r},
		{"c3", r},
		{"c328", r + "("},
		{"80bf", r + r},
		{"ff", r},
		{"f8888080", r + r + r + r},
		{"e18041", r + "A"},
		{"f18080f1", r + r},
		{"efbfbd", r},
		{"61efbbbf", "a\ufeff"},
		{"e080af", r + r + r},
		{"c2c3a9", r + "é"},
		{"f5ffe9", r + r + r},
		{"f48fbfbf", "\U0010ffff"},
		{"e2e282ac", r + "€"},
	} {
		b, err := hex.DecodeString(tc.hex)
		if err != nil {
			t.Fatal(err)
		}
		l := factLine(t, "x", `"`+string(b)+`"`)
		f := item(t, l, 0, raw).GetFact()
		if want := `{"type":"x","data":"` + tc.want + `"}`; f.RecordJson != want {
			t.Errorf("%s: record_json = %q, want %q", tc.hex, f.RecordJson, want)
		}
		if f.Lossy == utf8.Valid(b) {
			t.Errorf("%s: lossy = %t", tc.hex, f.Lossy)
		}
	}
}

// TestNames checks that names and ids that are not UTF-8 cannot spoil a message.
func TestNames(t *testing.T) {
	l := line(t, []byte("{\"at\":\"x\",\"facts\":[{\"type\":\"a\xe2\x82\",\"scope\":{\"turnId\":\"t\xff\",\"runId\":\"r\xff\",\"taskId\":\"k\xff\",\"changeId\":\"c\xff\"}}]}"), 27, 0)
	compare(t, item(t, l, 0, none), `fact:{type:"a\ufffd" scope:{turn_id:"t\ufffd" run_id:"r\ufffd" task_id:"k\ufffd" change_id:"c\ufffd"}
		source:{stream_version:27 end_of_line:true} recorded_at_text:"x"}`)
}

// TestAliases checks that the raw record, and the strings of a payload, are not copied.
func TestAliases(t *testing.T) {
	l := line(t, []byte(completedFact), 27, 7)
	// s shares memory with the line when its first byte is one of the line's.
	within := func(s string) bool {
		for i := range l.Raw {
			if &l.Raw[i] == unsafe.StringData(s) {
				return true
			}
		}
		return false
	}
	f := item(t, l, 0, rawTyped).GetFact()
	if !within(f.RecordJson) {
		t.Error("record_json is a copy")
	}
	if c := f.GetContentCompleted(); !within(c.GetText()) || !within(c.GetValueJson()) || !within(c.GetPartId()) {
		t.Error("text, value_json or part_id is a copy")
	}
}

func TestAllocations(t *testing.T) {
	resp := new(evev1.SubscribeResponse)
	for _, tc := range []struct {
		name string
		l    *source.Line
		p    evev1.Payload
		want float64
	}{
		{"raw fact", line(t, []byte(completedFact), 27, 7), raw, 1},
		{"raw progress", line(t, []byte(deltaLine), 27, 7), raw, 1},
		{"raw event", line(t, []byte(`{"type":"x","data":{},"meta":{"id":"e","at":"2026-11-18T09:00:00Z","deliveryIds":["d"]}}`), 26, 7), raw, 1},
		{"typed delta", line(t, []byte(deltaLine), 27, 7), typed, 8},
		{"typed fact", line(t, []byte(completedFact), 27, 7), typed, 10},
	} {
		f := translate.FormOf(tc.p)
		got := testing.AllocsPerRun(100, func() { translate.Item(resp, tc.l, 0, true, time.Time{}, f) })
		if got > tc.want {
			t.Errorf("%s: %v allocations, want at most %v", tc.name, got, tc.want)
		}
	}
}
