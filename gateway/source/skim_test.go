package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// skimText skims one line and says in words what it is.
func skimText(raw string, version uint32) string {
	var l Line
	return says(newSkimmer().skim([]byte(raw), version, &l), &l)
}

// says is a skimmed line in words: the name of a transport record, or the kind, the records' types and the flaw.
func says(r skimmed, l *Line) string {
	if r.transport == position {
		return fmt.Sprintf("position %d", r.next)
	}
	if name, ok := map[transport]string{blank: "blank", heartbeat: "heartbeat", leaseEnded: "lease ended", streamEnded: "stream ended",
		unknownTransport: "transport"}[r.transport]; ok {
		return name
	}
	words := []string{map[Kind]string{Unreadable: "unreadable", Commit: "commit", Progress: "progress", Event: "event"}[l.Kind]}
	for i := range l.Records {
		words = append(words, fmt.Sprintf("%q", l.Records[i].Type))
	}
	if l.Flaw != NoFlaw {
		words = append(words, map[Flaw]string{InvalidJSON: "JSON", NotAnObject: "no object", UnknownShape: "shape", MalformedPosition: "next"}[l.Flaw])
	}
	if l.Terminal {
		words = append(words, "terminal")
	}
	return strings.Join(words, " ")
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// TestClassification goes through contract 2.2, row by row, then 5.1, 5.2 and the sniffing of 6.4.
func TestClassification(t *testing.T) {
	const beyond = "9007199254740992" // 2^53, no safe integer
	for _, test := range []struct {
		name, line string
		at27       string
		upTo26     string // empty: the same
	}{
		{"0 empty", "", "blank", ""},
		{"0 CR", "\r", "blank", ""},
		{"0 white space", " \t\v\f\r ", "blank", ""},
		{"0 what JavaScript trims", "\ufeff\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000", "blank", ""},
		{"0 what it does not trim", "\u0085", "unreadable JSON", ""},
		{"0 nor this", "\u200b", "unreadable JSON", ""},

		{"1 text", "not json", "unreadable JSON", ""},
		{"1 a cut object", `{"at":"x","facts":[`, "unreadable JSON", ""},
		{"1 a cut string", `{"at":"x`, "unreadable JSON", ""},
		{"1 two values", `{"at":"x","facts":[]} {}`, "unreadable JSON", ""},
		{"1 rubbish behind", `{"at":"x","facts":[]}x}`, "unreadable JSON", ""},
		{"1 a trailing comma", `{"at":"x","facts":[],}`, "unreadable JSON", ""},
		{"1 single quotes", `{'at':'x','facts':[]}`, "unreadable JSON", ""},
		{"1 a raw control character", "{\"at\":\"a\tb\",\"facts\":[]}", "unreadable JSON", ""},
		{"1 NaN", `{"at":"x","facts":[NaN]}`, "unreadable JSON", ""},
		{"1 a leading zero", `{"at":"x","facts":[01]}`, "unreadable JSON", ""},
		{"1 a BOM in the middle", "{\"at\":\"x\",\ufeff\"facts\":[]}", "unreadable JSON", ""},
		{"1 a NBSP in the middle", "{\"at\":\"x\",\u00a0\"facts\":[]}", "unreadable JSON", ""},
		{"1 a bad byte outside strings", "{\"at\":\"x\",\xff\"facts\":[]}", "unreadable JSON", ""},
		{"1 a bad escape", `{"at":"\x41","facts":[]}`, "unreadable JSON", ""},
		{"1 nested too deep", nested(10_001), "unreadable JSON", ""},
		{"1 a line nested too deep", `{"at":"x","facts":[` + nested(9_999) + `]}`, "unreadable JSON", ""},
		{"1 a member nested too deep", `{"other":` + nested(10_000) + `}`, "unreadable JSON", ""},

		{"2 null", "null", "unreadable no object", ""},
		{"2 true", " true ", "unreadable no object", ""},
		{"2 a number", "-1.5e3", "unreadable no object", ""},
		{"2 a string", `"{}"`, "unreadable no object", ""},
		{"2 an array", `[{"at":"x","facts":[]}]`, "unreadable no object", ""},
		{"2 nested as deep as can be", nested(10_000), "unreadable no object", ""},

		{"3 a position", `{"$eve":"position","next":7}`, "position 7", ""},
		{"3 zero", `{"next":0,"$eve":"position"}`, "position 0", ""},
		{"3 a negative one", `{"$eve":"position","next":-7}`, "position -7", ""},
		{"3 minus zero", `{"$eve":"position","next":-0}`, "position 0", ""},
		{"3 a fraction of nothing", `{"$eve":"position","next":5.0}`, "position 5", ""},
		{"3 an exponent", `{"$eve":"position","next":1e2}`, "position 100", ""},
		{"3 a negative exponent", `{"$eve":"position","next":50e-1}`, "position 5", ""},
		{"3 the largest", `{"$eve":"position","next":9007199254740991}`, "position 9007199254740991", ""},
		{"3 the last next counts", `{"$eve":"position","next":"x","next":3}`, "position 3", ""},
		{"3 an escaped name", `{"\u0024eve":"\u0070osition","n\u0065xt":3}`, "position 3", ""},
		{"3 extra members", `{"$eve":"position","next":3,"at":"x","facts":[]}`, "position 3", ""},

		// Below 27 there is no such record, and what is not known there never counts.
		{"4 no next", `{"$eve":"position"}`, "unreadable next", "transport"},
		{"4 a string", `{"$eve":"position","next":"7"}`, "unreadable next", "transport"},
		{"4 a fraction", `{"$eve":"position","next":7.5}`, "unreadable next", "transport"},
		{"4 null", `{"$eve":"position","next":null}`, "unreadable next", "transport"},
		{"4 the last next counts", `{"$eve":"position","next":3,"next":{}}`, "unreadable next", "transport"},
		{"4 no safe integer", `{"$eve":"position","next":` + beyond + `}`, "unreadable next", "transport"},
		{"4 nor below", `{"$eve":"position","next":-` + beyond + `}`, "unreadable next", "transport"},
		{"4 beyond a double", `{"$eve":"position","next":1e999}`, "unreadable next", "transport"},
		{"4 a commit all the same", `{"$eve":"position","at":"x","facts":[]}`, "unreadable next", "transport"},

		{"5 a heartbeat", `{"$eve":"heartbeat"}`, "heartbeat", ""},
		{"5 a lease end", `{"$eve":"stream.lease-ended"}`, "lease ended", "transport"},
		{"5 a lease end of 26", `{"$eve":"stream.lease-ended","version":1}`, "lease ended", ""},
		{"5 its version is a number", `{"$eve":"stream.lease-ended","version":1.0}`, "lease ended", ""},
		{"5 of an unknown version", `{"$eve":"stream.lease-ended","version":2}`, "lease ended", "transport"},
		{"5 or a text", `{"$eve":"stream.lease-ended","version":"1"}`, "lease ended", "transport"},
		{"5 an end", `{"$eve":"stream.ended","facts":[],"at":"x"}`, "stream ended", ""},
		{"5 in white space", " \ufeff{ \"$eve\" : \"heartbeat\" }\r", "heartbeat", ""},
		{"5 the last $eve counts", `{"$eve":5,"$eve":"heartbeat"}`, "heartbeat", ""},

		{"6 an unknown name", `{"$eve":"stream.weather","at":"x","facts":[]}`, "transport", ""},
		{"6 no name", `{"$eve":""}`, "transport", ""},
		{"6 an event all the same", `{"$eve":"x","type":"turn.started","meta":{}}`, "transport", ""},

		{"7 a commit", `{"at":"x","facts":[{"type":"a"},{"type":"b"}]}`, `commit "a" "b"`, ""},
		{"7 without facts", `{"facts":[],"at":""}`, "commit", ""},
		{"7 extra members", `{"more":{"facts":7},"at":"x","facts":[{"type":"a"}],"progress":{"type":"p"},"meta":{}}`, `commit "a"`, ""},
		{"7 slots that are no objects", `{"at":"x","facts":[1,{"type":"a"},null,"s",[{"type":"b"}],true]}`, `commit "" "a" "" "" "" ""`, ""},
		{"7 slots without a type", `{"at":"x","facts":[{},{ },{"type":5},{"type":"a","type":null}]}`, `commit "" "" "" ""`, ""},
		{"7 $eve that is no string", `{"$eve":42,"at":"x","facts":[{"type":"a"}]}`, `commit "a"`, ""},
		{"7 the last $eve counts", `{"$eve":"heartbeat","$eve":null,"at":"x","facts":[]}`, "commit", ""},
		{"7 the last at counts", `{"at":5,"at":"x","facts":[]}`, "commit", ""},
		{"7 the last facts count", `{"at":"x","facts":[{"type":"a"}],"facts":[{"type":"b"},{"type":"c"}]}`, `commit "b" "c"`, ""},
		{"7 the last facts count, again", `{"at":"x","facts":7,"facts":[]}`, "commit", ""},
		{"7 the last type counts", `{"at":"x","facts":[{"type":"a","type":"b"}]}`, `commit "b"`, ""},
		{"7 the end of the session", `{"at":"x","facts":[{"type":"session.ended"},{"type":"x"}]}`, `commit "session.ended" "x" terminal`, ""},
		{"7 not by an older name", `{"at":"x","facts":[{"type":"session.completed"}]}`, `commit "session.completed"`, ""},
		{"7 nor by a slot inside", `{"at":"x","facts":[[{"type":"session.ended"}]]}`, `commit ""`, ""},
		{"7 as deep as can be", `{"at":"x","facts":[` + nested(9_998) + `]}`, `commit ""`, ""},

		{"8 a progress record", `{"progress":{"type":"p"}}`, `progress "p"`, ""},
		{"8 without a type", `{"progress":{}}`, `progress ""`, ""},
		{"8 facts without at", `{"facts":[{"type":"a"}],"progress":{"type":"p"}}`, `progress "p"`, ""},
		{"8 at without facts", `{"at":"x","facts":{},"progress":{"type":"p"}}`, `progress "p"`, ""},
		{"8 the last progress counts", `{"progress":null,"progress":{"type":"p"},"progress":{"type":"q"}}`, `progress "q"`, ""},
		{"8 never terminal", `{"progress":{"type":"session.ended"}}`, `progress "session.ended"`, ""},
		{"8 never an event", `{"progress":{"type":"p"},"meta":{}}`, `progress "p"`, ""},
		{"8 never an event, with a type", `{"progress":{"type":"p"},"type":"x","meta":{}}`, `progress "p"`, `event "x"`},

		{"9 an empty object", `{}`, "unreadable shape", ""},
		{"9 white space", "{ \t }", "unreadable shape", ""},
		{"9 an unknown shape", `{"weird":{"facts":[]}}`, "unreadable shape", ""},
		{"9 $eve that is no string", `{"$eve":["position"]}`, "unreadable shape", ""},
		{"9 facts without at", `{"facts":[{"type":"a"}]}`, "unreadable shape", ""},
		{"9 at that is no string", `{"at":1794992400000,"facts":[{"type":"a"}]}`, "unreadable shape", ""},
		{"9 facts that are no array", `{"at":"x","facts":{"type":"a"}}`, "unreadable shape", ""},
		{"9 the last facts count", `{"at":"x","facts":[{"type":"a"}],"facts":null}`, "unreadable shape", ""},
		{"9 the last at counts", `{"at":"x","at":null,"facts":[{"type":"a"}]}`, "unreadable shape", ""},
		{"9 progress that is no object", `{"progress":[{"type":"p"}]}`, "unreadable shape", ""},
		{"9 null", `{"progress":null}`, "unreadable shape", ""},
		{"9 the last progress counts", `{"progress":{"type":"p"},"progress":5}`, "unreadable shape", ""},
		{"9 names are exact", `{"At":"x","Facts":[],"PROGRESS":{}}`, "unreadable shape", ""},
		{"9 a bad byte in a name", "{\"at\":\"x\",\"facts\xff\":[]}", "unreadable shape", ""},

		// 5.1; at 27 such a line is one of row 9, unless it is what 6.4 C describes.
		{"5.1 an event", `{"type":"turn.started","data":{},"meta":{"id":"evt_1"}}`, `event "turn.started"`, ""},
		{"5.1 without meta", `{"type":"turn.started","data":{}}`, "unreadable shape", `event "turn.started"`},
		{"5.1 meta that is no object", `{"type":"turn.started","meta":"m"}`, "unreadable shape", `event "turn.started"`},
		{"5.1 the last meta counts", `{"type":"turn.started","meta":{},"meta":7}`, "unreadable shape", `event "turn.started"`},
		{"5.1 the last type counts", `{"type":"x","type":"y","meta":{}}`, `event "y"`, ""},
		{"5.1 no type", `{"data":{},"meta":{"id":"evt_1"}}`, "unreadable shape", ""},
		{"5.1 a type that is no string", `{"type":"x","type":7,"meta":{"id":"evt_1"}}`, "unreadable shape", ""},
		{"5.1 an unknown type", `{"type":"almanac.opened","meta":{}}`, `event "almanac.opened"`, ""},
		{"5.6 the session is over", `{"type":"session.completed","meta":{}}`, `event "session.completed" terminal`, ""},
		{"5.6 the session failed", `{"type":"session.failed","meta":{}}`, `event "session.failed" terminal`, ""},
		{"5.6 not by the newer name", `{"type":"session.ended","meta":{}}`, `event "session.ended"`, ""},
		{"6.4 C facts that are none", `{"type":"x","meta":{},"facts":[{"type":"session.ended"}]}`, `event "x"`, ""},
		{"6.4 C progress that is none", `{"type":"x","meta":{},"progress":null}`, `event "x"`, ""},
		{"6.4 E a commit under 26", `{"at":"x","facts":[{"type":"session.ended"}]}`, `commit "session.ended" terminal`, ""},
		{"6.4 E progress under 26", `{"progress":{"type":"p"}}`, `progress "p"`, ""},

		// Lenient JSON (contract 10, transcript 13).
		{"a lone surrogate", `{"at":"x","facts":[{"type":"a","data":"\ud83d"}]}`, `commit "a"`, ""},
		{"the other half first", `{"at":"x","facts":[{"type":"\udc1f\ud83d"}]}`, `commit "��"`, ""},
		{"a bad byte", "{\"at\":\"x\",\"facts\":[{\"type\":\"a\xff\",\"data\":\"\xc3(\"}]}", `commit "a�"`, ""},
		{"an escaped type", `{"at":"x","facts":[{"ty\u0070e":"session\u002eended"}]}`, `commit "session.ended" terminal`, ""},
		{"an encoded surrogate", "{\"at\":\"\xed\xa0\xbd\",\"facts\":[]}", "commit", ""},
		{"in odd spacing", " { \"at\" : \"x\" , \"facts\" : [ { \"type\" : \"a\" } , { } ] } \u00a0", `commit "a" ""`, ""},
		{"U+2028 in a string", "{\"at\":\"x\",\"facts\":[{\"type\":\"a\u2028\"}]}", `commit "a\u2028"`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := skimText(test.line, 27); got != test.at27 {
				t.Errorf("at 27: %s\nwant:  %s", got, test.at27)
			}
			want := test.upTo26
			if want == "" {
				want = test.at27
			}
			for version := uint32(minVersion); version < 27; version++ {
				if got := skimText(test.line, version); got != want {
					t.Errorf("at %d: %s\nwant:  %s", version, got, want)
				}
			}
		})
	}
}

// TestRecords checks what is found of each record: its bytes exactly, its data, its scope.
func TestRecords(t *testing.T) {
	type record struct{ Raw, Data, Scope string }
	for _, test := range []struct {
		name    string
		version uint32
		line    string
		want    []record
	}{
		{"facts", 27, `{"at":"x","facts":[{"type":"a","data":{"n":1},"scope":{"turnId":"t","runId":"r","taskId":"k","changeId":"c"}},{"type":"b"}]}`,
			[]record{{`{"type":"a","data":{"n":1},"scope":{"turnId":"t","runId":"r","taskId":"k","changeId":"c"}}`, `{"n":1}`, "{t r k c}"}, {`{"type":"b"}`, "", ""}}},
		{"odd spacing", 27, "\t{ \"facts\" :\t[ {  \"data\" : [ 1 , 2 ] ,\"type\":\"a\" }\r, 7 ,{ },{}, \"}{\" , { \"{\" : \"}\" } ] ,\"at\":\"x\"}\r",
			[]record{{"{  \"data\" : [ 1 , 2 ] ,\"type\":\"a\" }", "[ 1 , 2 ]", ""}, {"7", "", ""}, {"{ }", "", ""}, {"{}", "", ""}, {`"}{"`, "", ""}, {`{ "{" : "}" }`, "", ""}}},
		{"braces in strings", 27, `{"at":"{","{facts":[{}],"facts":[{"{":"{","data":"}{"}]}`, []record{{`{"{":"{","data":"}{"}`, `"}{"`, ""}}},
		{"duplicates", 27, `{"at":"x","facts":[{"data":1,"scope":{"turnId":"t"},"scope":{"runId":"r"},"data":null}]}`,
			[]record{{`{"data":1,"scope":{"turnId":"t"},"scope":{"runId":"r"},"data":null}`, "null", "{ r  }"}}},
		{"duplicates within scope", 27, `{"progress":{"scope":{"turnId":"t","turnId":"u","runId":"r","runId":null,"x":{"turnId":"v"}}}}`,
			[]record{{`{"scope":{"turnId":"t","turnId":"u","runId":"r","runId":null,"x":{"turnId":"v"}}}`, "", "{u   }"}}},
		{"the last scope is none", 27, `{"progress":{"scope":{"turnId":"t"},"scope":"t"}}`, []record{{`{"scope":{"turnId":"t"},"scope":"t"}`, "", ""}}},
		{"an empty scope is one", 27, `{"progress":{"scope":{}}}`, []record{{`{"scope":{}}`, "", "{   }"}}},
		{"escapes", 27, `{"progress":{"sco\u0070e":{"turn\u0049d":"\u0074\n"},"d\u0061ta":"\u0061"}}`,
			[]record{{`{"sco\u0070e":{"turn\u0049d":"\u0074\n"},"d\u0061ta":"\u0061"}`, `"\u0061"`, "{t\n   }"}}},
		{"progress in odd spacing", 27, `{"progress" : { "data" : {} } , "x" : {}}`, []record{{`{ "data" : {} }`, `{}`, ""}}},
		{"empty progress", 27, `{"progress" : {	} , "x" : {}}`, []record{{"{	}", "", ""}}},
		{"an event is the whole line", 26, "\ufeff { \"type\":\"x\",\"data\": {\"a\":1} , \"scope\":{\"turnId\":\"t\"} }\r",
			[]record{{"{ \"type\":\"x\",\"data\": {\"a\":1} , \"scope\":{\"turnId\":\"t\"} }", `{"a":1}`, ""}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSkimmer()
			for range 2 { // the second time with scratch space in use
				l := Line{Records: s.records[:0]}
				raw := []byte(test.line)
				s.skim(raw, test.version, &l)
				var got []record
				for i := range l.Records {
					r := &l.Records[i]
					scope := ""
					if r.HasScope {
						scope = fmt.Sprint(r.Scope)
					}
					got = append(got, record{string(r.Raw), string(r.Data), scope})
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				inLine(t, raw, &l)
				s.records = l.Records
			}
		})
	}
}

// inLine checks that the records lie in the line, in order and apart, and that appending to one cannot write there.
func inLine(t *testing.T, raw []byte, l *Line) {
	t.Helper()
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(raw)))
	end := uintptr(0)
	for i := range l.Records {
		r := l.Records[i].Raw
		at := uintptr(unsafe.Pointer(unsafe.SliceData(r))) - begin
		if len(r) == 0 || at < end || at+uintptr(len(r)) > uintptr(len(raw)) {
			t.Fatalf("record %d (%d bytes at %d) does not lie in the %d bytes of the line behind byte %d", i, len(r), int64(at), len(raw), end)
		}
		if l.Kind != Event && cap(r) != len(r) {
			t.Errorf("record %d has room to be written over", i)
		}
		end = at + uintptr(len(r))
		if d := l.Records[i].Data; d != nil {
			dataAt := uintptr(unsafe.Pointer(unsafe.SliceData(d))) - begin
			if dataAt < at || dataAt+uintptr(len(d)) > end {
				t.Fatalf("the data of record %d lies outside of it", i)
			}
		}
	}
}

func TestTimesAndMeta(t *testing.T) {
	day := func(h, m, s, ms int) time.Time { return time.Date(2026, 11, 18, h, m, s, ms*1e6, time.UTC) }

	t.Run("commit", func(t *testing.T) {
		for _, test := range []struct {
			at, text string
			want     time.Time
		}{
			{`"2026-11-18T09:00:01.250Z"`, "2026-11-18T09:00:01.250Z", day(9, 0, 1, 250)},
			{`"2026-11-18T10:00:01+01:00"`, "2026-11-18T10:00:01+01:00", day(9, 0, 1, 0)},
			{`"2026-11-18T09:00:01\u005a"`, "2026-11-18T09:00:01Z", day(9, 0, 1, 0)},
			{`"yesterday"`, "yesterday", time.Time{}},
			{`""`, "", time.Time{}},
		} {
			var l Line
			newSkimmer().skim([]byte(`{"at":`+test.at+`,"facts":[]}`), 27, &l)
			if l.AtText != test.text || !l.At.Equal(test.want) || l.At.Location() != time.UTC {
				t.Errorf("%s: %q, %v, want %q, %v", test.at, l.AtText, l.At, test.text, test.want)
			}
		}
	})

	t.Run("event", func(t *testing.T) {
		for _, test := range []struct {
			meta string // the member
			want *Meta
		}{
			{``, nil},
			{`"meta":null,`, nil},
			{`"meta":{},`, &Meta{}},
			{`"meta":{"id":"evt_1","at":"2026-11-18T09:00:01.250Z","deliveryIds":["a","b\n"]},`,
				&Meta{ID: "evt_1", At: day(9, 0, 1, 250), AtText: "2026-11-18T09:00:01.250Z", DeliveryIDs: []string{"a", "b\n"}}},
			{`"meta":{"id":5,"at":"noon","deliveryIds":[]},`, &Meta{AtText: "noon"}},
			{`"meta":{"id":"a","id":"b","at":null,"at":"c","deliveryIds":["a"],"deliveryIds":[7,"b",null]},`,
				&Meta{ID: "b", AtText: "c", DeliveryIDs: []string{"b"}}},
			{`"meta":{"id":"a","id":null,"deliveryIds":["a"],"deliveryIds":"b"},`, &Meta{}},
			{`"meta":{"id":"a"},"meta":{"at":"b"},`, &Meta{AtText: "b"}},
		} {
			var l Line
			newSkimmer().skim([]byte(`{`+test.meta+`"type":"x"}`), 26, &l)
			if diff := cmp.Diff(test.want, l.Records[0].Meta); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.meta, diff)
			}
			if !l.At.IsZero() || l.AtText != "" {
				t.Errorf("%s: the line of an event has a time", test.meta)
			}
		}
	})
}

// TestUnreadable checks that a line says what is wrong without quoting itself, and keeps nothing of a shape it only began.
func TestUnreadable(t *testing.T) {
	for _, raw := range []string{
		`{"at":"2026-11-18T09:00:01Z","facts":[{"type":"sesame"}],"sesame"`,
		`{"type":"sesame","meta":{"id":"sesame"},`,
		`{"sesame":1}`,
		`["sesame"]`,
		`sesame`,
		`{"$eve":"position","next":"sesame"}`,
		`{"$eve":["sesame"]}`,
		`{} sesame`,
		`"sesame\x"`,
	} {
		var l Line
		newSkimmer().skim([]byte(raw), 27, &l)
		if l.Kind != Unreadable || l.Flaw == NoFlaw || l.Identity == "" || string(l.Raw) != raw || l.Size != int64(len(raw)) {
			t.Errorf("%s: %+v", raw, l)
		}
		if len(l.Records) > 0 || l.Terminal || l.AtText != "" || !l.At.IsZero() {
			t.Errorf("%s: keeps something: %+v", raw, l)
		}
		if l.Detail == "" || strings.Contains(l.Detail, "sesame") {
			t.Errorf("%s: says %q", raw, l.Detail)
		}
	}
}

// TestTranscripts counts what the expectations of the contract say, with one skimmer for all files.
func TestTranscripts(t *testing.T) {
	s := newSkimmer()
	for _, name := range fakeeve.TranscriptNames() {
		file, err := fakeeve.Transcript(name)
		if err != nil {
			t.Fatal(err)
		}
		got := fakeeve.Expected{File: name, StreamVersion: fmt.Sprint(file.Version), StartIndex: file.Start, FinalCursor: file.Start, EndedBy: file.Expected.EndedBy,
			UnknownTypes: []string{}}
		for line := range bytes.SplitSeq(bytes.TrimSuffix(file.Body, []byte{'\n'}), []byte{'\n'}) {
			var l Line
			r := s.skim(line, uint32(file.Version), &l)
			got.Records++
			switch r.transport {
			case notTransport:
				got.FinalCursor++
				got.Slots += len(l.Records)
				for i := range l.Records {
					if _, known := knownType(l.Records[i].Type); known {
						got.Events++
					} else {
						got.UnknownTypes = append(got.UnknownTypes, l.Records[i].Type)
					}
				}
				switch l.Kind {
				case Commit:
					got.Commits++
				case Progress:
					got.Progress++
				case Unreadable:
					got.Invalid++
				case Event:
				}
			case blank:
				got.Blank++
				got.Records--
			case unknownTransport:
				got.UnknownTransport++
			case position:
				got.FinalCursor = max(got.FinalCursor, r.next)
				got.Transport++
			case heartbeat, leaseEnded, streamEnded:
				got.Transport++
			}
			inLine(t, line, &l)
		}
		want := file.Expected
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSkimAllocations(t *testing.T) {
	for name, raw := range map[string]string{
		"a delta":   `{"progress":{"type":"content.delta","scope":{"turnId":"turn_0","runId":"run_0"},"data":{"partId":"part_0","delta":"The tide turns."}}}`,
		"a commit":  `{"at":"2026-11-18T09:00:01.250Z","facts":[{"type":"turn.started","scope":{"turnId":"turn_0"},"data":{"turnId":"turn_0","follows":null}},{"type":"delivery.consumed","scope":{"turnId":"turn_0"},"data":{"parts":[{"kind":"text"}]}}]}`,
		"a beat":    `{"$eve":"heartbeat"}`,
		"a jump":    `{"$eve":"position","next":1700}`,
		"no object": `[1,2,3]`,
	} {
		s := newSkimmer()
		line := []byte(raw)
		var l Line
		skim := func() {
			l = Line{Records: s.records[:0]}
			s.skim(line, 27, &l)
			s.records = l.Records
		}
		skim()
		want := 0.0
		if l.Identity != "" {
			want = 1 // it outlives the line
		}
		if n := testing.AllocsPerRun(200, skim); n > want {
			t.Errorf("%s: %v allocations, want %v", name, n, want)
		}
	}
}

// FuzzSkim compares with the classifier of the scripted server and with encoding/json.
func FuzzSkim(f *testing.F) {
	for _, name := range fakeeve.TranscriptNames() {
		file, err := fakeeve.Transcript(name)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.SplitSeq(file.Body, []byte{'\n'}) {
			f.Add(line, uint8(file.Version))
		}
	}
	f.Add([]byte(`{"$eve":"position","next":5.0,"next":"7"}`), uint8(27))
	f.Add([]byte(` { "at" : "x" , "facts" : [ { } , {"type":"a","type":5} , 7 ] , "facts" : [] , "type":"t" , "meta":{} } `), uint8(24))
	f.Add([]byte("{\"at\":\"\\ud83d\xff\",\"facts\":[{\"\\u0074ype\":\"\\udc1f\"}],\"progress\":{}}"), uint8(27))
	s := newSkimmer() // one for all, so that nothing of one line shows in the next
	f.Fuzz(func(t *testing.T, line []byte, v uint8) {
		version := minVersion + uint32(v)%(maxVersion-minVersion+1)
		if bytes.ContainsAny(line, "\n\u0085") {
			return // no line; and white space that only one of the two trims
		}
		raw := bytes.Clone(line)
		l := Line{Records: s.records[:0]}
		got := s.skim(raw, version, &l)
		if !bytes.Equal(raw, line) {
			t.Fatal("the line was written to")
		}
		line = trim(line)
		if isJSON := json.Valid(line); got.transport == notTransport && isJSON == (l.Flaw == InvalidJSON) {
			t.Fatalf("encoding/json takes it for JSON: %v; flaw %d", isJSON, l.Flaw)
		}
		want := oracle(t, line, int(version))
		kind := fakeeve.Transport
		switch got.transport {
		case notTransport:
			kind = map[Kind]fakeeve.Kind{Unreadable: fakeeve.Unreadable, Commit: fakeeve.Commit, Progress: fakeeve.Progress, Event: fakeeve.Event}[l.Kind]
		case blank:
			kind = fakeeve.Blank
		case position:
			kind = fakeeve.Position
		case heartbeat, leaseEnded, streamEnded, unknownTransport:
		}
		if kind != want.Kind || got.next != want.Next {
			t.Fatalf("at %d: %v, next %d, want %v, next %d", version, kind, got.next, want.Kind, want.Next)
		}
		if got.transport != notTransport {
			return
		}
		if len(l.Records) != len(want.Records) {
			t.Fatalf("%d records, want %d", len(l.Records), len(want.Records))
		}
		for i, r := range l.Records {
			if r.Type != want.Records[i].Type || !bytes.Equal(r.Raw, want.Records[i].Raw) {
				t.Errorf("record %d: %q %s, want %q %s", i, r.Type, r.Raw, want.Records[i].Type, want.Records[i].Raw)
			}
			if !json.Valid(r.Raw) {
				t.Errorf("record %d is not JSON: %s", i, r.Raw)
			}
		}
		inLine(t, raw, &l)
		if l.Records != nil {
			s.records = l.Records
		}
	})
}

// trim is String.prototype.trim of JavaScript.
func trim(line []byte) []byte {
	return bytes.Trim(line, "\t\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff")
}

// oracle is what the scripted server takes a trimmed line for, put right where the two differ on purpose.
func oracle(t *testing.T, line []byte, version int) fakeeve.BodyEntry {
	t.Helper()
	entries := fakeeve.ReadBody(append(bytes.Clone(line), '\n'), version, 0)
	if len(entries) != 1 {
		t.Fatalf("%d entries for one line", len(entries))
	}
	e := entries[0]
	var members map[string]json.RawMessage
	if version >= 27 || json.Unmarshal(line, &members) != nil {
		return e
	}
	var text string
	is := func(name string, to any) bool {
		return members[name] != nil && json.Unmarshal(members[name], to) == nil
	}
	switch {
	case e.Kind == fakeeve.Unreadable && is("$eve", &text) && text == "position":
		// A malformed position record is an unknown transport record below 27.
		return fakeeve.BodyEntry{Entry: fakeeve.Entry{Kind: fakeeve.Transport}}
	case (e.Kind == fakeeve.Commit || e.Kind == fakeeve.Progress) && members["type"] != nil && members["type"][0] == '"' && is("type", &text):
		// An event under a header of its own generation is one, whatever else it carries.
		return fakeeve.BodyEntry{Entry: fakeeve.Entry{Kind: fakeeve.Event, Records: []fakeeve.Record{{Type: text, Raw: line}}}}
	}
	return e
}
