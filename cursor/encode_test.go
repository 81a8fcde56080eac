package cursor_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/evegateway/evegateway/cursor"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// full sets every field that can be set together.
func full() cursor.Cursor {
	return cursor.Cursor{
		Agent: "support", SessionID: "wrun_2", Child: cursor.Child{ParentSessionID: "wrun_1", CallID: "call_3"},
		StreamVersion: 27, StreamIndex: 47, StreamEventIndex: 2,
		LastCommitTime: noon(), Anchor: "1:a<b",
	}
}

// ended has the one field that full cannot have.
func ended() cursor.Cursor {
	return cursor.Cursor{Agent: "support", SessionID: "wrun_1", StreamVersion: 26, StreamIndex: cursor.MaxIndex, SessionEnded: true}
}

// The written forms of full and ended. Clients keep such texts, so they never change.
const (
	fullJSON = `{"streamVersion":27,"streamIndex":"47","streamEventIndex":2,"anchor":"1:a<b","lastCommitTime":"2026-11-01T12:00:00.005Z",` +
		`"agent":"support","sessionId":"wrun_2","child":{"parentSessionId":"wrun_1","callId":"call_3"}}`
	fullText  = `evc1.CBsQLxgCIgUxOmE8YioLCMDTnNcGEMCWsQI6B3N1cHBvcnRCBndydW5fMkoQCgZ3cnVuXzESBmNhbGxfMw`
	endedJSON = `{"streamVersion":26,"streamIndex":"9007199254740991","sessionEnded":true,"agent":"support","sessionId":"wrun_1"}`
	endedText = `evc1.CBoQ_________w8wAToHc3VwcG9ydEIGd3J1bl8x`
)

// form is a cursor with its written forms.
type form struct {
	name       string
	c          cursor.Cursor
	json, text string
}

func forms() []form {
	return []form{
		{"zero", cursor.Cursor{}, `{}`, `evc1.`},
		{"full", full(), fullJSON, fullText},
		{"ended", ended(), endedJSON, endedText},
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	for _, tt := range forms() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if b, err := tt.c.MarshalJSON(); err != nil || string(b) != tt.json {
				t.Errorf("MarshalJSON = %s, %v\nwant %s", b, err, tt.json)
			}
			if b, err := tt.c.MarshalText(); err != nil || string(b) != tt.text {
				t.Errorf("MarshalText = %s, %v\nwant %s", b, err, tt.text)
			}
			fromJSON, fromText := full(), full() // something to overwrite
			if err := fromJSON.UnmarshalJSON([]byte(tt.json)); err != nil || fromJSON != tt.c {
				t.Errorf("UnmarshalJSON: %+v, %v\nwant %+v", fromJSON, err, tt.c)
			}
			if err := fromText.UnmarshalText([]byte(tt.text)); err != nil || fromText != tt.c {
				t.Errorf("UnmarshalText: %+v, %v\nwant %+v", fromText, err, tt.c)
			}
		})
	}
}

func TestProto(t *testing.T) {
	t.Parallel()
	want := &evev1.Cursor{
		Agent: "support", SessionId: "wrun_2", Child: &evev1.ChildStream{ParentSessionId: "wrun_1", CallId: "call_3"},
		StreamVersion: 27, StreamIndex: 47, StreamEventIndex: 2,
		LastCommitTime: timestamppb.New(noon()), Anchor: "1:a<b",
	}
	if diff := cmp.Diff(want, full().Proto(), protocmp.Transform()); diff != "" {
		t.Errorf("Proto (-want +got):\n%s", diff)
	}
	// What is unset stays unset: an empty child or the year 1 would mean something else.
	if diff := cmp.Diff(&evev1.Cursor{}, cursor.Cursor{}.Proto(), protocmp.Transform()); diff != "" {
		t.Errorf("Proto of the zero value (-want +got):\n%s", diff)
	}
}

func TestFromProtoRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		m     *evev1.Cursor
		field string
	}{
		{"no message", nil, ""},
		{"empty child", &evev1.Cursor{Child: &evev1.ChildStream{}}, "child"},
		{"half a child", &evev1.Cursor{Child: &evev1.ChildStream{CallId: "c"}}, "child.parent_session_id"},
		{"index", &evev1.Cursor{StreamVersion: 27, StreamIndex: 1 << 53}, "stream_index"},
		{"version", &evev1.Cursor{StreamVersion: 28, StreamIndex: 1}, "stream_version"},
		{"time out of range", forgedTime(1<<40, 0), "last_commit_time"},
		{"nanoseconds out of range", forgedTime(1_790_000_000, 1_000_000_000), "last_commit_time"},
		{"negative nanoseconds", forgedTime(1_790_000_000, -1), "last_commit_time"},
		{"negative time", forgedTime(-1, 0), "last_commit_time"},
		{"epoch", forgedTime(0, 0), "last_commit_time"},
		{"zero time", forgedTime(time.Time{}.Unix(), 0), "last_commit_time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := cursor.FromProto(tt.m)
			checkError(t, err, cursor.ErrInvalid, tt.field)
			if c != (cursor.Cursor{}) {
				t.Errorf("an error came with the cursor %v", c)
			}
		})
	}
}

func forgedTime(seconds int64, nanos int32) *evev1.Cursor {
	return &evev1.Cursor{StreamVersion: 27, StreamIndex: 1, LastCommitTime: &timestamppb.Timestamp{Seconds: seconds, Nanos: nanos}}
}

// TestNewerBuild reads a message with fields that this build does not know, in the cursor and in its child.
func TestNewerBuild(t *testing.T) {
	t.Parallel()
	unknown := protowire.AppendString(protowire.AppendTag(nil, 1000, protowire.BytesType), "from a newer build")
	newer := full().Proto()
	newer.ProtoReflect().SetUnknown(unknown)
	newer.GetChild().ProtoReflect().SetUnknown(unknown)
	b, err := proto.Marshal(newer)
	if err != nil {
		t.Fatal(err)
	}

	var m evev1.Cursor
	if err := proto.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	if c, err := cursor.FromProto(&m); err != nil || c != full() {
		t.Errorf("FromProto = %+v, %v", c, err)
	}
	var c cursor.Cursor
	if err := c.UnmarshalText([]byte("evc1." + base64.RawURLEncoding.EncodeToString(b))); err != nil || c != full() {
		t.Errorf("UnmarshalText: %+v, %v", c, err)
	}
	if text, err := c.MarshalText(); err != nil || string(text) != fullText {
		t.Errorf("written again: %s, %v: the unknown fields must be gone", text, err)
	}
}

func TestUnmarshalJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, json string
		want       cursor.Cursor
		field      string
		refused    bool
	}{
		{name: "proto names", json: `{"agent":"support","session_id":"wrun_1","stream_version":26,"stream_index":"9007199254740991","session_ended":true}`, want: ended()},
		{name: "numbers", json: `{"streamVersion":27.0,"streamIndex":4e1}`, want: cursor.Cursor{StreamVersion: 27, StreamIndex: 40}},
		{name: "white space", json: " {\n\t\"streamVersion\" : 27\n} ", want: cursor.Cursor{StreamVersion: 27}},
		{name: "null fields", json: `{"streamVersion":27,"child":null,"lastCommitTime":null,"anchor":null}`, want: cursor.Cursor{StreamVersion: 27}},
		{name: "time in another zone", json: `{"streamVersion":27,"streamIndex":1,"lastCommitTime":"2026-11-01T13:00:00.005+01:00"}`, want: cursor.Cursor{StreamVersion: 27, StreamIndex: 1, LastCommitTime: noon()}},

		{name: "misspelled field", json: `{"streamVersion":27,"streamindex":"5"}`, refused: true},
		{name: "unknown field in the child", json: `{"child":{"parentSessionId":"p","callId":"c","x":1}}`, refused: true},
		{name: "repeated field", json: `{"streamVersion":26,"streamVersion":27}`, refused: true},
		{name: "both spellings", json: `{"streamVersion":26,"stream_version":27}`, refused: true},
		{name: "null", json: `null`, refused: true},
		{name: "nothing", json: ``, refused: true},
		{name: "the text form", json: `"evc1."`, refused: true},
		{name: "array", json: `[]`, refused: true},
		{name: "two values", json: `{}{}`, refused: true},
		{name: "negative index", json: `{"streamVersion":27,"streamIndex":-1}`, refused: true},
		{name: "broken index", json: `{"streamVersion":27,"streamIndex":1.5}`, refused: true},
		{name: "index beyond 64 bits", json: `{"streamVersion":27,"streamIndex":"18446744073709551616"}`, refused: true},
		{name: "index beyond the last", json: `{"streamVersion":27,"streamIndex":"9007199254740992"}`, field: "stream_index", refused: true},
		{name: "empty child", json: `{"child":{}}`, field: "child", refused: true},
		{name: "no time", json: `{"streamVersion":27,"streamIndex":1,"lastCommitTime":"yesterday"}`, refused: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := full()
			err := got.UnmarshalJSON([]byte(tt.json))
			if tt.refused {
				checkError(t, err, cursor.ErrInvalid, tt.field)
				if got != full() {
					t.Errorf("the error changed the cursor to %+v", got)
				}
				return
			}
			checkError(t, err, nil, "")
			if got != tt.want {
				t.Errorf("got %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// TestEncodingJSON goes through encoding/json, which must use the JSON form although there is a text form too.
func TestEncodingJSON(t *testing.T) {
	t.Parallel()
	type state struct {
		Cursor cursor.Cursor
		Bound  *cursor.Cursor `json:",omitempty"`
	}
	b, err := json.Marshal(state{Cursor: ended()})
	want := `{"Cursor":` + endedJSON + `}`
	if err != nil || string(b) != want {
		t.Fatalf("Marshal = %s, %v\nwant %s", b, err, want)
	}
	var got state
	if err := json.Unmarshal(b, &got); err != nil || got.Cursor != ended() || got.Bound != nil {
		t.Errorf("Unmarshal = %+v, %v", got, err)
	}

	err = json.Unmarshal([]byte(`{"Cursor":{"streamVersion":20}}`), &got)
	if e, ok := errors.AsType[*cursor.Error](err); !ok || e.Field != "stream_version" {
		t.Errorf("error %v does not lead to the field", err)
	}
}

func TestUnmarshalTextRefuses(t *testing.T) {
	t.Parallel()
	text := fullText
	tests := []struct {
		name, text, field string
	}{
		{name: "nothing", text: ""},
		{name: "no prefix", text: strings.TrimPrefix(text, "evc1.")},
		{name: "another version", text: strings.Replace(text, "evc1.", "evc2.", 1)},
		{name: "prefix in capitals", text: strings.Replace(text, "evc1.", "EVC1.", 1)},
		{name: "white space before", text: " " + text},
		{name: "white space behind", text: text + " "},
		{name: "line break behind", text: text + "\n"},
		{name: "broken over lines", text: text[:20] + "\r\n" + text[20:]},
		{name: "standard alphabet", text: strings.ReplaceAll(endedText, "_", "/")},
		{name: "padding", text: text + "=="},
		{name: "cut in a byte", text: text[:len(text)-1]},
		{name: "cut in a field", text: text[:len(text)-2]},
		{name: "bits behind the end", text: "evc1.CBt"}, // "CBs" is version 27, and "t" has bits to spare
		{name: "twice", text: text + text},
		{name: "the JSON form", text: fullJSON},
		{name: "string not UTF-8", text: "evc1." + base64.RawURLEncoding.EncodeToString([]byte("\x3a\x01\xff"))},
		{name: "forged", text: "evc1." + base64.RawURLEncoding.EncodeToString([]byte("\x08\x14")), field: "stream_version"},
		{name: "null character in the agent", text: "evc1." + base64.RawURLEncoding.EncodeToString([]byte("\x3a\x01\x00")), field: "agent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := ended()
			checkError(t, got.UnmarshalText([]byte(tt.text)), cursor.ErrInvalid, tt.field)
			if got != ended() {
				t.Errorf("the error changed the cursor to %+v", got)
			}
		})
	}
}
