package translate_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/gateway/translate"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// FuzzPayload decodes arbitrary bytes as the data of a record. Whatever they are, what comes out can be sent, is the
// same every time, has a decode error or JSON in each *_json field, and leaves the bytes alone.
func FuzzPayload(f *testing.F) {
	types := []string{"almanac.opened"}
	for _, p := range payloads() {
		if !slices.Contains(types, p.typ) {
			types = append(types, p.typ)
		}
		f.Add(uint8(slices.Index(types, p.typ)), []byte(p.data))
	}
	add := func(typ, data string) { f.Add(uint8(slices.Index(types, typ)), []byte(data)) }
	add("usage.recorded", `{"usage":{"inputTokens":1e2,"costUsd":-1e-9}}`)
	add("content.delta", "{\"partId\":\"\xe2\x82\",\"delta\":\"\\ud83d\"}")
	add("turn.settled", `{"turnId":"t","reply":[1,`)
	add("turn.settled", `{1:2}`)
	f.Fuzz(func(t *testing.T, n uint8, data []byte) {
		typ := types[int(n)%len(types)]
		before := bytes.Clone(data)
		kind := source.Commit
		if isProgress(typ) {
			kind = source.Progress
		}
		l := &source.Line{Kind: kind, Version: 27, Raw: data, Size: int64(len(data)), Records: []source.Record{{Type: typ, Raw: data, Data: data}}}
		first, second := new(evev1.SubscribeResponse), new(evev1.SubscribeResponse)
		translate.Item(first, l, 0, true, time.Time{}, translate.FormOf(rawTyped))
		translate.Item(second, l, 0, true, time.Time{}, translate.FormOf(rawTyped))
		if !proto.Equal(first, second) {
			t.Errorf("two translations differ: %v, %v", first, second)
		}
		wire, err := proto.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(wire, new(evev1.SubscribeResponse)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, before) {
			t.Error("the line was written to")
		}
		checkContent(t, first)
	})
}

// checkContent checks that a response has data or a reason to have none, not both, and JSON where JSON is due.
func checkContent(t *testing.T, resp *evev1.SubscribeResponse) {
	t.Helper()
	var data protoreflect.Message
	var typ, decodeError string
	switch it := resp.Item.(type) {
	case *evev1.SubscribeResponse_Fact:
		data, typ, decodeError = it.Fact.ProtoReflect(), it.Fact.Type, it.Fact.DecodeError
	case *evev1.SubscribeResponse_Progress:
		data, typ, decodeError = it.Progress.ProtoReflect(), it.Progress.Type, it.Progress.DecodeError
	}
	which := data.WhichOneof(data.Descriptor().Oneofs().ByName("data"))
	switch {
	case which != nil && decodeError != "":
		t.Errorf("data in spite of %q", decodeError)
	case which == nil && decodeError == "" && translate.Known(typ) && typ != "task.started":
		t.Errorf("%s: neither data nor a decode error", typ)
	case which != nil:
		checkJSON(t, data.Get(which).Message())
	}
}

// checkJSON checks the *_json fields of a payload.
func checkJSON(t *testing.T, m protoreflect.Message) {
	t.Helper()
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() != nil && f.IsList():
			for i := range v.List().Len() {
				checkJSON(t, v.List().Get(i).Message())
			}
		case f.Message() != nil:
			checkJSON(t, v.Message())
		case strings.HasSuffix(string(f.Name()), "_json"):
			if !jsontext.Value(v.String()).IsValid(jsontext.AllowDuplicateNames(true)) {
				t.Errorf("%s = %q is not JSON", f.FullName(), v.String())
			}
		}
		return true
	})
}

// FuzzText puts arbitrary bytes wherever a line has text: no string of a message may be spoiled by them.
func FuzzText(f *testing.F) {
	f.Add([]byte("tide"))
	f.Add([]byte("\xf0\x9f\x90"))
	f.Add(bytes.Repeat([]byte("\xe2\x82"), 3000))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := string(b)
		rec := source.Record{
			Type: s, Raw: b, HasScope: true, Scope: source.Scope{TurnID: s, RunID: s, TaskID: s, ChangeID: s},
			Meta: &source.Meta{ID: s, AtText: s, DeliveryIDs: []string{"d", s}},
		}
		for _, kind := range []source.Kind{source.Commit, source.Progress, source.Event, source.Unreadable} {
			l := &source.Line{Kind: kind, Raw: b, Size: int64(len(b)), Records: []source.Record{rec}, AtText: s, Detail: s}
			resp := item(t, l, 0, rawTyped) // marshals
			if u := resp.GetUnreadableLine(); len(u.GetText()) > 4096 || u != nil && !u.Truncated && len(b) > 0 && u.Text == "" {
				t.Errorf("text of %d bytes, truncated %t", len(u.Text), u.Truncated)
			}
		}
	})
}
