package translate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/evegateway/evegateway/gateway/translate"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// isProgress reports whether a type is one of the three of contract 3.0.
func isProgress(typ string) bool {
	return typ == "content.delta" || typ == "call.input" || typ == "call.progress"
}

// decoded translates a record that has nothing but a type and data, and returns the message with its data alone, and
// the decode error.
func decoded(tb testing.TB, typ, data string) (m proto.Message, decodeError string) {
	tb.Helper()
	var resp evev1.SubscribeResponse
	if isProgress(typ) {
		translate.Item(&resp, progressLine(tb, typ, data), 0, true, time.Time{}, translate.FormOf(typed))
		p := resp.GetProgress()
		checkRaw(tb, p.RecordJson, p.Data != nil, data)
		return &evev1.Progress{Data: p.Data}, p.DecodeError
	}
	translate.Item(&resp, factLine(tb, typ, data), 0, true, time.Time{}, translate.FormOf(typed))
	f := resp.GetFact()
	checkRaw(tb, f.RecordJson, f.Data != nil, data)
	return &evev1.Fact{Data: f.Data}, f.DecodeError
}

// checkRaw checks that the raw record stands in where, and only where, there is no data.
func checkRaw(tb testing.TB, raw string, hasData bool, data string) {
	tb.Helper()
	if hasData != (raw == "") {
		tb.Errorf("data %s: has data: %t, record_json: %q", data, hasData, raw)
	}
}

// message parses the data of a fact or progress record from prototext.
func message(tb testing.TB, typ, text string) proto.Message {
	tb.Helper()
	var m proto.Message = new(evev1.Fact)
	if isProgress(typ) {
		m = new(evev1.Progress)
	}
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return m
}

// check decodes data and compares it with a message in prototext, or with a decode error that starts with "data".
func check(t *testing.T, typ, data, want string) {
	t.Helper()
	got, decodeError := decoded(t, typ, data)
	wantError := ""
	if strings.HasPrefix(want, "data") {
		want, wantError = "", want
	}
	if decodeError != wantError {
		t.Errorf("%s %s: decode error %q, want %q", typ, data, decodeError, wantError)
	}
	if diff := cmp.Diff(message(t, typ, want), got, protocmp.Transform()); diff != "" {
		t.Errorf("%s %s: (-want +got)\n%s", typ, data, diff)
	}
}

func TestPayloads(t *testing.T) {
	for _, p := range payloads() {
		check(t, p.typ, p.data, p.want)
	}
}

// TestPayloadsAreComplete holds the payloads, and through them the decoders, against the protos: no type, field, union
// alternative or enum value is left out.
func TestPayloadsAreComplete(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	var see func(m protoreflect.Message)
	see = func(m protoreflect.Message) {
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			seen[f.FullName()] = true
			switch {
			case f.Enum() != nil:
				seen[f.Enum().Values().ByNumber(v.Enum()).FullName()] = true
			case f.Message() != nil && f.IsList():
				for i := range v.List().Len() {
					see(v.List().Get(i).Message())
				}
			case f.Message() != nil:
				see(v.Message())
			}
			return true
		})
	}
	for _, p := range payloads() {
		see(message(t, p.typ, p.want).ProtoReflect())
	}
	want := func(n protoreflect.FullName) {
		if !seen[n] {
			t.Errorf("no payload has %s", n)
		}
	}
	for _, data := range []protoreflect.OneofDescriptor{dataOf(new(evev1.Fact)), dataOf(new(evev1.Progress))} {
		for i := range data.Fields().Len() {
			want(data.Fields().Get(i).FullName())
		}
	}
	for _, file := range []protoreflect.FileDescriptor{evev1.File_eve_v1_fact_payloads_proto, evev1.File_eve_v1_progress_payloads_proto} {
		for i := range file.Messages().Len() {
			for j := range file.Messages().Get(i).Fields().Len() {
				want(file.Messages().Get(i).Fields().Get(j).FullName())
			}
		}
		for i := range file.Enums().Len() {
			for j := range file.Enums().Get(i).Values().Len() {
				if v := file.Enums().Get(i).Values().Get(j); v.Number() != 0 {
					want(v.FullName())
				}
			}
		}
	}
}

func dataOf(m proto.Message) protoreflect.OneofDescriptor {
	return m.ProtoReflect().Descriptor().Oneofs().ByName("data")
}

func TestKnown(t *testing.T) {
	n := 0
	for _, data := range []protoreflect.OneofDescriptor{dataOf(new(evev1.Fact)), dataOf(new(evev1.Progress))} {
		for i := range data.Fields().Len() {
			typ := strings.ReplaceAll(string(data.Fields().Get(i).Name()), "_", ".")
			if !translate.Known(typ) {
				t.Errorf("Known(%q) = false", typ)
			}
			n++
		}
	}
	if n != 30 {
		t.Errorf("%d types have data, want the 27 + 3 of contract 3.0", n)
	}
	for _, typ := range []string{"", "turn", "turn.", "turn.*", "Turn.Settled", "almanac.opened", "message.completed"} {
		if translate.Known(typ) {
			t.Errorf("Known(%q) = true", typ)
		}
	}
	// Known in one kind of line is not known in the other.
	var resp evev1.SubscribeResponse
	translate.Item(&resp, factLine(t, "content.delta", `{"partId":"p","delta":""}`), 0, true, time.Time{}, translate.FormOf(rawTyped))
	if f := resp.GetFact(); f.Data != nil || f.DecodeError != "" {
		t.Errorf("a progress type in a commit: %v", f)
	}
}

// spot is one value inside a payload.
type spot struct {
	path string // as a decode error gives it
	raw  []byte
	from int // where raw starts in the payload
}

// spots returns every value inside a payload whose type the contract fixes: not verbatim JSON, and not the inside of
// what is kept whole.
func spots(tb testing.TB, p payload) []spot {
	tb.Helper()
	var out []spot
	var walk func(path string, raw []byte, from int)
	walk = func(path string, raw []byte, from int) {
		list := jsontext.Value(raw).Kind() == '['
		for i, m := range members(tb, raw) {
			at := path + "." + m.name
			if list {
				at = fmt.Sprintf("%s[%d]", path, i)
			}
			switch p.typ + " " + at {
			case "delivery.admitted data.clientContext", "content.completed data.value", "call.requested data.input",
				"call.progress data.output", "call.settled data.output", "interaction.opened data.origin.call.input":
				continue
			}
			out = append(out, spot{at, m.raw, from + m.at})
			switch p.typ + " " + at {
			case "interaction.settled data.response", "delivery.consumed data.parts[2]":
				continue
			}
			walk(at, m.raw, from+m.at)
		}
	}
	walk("data", []byte(p.data), 0)
	return out
}

// kindName names a JSON type as a decode error does.
func kindName(raw []byte) string {
	switch jsontext.Value(raw).Kind() {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	default:
		return "a boolean"
	}
}

// TestWrongType puts a value of another type in each place of each payload: the payload fails, and the error says where
// and why.
func TestWrongType(t *testing.T) {
	n := 0
	for _, p := range payloads() {
		for _, s := range spots(t, p) {
			if string(s.raw) == "null" {
				continue
			}
			for _, wrong := range []string{`"text"`, `7`, `{}`, `[]`, `true`} {
				want := kindName(s.raw)
				if got := kindName([]byte(wrong)); got != want {
					n++
					check(t, p.typ, replaced(p.data, s, wrong), fmt.Sprintf("%s: want %s, got %s", s.path, want, got))
				}
			}
		}
	}
	t.Logf("%d wrong values", n)
}

// replaced returns data with another value in one spot.
func replaced(data string, s spot, with string) string {
	return data[:s.from] + with + data[s.from+len(s.raw):]
}

// TestNull puts null in each place of each payload: it reads as a missing member, but for the record's own id, the
// elements of arrays, and selects, where null means something.
func TestNull(t *testing.T) {
	for _, p := range payloads() {
		for _, s := range spots(t, p) {
			name := s.path[strings.LastIndexAny(s.path, ".")+1:]
			got, decodeError := decoded(t, p.typ, replaced(p.data, s, "null"))
			switch {
			case strings.HasSuffix(name, "]"), s.path == "data."+ownID(p.typ):
				if want := s.path + ": want " + kindName(s.raw) + ", got null"; decodeError != want {
					t.Errorf("%s: null at %s: decode error %q, want %q", p.typ, s.path, decodeError, want)
				}
			case name == "selects":
				if f, _ := got.(*evev1.Fact); !f.GetContextSettled().GetSelects().GetEmptied() {
					t.Errorf("%s: null at %s does not empty the conversation: %v", p.typ, s.path, got)
				}
			case name == "startedBy", s.path == "data.startedBy.callId":
				if decodeError != "" || !proto.Equal(got, new(evev1.Fact)) {
					t.Errorf("%s: null at %s: %v, decode error %q, want neither", p.typ, s.path, got, decodeError)
				}
			case name == "kind" && strings.HasPrefix(s.path, "data.parts"): // the part's kind is then unknown
			default:
				// The same payload without the member, or with a member of a name nobody knows.
				at := strings.LastIndex(p.data[:s.from], name)
				without := p.data[:at] + "x" + p.data[at:]
				want, wantError := decoded(t, p.typ, without)
				if decodeError != wantError || !proto.Equal(got, want) {
					t.Errorf("%s: null at %s: %v %q, want %v %q", p.typ, s.path, got, decodeError, want, wantError)
				}
			}
		}
	}
}

// ownID returns the member that holds the id of a record's own entity (contract 3.0).
func ownID(typ string) string {
	family, _, _ := strings.Cut(typ, ".")
	switch family {
	case "session", "usage":
		return "none"
	case "model":
		return "runId"
	case "content":
		return "partId"
	case "child":
		return "sessionId"
	case "context":
		return "changeId"
	}
	return family + "Id"
}

// TestOwnID takes the record's own id away.
func TestOwnID(t *testing.T) {
	for _, p := range payloads() {
		id := ownID(p.typ)
		if id == "none" {
			check(t, p.typ, `{}`, strings.ReplaceAll(p.typ, ".", "_")+":{}")
			continue
		}
		rest := ""
		if p.typ == "task.started" {
			rest = `"startedBy":{"callId":"c"},`
		}
		check(t, p.typ, `{`+rest+`"x":1}`, "data."+id+": want a string, got nothing")
		check(t, p.typ, `{`+rest+`"`+id+`":""}`, "data."+id+": want a string that is not empty, got an empty one")
		check(t, p.typ, `{`+rest+`"`+id+`":"a","`+id+`":7}`, "data."+id+": want a string, got a number")
		// Nothing else is required.
		if p.typ != "task.started" {
			check(t, p.typ, `{"`+id+`":"e"}`, fmt.Sprintf("%s:{%s:'e'}", strings.ReplaceAll(p.typ, ".", "_"), snake(id)))
		}
	}
}

func snake(id string) string { return strings.TrimSuffix(id, "Id") + "_id" }

// TestDuplicates writes each member of each payload twice, the first time with a value that would fail it: the last one
// counts, as in JavaScript.
func TestDuplicates(t *testing.T) {
	for _, p := range payloads() {
		for _, s := range spots(t, p) {
			if strings.HasSuffix(s.path, "]") {
				continue
			}
			name := s.path[strings.LastIndexByte(s.path, '.')+1:]
			for _, first := range []string{`7`, `"text"`, `{"x":{}}`} {
				check(t, p.typ, replaced(p.data, s, first+`,"`+name+`":`+string(s.raw)), p.want)
			}
		}
	}
}

// TestSpelling writes each payload as differently as JSON allows.
func TestSpelling(t *testing.T) {
	for _, p := range payloads() {
		if strings.Contains(p.want, "_json") {
			continue // verbatim
		}
		check(t, p.typ, respelled(t, []byte(p.data)), p.want)
	}
}

// respelled escapes every character of every string, puts space wherever it may stand, adds members nobody knows, and
// turns the order of members around.
func respelled(t *testing.T, raw []byte) string {
	t.Helper()
	escaped := func(s string) string {
		var b strings.Builder
		for _, r := range s {
			fmt.Fprintf(&b, `\u%04X`, r)
		}
		return `"` + b.String() + `"`
	}
	var items []string
	switch jsontext.Value(raw).Kind() {
	case '"':
		return escaped(text(raw))
	case '{':
		for _, m := range members(t, raw) {
			items = append(items, escaped(m.name)+" :\t"+respelled(t, m.raw))
		}
		items = append(items, `"unknown":[{"deliveryId":1e999}]`)
		slices.Reverse(items)
		return "{ " + strings.Join(items, " ,\r\n") + "\n}"
	case '[':
		for _, m := range members(t, raw) {
			items = append(items, respelled(t, m.raw))
		}
		return "[ " + strings.Join(items, " , ") + " ]"
	case '0':
		if json.Valid(append(slices.Clone(raw), ".0"...)) && len(raw) < 16 {
			return string(raw) + ".0"
		}
	default:
	}
	return string(raw)
}

func TestDecodeRules(t *testing.T) {
	for _, tc := range []struct {
		name, typ, data, want string
	}{
		// Payloads that are none.
		{"null data", "turn.settled", `null`, "data: want an object, got null"},
		{"array data", "turn.settled", `[]`, "data: want an object, got an array"},
		{"text data", "content.delta", `"secret"`, "data: want an object, got a string"},
		{"number data", "usage.recorded", `-1`, "data: want an object, got a number"},
		{"boolean data", "usage.recorded", `false`, "data: want an object, got a boolean"},
		{"empty session.started", "session.started", `{}`, `session_started:{}`},
		{"place of an element", "interaction.opened", `{"interactionId":"i","request":{"options":[{},{"id":1}]}}`, "data.request.options[1].id: want a string, got a number"},
		{"null element", "delivery.consumed", `{"deliveryId":"d","parts":[null]}`, "data.parts[0]: want an object, got null"},
		{"first failure in field order", "turn.settled", `{"reply":7,"turnId":7}`, "data.turnId: want a string, got a number"},

		// Verbatim JSON.
		{"null output", "call.settled", `{"callId":"c","output":null}`, `call_settled:{call_id:"c" output_json:"null"}`},
		{"null value", "content.completed", `{"partId":"p","value":null}`, `content_completed:{part_id:"p" value_json:"null"}`},
		{"no value", "content.completed", `{"partId":"p"}`, `content_completed:{part_id:"p"}`},
		{"empty text", "content.completed", `{"partId":"p","value":""}`, `content_completed:{part_id:"p" text:"" value_json:'""'}`},
		{"object value", "content.completed", `{"partId":"p","value":{"a" : 1}}`, `content_completed:{part_id:"p" value_json:'{"a" : 1}'}`},
		{"last value counts", "content.completed", `{"partId":"p","value":"a","value":[1]}`, `content_completed:{part_id:"p" value_json:'[1]'}`},
		{"numbers as written", "call.progress", `{"callId":"c","output":1.0E+2}`, `call_progress:{call_id:"c" output_json:"1.0E+2"}`},
		{"duplicates inside", "call.progress", `{"callId":"c","output":{"a":1,"a":2}}`, `call_progress:{call_id:"c" output_json:'{"a":1,"a":2}'}`},
		{"half pair inside", "call.progress", `{"callId":"c","output":"\ud83d"}`, `call_progress:{call_id:"c" output_json:'"\\ud83d"'}`},
		{"null response", "interaction.settled", `{"interactionId":"i","response":null}`, `interaction_settled:{interaction_id:"i"}`},

		// Text.
		{"half a pair", "content.delta", `{"partId":"p","delta":"tide \ud83d"}`, `content_delta:{part_id:"p" delta:"tide \ufffd"}`},
		{"other half", "content.delta", `{"partId":"p","delta":"\udc1f in"}`, `content_delta:{part_id:"p" delta:"\ufffd in"}`},
		{"half, then a pair", "content.delta", `{"partId":"p","delta":"\ud83d\ud83d\udc1f"}`, `content_delta:{part_id:"p" delta:"\ufffd\U0001F41F"}`},
		{"half, then a letter", "content.delta", `{"partId":"p","delta":"\ud83d\u0041\udc1f"}`, `content_delta:{part_id:"p" delta:"\ufffdA\ufffd"}`},
		{"halves in the wrong order", "content.delta", `{"partId":"p","delta":"\udc1f\ud83d"}`, `content_delta:{part_id:"p" delta:"\ufffd\ufffd"}`},
		{"escapes", "content.delta", `{"partId":"p","delta":"\"\\\/\b\f\n\r\t\u00e9\u0000"}`, `content_delta:{part_id:"p" delta:"\"\\/\b\f\n\r\t\u00e9\x00"}`},
		{"escaped name", "content.delta", `{"part\u0049d":"p","delta":"d"}`, `content_delta:{part_id:"p" delta:"d"}`},
		{"name with half a pair", "content.delta", `{"partId":"p","\ud83d":7}`, `content_delta:{part_id:"p"}`},

		// Numbers.
		{"5.0 and 1e2", "usage.recorded", `{"usage":{"inputTokens":1e2,"outputTokens":5.0,"cacheReadTokens":12.5e1,"cacheWriteTokens":-0}}`, `usage_recorded:{usage:{input_tokens:100 output_tokens:5 cache_read_tokens:125}}`},
		{"2^64-1", "usage.recorded", `{"usage":{"inputTokens":18446744073709551615}}`, `usage_recorded:{usage:{input_tokens:18446744073709551615}}`},
		{"2^64", "usage.recorded", `{"usage":{"inputTokens":18446744073709551616}}`, "data.usage.inputTokens: want an unsigned 64-bit integer, got another number"},
		{"1.8446744073709552e19", "usage.recorded", `{"usage":{"inputTokens":1.8446744073709552e19}}`, "data.usage.inputTokens: want an unsigned 64-bit integer, got another number"},
		{"negative", "usage.recorded", `{"usage":{"outputTokens":-1}}`, "data.usage.outputTokens: want an unsigned 64-bit integer, got another number"},
		{"fraction", "delivery.consumed", `{"deliveryId":"d","parts":[{"kind":"file","size":0.5}]}`, "data.parts[0].size: want an unsigned 64-bit integer, got another number"},
		{"1e400", "context.started", `{"changeId":"x","trigger":{"inputTokens":1e400}}`, "data.trigger.inputTokens: want an unsigned 64-bit integer, got another number"},
		{"1e-400 is 0", "context.started", `{"changeId":"x","trigger":{"inputTokens":1e-400}}`, `context_started:{change_id:"x" trigger:{}}`},
		{"flags 2^32-1", "session.started", `{"trace":{"traceFlags":4294967295}}`, `session_started:{trace:{trace_flags:4294967295}}`},
		{"flags 2^32", "session.started", `{"trace":{"traceFlags":4294967296}}`, "data.trace.traceFlags: want an unsigned 32-bit integer, got another number"},
		{"flags 4.294967296e9", "session.started", `{"trace":{"traceFlags":4.294967296e9}}`, "data.trace.traceFlags: want an unsigned 32-bit integer, got another number"},
		{"size 0", "delivery.consumed", `{"deliveryId":"d","parts":[{"kind":"file","size":0}]}`, `delivery_consumed:{delivery_id:"d" parts:{kind:"file" size:0}}`},
		{"cost 0", "usage.recorded", `{"usage":{"costUsd":0}}`, `usage_recorded:{usage:{cost_usd:0}}`},
		{"cost 1e999", "usage.recorded", `{"usage":{"costUsd":1e999}}`, "data.usage.costUsd: want a number, got one out of range"},

		// Open sets and unions.
		{"unknown outcome", "turn.settled", `{"turnId":"t","outcome":"exploded"}`, `turn_settled:{turn_id:"t"}`},
		{"outcome in capitals", "turn.settled", `{"turnId":"t","outcome":"COMPLETED"}`, `turn_settled:{turn_id:"t"}`},
		{"another family's outcome", "turn.settled", `{"turnId":"t","outcome":"handled"}`, `turn_settled:{turn_id:"t"}`},
		{"unknown cause", "turn.started", `{"turnId":"t","cause":{"moonPhase":"full"},"follows":null}`, `turn_started:{turn_id:"t" cause:{}}`},
		{"unknown owner", "model.requested", `{"runId":"r","owner":{"x":1}}`, `model_requested:{run_id:"r" owner:{}}`},
		{"unknown awaited", "turn.paused", `{"turnId":"t","awaiting":[{"tideId":"x"}]}`, `turn_paused:{turn_id:"t" awaiting:{}}`},
		{"unknown clearance", "call.started", `{"callId":"c","clearedBy":{"moon":1}}`, `call_started:{call_id:"c" cleared_by:{}}`},
		{"grant without interaction", "call.started", `{"callId":"c","clearedBy":{"grant":{}}}`, `call_started:{call_id:"c" cleared_by:{}}`},
		{"unknown source", "delivery.admitted", `{"deliveryId":"d","source":{"pigeon":1}}`, `delivery_admitted:{delivery_id:"d" source:{}}`},
		{"channel and hook", "delivery.admitted", `{"deliveryId":"d","source":{"channel":"eve","hook":"h"}}`, `delivery_admitted:{delivery_id:"d" source:{channel:"eve" hook:"h"}}`},
		{"unknown selection", "context.settled", `{"changeId":"x","selects":{"branch":1}}`, `context_settled:{change_id:"x" selects:{}}`},
		{"cause keys in order", "turn.resumed", `{"turnId":"t","cause":{"hook":"h","policy":"p","changeId":"x","responseId":"r","interactionId":"i","callId":"c","taskId":"k","turnId":"t","deliveryId":"d"}}`, `turn_resumed:{turn_id:"t" cause:{delivery_id:"d"}}`},
		{"turn before the rest", "turn.resumed", `{"turnId":"t","cause":{"hook":"h","policy":"p","changeId":"x","responseId":"r","interactionId":"i","callId":"c","taskId":"k","turnId":"u"}}`, `turn_resumed:{turn_id:"t" cause:{turn_id:"u"}}`},
		{"task before the rest", "turn.resumed", `{"turnId":"t","cause":{"hook":"h","policy":"p","changeId":"x","responseId":"r","interactionId":"i","callId":"c","taskId":"k"}}`, `turn_resumed:{turn_id:"t" cause:{task_id:"k"}}`},
		{"call before the rest", "turn.resumed", `{"turnId":"t","cause":{"hook":"h","policy":"p","changeId":"x","responseId":"r","interactionId":"i","callId":"c"}}`, `turn_resumed:{turn_id:"t" cause:{call_id:"c"}}`},
		{"interaction before the rest", "turn.resumed", `{"turnId":"t","cause":{"hook":"h","policy":"p","changeId":"x","responseId":"r","interactionId":"i"}}`, `turn_resumed:{turn_id:"t" cause:{interaction_id:"i"}}`},
		{"response before the rest", "turn.resumed", `{"turnId":"t","cause":{"hook":"h","policy":"p","changeId":"x","responseId":"r"}}`, `turn_resumed:{turn_id:"t" cause:{response_id:"r"}}`},
		{"change before the rest", "turn.resumed", `{"turnId":"t","cause":{"hook":"h","policy":"p","changeId":"x"}}`, `turn_resumed:{turn_id:"t" cause:{change_id:"x"}}`},
		{"policy before hook", "turn.resumed", `{"turnId":"t","cause":{"hook":"h","policy":"p"}}`, `turn_resumed:{turn_id:"t" cause:{policy:"p"}}`},
		{"null key is none", "turn.resumed", `{"turnId":"t","cause":{"deliveryId":null,"hook":"h"}}`, `turn_resumed:{turn_id:"t" cause:{hook:"h"}}`},
		{"part without kind", "delivery.consumed", `{"deliveryId":"d","parts":[{"text":"x"}]}`, `delivery_consumed:{delivery_id:"d" parts:{part_json:'{"text":"x"}'}}`},
		{"members of another kind", "delivery.consumed", `{"deliveryId":"d","parts":[{"kind":"text","text":"x","size":"big"}]}`, `delivery_consumed:{delivery_id:"d" parts:{kind:"text" text:"x"}}`},
		{"no parts", "delivery.consumed", `{"deliveryId":"d","turnId":"t","parts":[]}`, `delivery_consumed:{delivery_id:"d" turn_id:"t"}`},
		{"false where only true is known", "content.completed", `{"partId":"p","interrupted":false}`, `content_completed:{part_id:"p"}`},

		// context.settled.selects has three states (contract 3.13).
		{"selects absent", "context.settled", `{"changeId":"x"}`, `context_settled:{change_id:"x"}`},
		{"selects null", "context.settled", `{"changeId":"x","selects":null}`, `context_settled:{change_id:"x" selects:{emptied:true}}`},
		{"selects a turn", "context.settled", `{"changeId":"x","selects":{"turnId":"t"}}`, `context_settled:{change_id:"x" selects:{turn_id:"t"}}`},
		{"last selects counts", "context.settled", `{"changeId":"x","selects":{"turnId":"t"},"selects":null}`, `context_settled:{change_id:"x" selects:{emptied:true}}`},

		// The older task.started is another fact under the same name (contract 3.16).
		{"task.started without startedBy", "task.started", `{"taskId":"k","callId":"c","kind":"agent","name":"n"}`, ``},
		{"task.started without call", "task.started", `{"taskId":"k","startedBy":{}}`, ``},
		{"task.started by a call without id", "task.started", `{"taskId":"k","startedBy":{"callId":""}}`, ``},
		{"task.started without anything", "task.started", `{}`, ``},
		{"task.started by another thing", "task.started", `{"taskId":"k","startedBy":7}`, "data.startedBy: want an object, got a number"},
	} {
		t.Run(tc.name, func(t *testing.T) { check(t, tc.typ, tc.data, tc.want) })
	}
}

// TestMissingData checks a record of a known type without data, which a line can hold.
func TestMissingData(t *testing.T) {
	var resp evev1.SubscribeResponse
	l := line(t, []byte(`{"at":"x","facts":[{"type":"turn.settled"}]}`), 27, 0)
	translate.Item(&resp, l, 0, true, time.Time{}, translate.FormOf(typed))
	f := resp.GetFact()
	if f.Data != nil || f.DecodeError != "data: want an object, got nothing" || f.RecordJson != `{"type":"turn.settled"}` {
		t.Errorf("got %v", f)
	}
}

// TestInvalidUTF8 checks that text is decoded from what JavaScript sees: the bytes after replacement.
func TestInvalidUTF8(t *testing.T) {
	check(t, "content.delta", "{\"partId\":\"p\",\"delta\":\"a\xf0\x9f\x90b\xffc\"}", `content_delta:{part_id:"p" delta:"a\ufffdb\ufffdc"}`)
	check(t, "call.progress", "{\"callId\":\"c\xc3\",\"output\":{\"\xe2\x82\":1}}", `call_progress:{call_id:"c\ufffd" output_json:'{"\ufffd":1}'}`)
}
