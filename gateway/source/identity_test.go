package source

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// identityOf is the identity of a line, which must be counted.
func identityOf(t *testing.T, raw string, version uint32) string {
	t.Helper()
	var l Line
	if r := newSkimmer().skim([]byte(raw), version, &l); r.transport != notTransport {
		t.Fatalf("not counted: %s", raw)
	}
	return l.Identity
}

// identityLines are lines that all differ in what they say; within one entry they say the same.
func identityLines() [][]string {
	commit := func(at, facts string) string { return `{"at":` + at + `,"facts":[` + facts + `]}` }
	delta := func(data string) string { return `{"progress":{"type":"content.delta","data":` + data + `}}` }
	output := func(value string) string {
		return `{"progress":{"type":"call.progress","data":{"output":` + value + `}}}`
	}
	return [][]string{
		// Commits: at, the number of slots, their types.
		{
			commit(`"2026-11-18T09:00:00.000Z"`, `{"type":"a"}`),
			" { \"facts\" : [ {\"data\":{\"n\":1} , \"type\" : \"a\"} ] ,\t\"at\" : \"2026-11-18T09:00:00.000Z\" } \r",
			commit(`"2026-11-18T09:00:00.000\u005a"`, `{"ty\u0070e":"\u0061","scope":{"turnId":"t"}}`),
			`{"at":"then","facts":[],"extra":1,"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"b","type":"a"}]}`,
			`{"$eve":5,"progress":{"type":"p"},` + commit(`"2026-11-18T09:00:00.000Z"`, `{"type":"a"}`)[1:],
		},
		{commit(`"2026-11-18T09:00:00.001Z"`, `{"type":"a"}`)},
		{commit(`"2026-11-18T09:00:00.000Z"`, `{"type":"b"}`)},
		{commit(`"2026-11-18T09:00:00.000Z"`, ``)},
		{commit(`"2026-11-18T09:00:00.000Z"`, `{"type":"a"},{"type":"b"}`)},
		{commit(`"2026-11-18T09:00:00.000Z"`, `{"type":"b"},{"type":"a"}`)},
		{commit(`"2026-11-18T09:00:00.000Z"`, `{"type":"a"},{"type":"b"},{}`), commit(`"2026-11-18T09:00:00.000Z"`, `{"type":"a"},{"type":"b"},7`)},
		{commit(`"2026-11-18T09:00:00.000Z"`, `{"type":"ab"}`)},
		{commit(`"2026-11-18T09:00:00.000Z"`, `{"type":"a"},{}`)},
		{commit(`"2026-11-18T09:00:00.000Z"`, `{},{"type":"a"}`)},
		{commit(`""`, ``)},
		{commit(`"a"`, ``)},
		{commit(`""`, `{"type":"a"}`)},

		// Progress: type, delta or output.
		{
			delta(`{"partId":"p","delta":"tide \ud83d\udc1f"}`),
			delta(`{ "delta" : "tide 🐟" , "partId" : "p" }`),
			delta(`{"partId":"p","delta":"x","d\u0065lta":"\u0074ide \uD83D\uDC1F","kind":"text"}`),
			`{"progress":{"data":{"partId":"p","delta":"tide 🐟"},"type":"content.delta","scope":{"runId":"r"}}}`,
			`{"progress":null,"progress":{"type":"x","data":[],"data":{"delta":"tide 🐟"},"type":"content.delta"}}`,
		},
		{delta(`{"delta":"tide"}`)},
		{delta(`{"delta":""}`)},
		{delta(`{"partId":"p"}`), delta(`"x"`), delta(`{}`), `{"progress":{"type":"content.delta"}}`},
		{delta(`{"delta":null}`)},
		{delta(`{"output":"tide"}`)},
		{delta(`{"delta":"tide","output":"tide"}`)},
		{`{"progress":{"type":"call.input","data":{"delta":"tide"}}}`},
		{`{"progress":{}}`, `{"progress":{"type":5}}`},
		{
			output(`{"rows":[1,2,{"b":null,"a":[true,false]}],"n":100,"s":"é"}`),
			output(` { "s" : "\u00e9", "n":1e2 , "rows" : [ 1.0 , 20e-1 , { "a":[ true,false ], "b" : null } ] } `),
			output(`{"n":"overruled","rows":7,"n":100.00,"rows":[1,2,{"b":1,"b":null,"a":[true,false]}],"s":"é"}`),
		},
		{output(`{"rows":[2,1,{"b":null,"a":[true,false]}],"n":100,"s":"é"}`)},
		{output(`{"rows":[1,2,{"b":null,"a":[true,false]}],"n":101,"s":"é"}`)},
		{output(`{"rows":[1,2,{"b":null,"a":[false,true]}],"n":100,"s":"é"}`)},
		{output(`{"rows":[1,2,{"b":null,"a":[true,false]},{}],"n":100,"s":"é"}`)},
		{output(`{"rows":[1,2,{"b":null,"a":[true,false]}],"n":100,"s":"é","t":0}`)},
		{output(`null`)},
		{output(`true`)},
		{output(`false`)},
		{output(`"null"`)},
		{output(`""`)},
		{output(`0`), output(`-0`), output(`0.0`), output(`0e9`), output(`1e-999`)},
		{output(`1`), output(`1.0`), output(`10e-1`), output(`0.1E+1`), output(`1.00000000000000000001`)},
		{output(`-1`)},
		{output(`12`)},
		{output(`"1"`)},
		{output(`9007199254740992`), output(`9007199254740993`)}, // one double
		{output(`1e999`), output(`1e1000`), output(`2E999`)},     // Infinity
		{output(`-1e999`)},
		{output(`[]`), output(` [ ] `)},
		{output(`{}`)},
		{output(`[[]]`)},
		{output(`[1,2]`), output(`[1.0, 2]`)},
		{output(`[12]`)},
		{output(`[1,"2"]`)},
		{output(`[1,[2]]`)},
		{output(`[[1],2]`)},
		{output(`["a","b"]`)},
		{output(`["ab"]`)},
		{output(`{"a":1}`)},
		{output(`{"a":{}}`)},
		{output(`{"a":1,"b":2}`), output(`{"b":2,"a":1}`), output(`{"b":3,"a":1,"b":2}`)},
		{output(`{"a":2,"b":1}`)},
		{output(`[{"a":1},{"b":2}]`)},

		// Events without an id: type, at, data. See TestEventIdentity for those with one.
		{
			`{"type":"turn.started","data":{"sequence":0,"turnId":"turn_0"},"meta":{"at":"noon"}}`,
			`{"meta":{"id":"","at":"no\u006fn"},"data":{ "turnId":"turn_0", "sequence":0.0 },"type":"turn.started","more":[]}`,
		},
		{`{"type":"turn.started","data":{"sequence":1,"turnId":"turn_0"},"meta":{"at":"noon"}}`},
		{`{"type":"turn.started","data":{"sequence":0,"turnId":"turn_0"},"meta":{"at":"nine"}}`},
		{`{"type":"turn.completed","data":{"sequence":0,"turnId":"turn_0"},"meta":{"at":"noon"}}`},
		{`{"type":"turn.started","meta":{"at":"noon"}}`},
		{`{"type":"turn.started","data":null,"meta":{"at":"noon"}}`},

		// Unreadable lines: their bytes.
		{`not json`, " not json\r", "\ufeffnot json"},
		{`not  json`},
		{`[]`},
		{`[ ]`},
		{`{"weird":1}`, ` {"weird":1} `},
		{`{"$eve":42}`},
		{`{"$eve":"position"}`},
	}
}

func TestIdentity(t *testing.T) {
	seen := map[string]string{}
	for _, spellings := range identityLines() {
		first := identityOf(t, spellings[0], 27)
		for _, raw := range spellings[1:] {
			if got := identityOf(t, raw, 27); got != first {
				t.Errorf("two spellings of one line differ:\n%s\n%s", spellings[0], raw)
			}
		}
		if other, ok := seen[first]; ok {
			t.Errorf("two lines have one identity:\n%s\n%s", other, spellings[0])
		}
		seen[first] = spellings[0]
		if !strings.HasPrefix(first, identityScheme) || len(first) < 16 {
			t.Errorf("identity %q of %s: no scheme, or too short", first, spellings[0])
		}
	}
}

// TestIdentityForms pins the identities: a change of one of them needs another scheme, or every cursor that was handed
// out is taken for one of another history.
func TestIdentityForms(t *testing.T) {
	for _, test := range []struct {
		version   uint32
		raw, want string
	}{
		{27, `{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"turn.started"},{"type":"delivery.consumed"}]}`, "1c-i1mHZ45O1oTPHFc"},
		{27, `{"progress":{"type":"content.delta","data":{"partId":"part_0","delta":"The tide turns."}}}`, "1pZau48zJUOM5eTGTB"},
		{26, `{"type":"turn.started","data":{},"meta":{"id":"evt_01JD3Z8Q","at":"2026-11-18T09:00:00.000Z"}}`, "1eiQt96GVIuM_vTkas"},
		{26, `{"type":"turn.started","data":{"sequence":0},"meta":{"at":"2026-11-18T09:00:00.000Z"}}`, "1ei7RdCOiXyTRkUny0"},
		{27, `not json`, "1ufM-h-_OUDm8MA3XY"},
	} {
		if got := identityOf(t, test.raw, test.version); got != test.want {
			t.Errorf("%s of %s, want %s", got, test.raw, test.want)
		}
	}
}

// TestEventIdentity: meta.id decides alone, whatever else two spellings say; it tells events apart that say the same.
func TestEventIdentity(t *testing.T) {
	one := identityOf(t, `{"type":"a","data":{"n":1},"meta":{"id":"evt_1","at":"noon"}}`, 26)
	for _, same := range []string{
		`{"type":"a","data":{"n":1.0},"meta":{"at":"noon","id":"\u0065vt_1","deliveryIds":["d"]}}`,
		`{"type":"b","meta":{"id":"evt_0","id":"evt_1"}}`,
	} {
		if identityOf(t, same, 26) != one || identityOf(t, same, 24) != one || identityOf(t, same, 27) != one {
			t.Errorf("not the identity of evt_1: %s", same)
		}
	}
	if identityOf(t, `{"type":"a","data":{"n":1},"meta":{"id":"evt_2","at":"noon"}}`, 26) == one {
		t.Error("two events have one identity")
	}
}

// TestIdentityOfUnknownTypes: two builds with different catalogues agree. Known names differ from unknown ones only in
// where their text is kept.
func TestIdentityOfUnknownTypes(t *testing.T) {
	const known = `{"at":"x","facts":[{"type":"turn.started"},{"type":"almanac.opened"}]}`
	if _, ok := knownType("turn.started"); !ok {
		t.Fatal("turn.started is not known")
	}
	if _, ok := knownType("almanac.opened"); ok {
		t.Fatal("almanac.opened is known")
	}
	d := digest{}
	d.add("x")
	d.buf = append(d.buf, 2)
	d.add("turn.started")
	d.add("almanac.opened")
	if got, want := identityOf(t, known, 27), d.sum("c"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// FuzzIdentity compares a line with the one that a server writes which has read it: an object's names in another
// order, duplicates gone, numbers and strings in another form.
func FuzzIdentity(f *testing.F) {
	for _, spellings := range identityLines() {
		f.Add([]byte(spellings[0]), uint8(27))
	}
	f.Add([]byte(`{"type":"x","data":{"b":1.50,"a":[1e2,-0,"\ud83d"],"a":[{}]},"meta":{"at":"noon"}}`), uint8(24))
	f.Fuzz(func(t *testing.T, line []byte, v uint8) {
		version := minVersion + uint32(v)%(maxVersion-minVersion+1)
		var value any
		if json.Unmarshal(line, &value) != nil {
			return // no JSON, or a number beyond a double, which encoding/json cannot write
		}
		again, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var one, two Line
		s := newSkimmer()
		r1, r2 := s.skim(bytes.Clone(line), version, &one), s.skim(again, version, &two)
		if r1 != r2 || one.Kind != two.Kind {
			t.Fatalf("%s is %s, respelled it is %s: %s", line, says(r1, &one), says(r2, &two), again)
		}
		if one.Kind != Unreadable && one.Identity != two.Identity {
			t.Errorf("%s\n%s\nare one line and have two identities", line, again)
		}
	})
}
