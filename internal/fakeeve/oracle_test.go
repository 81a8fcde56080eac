package fakeeve_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// TestEntries applies the table of contract 2.2, row by row, and the lenient JSON of the server.
func TestEntries(t *testing.T) {
	deep := strings.Repeat("[", 9_990) + strings.Repeat("]", 9_990)
	tooDeep := strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)
	tests := []struct {
		line    string
		version int // 0: 27
		kind    fakeeve.Kind
		types   []string // of the records
	}{
		{line: `not json`},
		{line: `{"at":"x","facts":[]} x`},
		{line: `{"at":"x","facts":[`},
		{line: `null`},
		{line: `[1]`},
		{line: `"x"`},
		{line: `{}`},
		{line: `{"$eve":42}`},
		{line: `{"$eve":"position"}`},
		{line: `{"$eve":"position","next":"7"}`},
		{line: `{"$eve":"position","next":7.5}`},
		{line: `{"$eve":"position","next":9007199254740993}`},
		{line: `{"at":"x","facts":{}}`},
		{line: `{"at":1,"facts":[]}`},
		{line: `{"progress":null}`},
		{line: `{"progress":[]}`},
		{line: `{"type":"x"}`},
		{line: `{"type":"x","meta":[]}`},
		{line: `{"deep":` + tooDeep + `,"at":"x","facts":[]}`},
		{line: `{"type":"x","meta":{}}`, kind: fakeeve.Event, types: []string{"x"}},
		{line: `{"type":"x"}`, version: 26, kind: fakeeve.Event, types: []string{"x"}},
		{line: `{"type":1}`, version: 26},
		{line: `{"at":"x","facts":[]}`, kind: fakeeve.Commit},
		{line: `{"at":"x","facts":[],"$eve":1}`, kind: fakeeve.Commit},
		{line: `{"at":"x","facts":[{"type":"a"}]}`, version: 26, kind: fakeeve.Commit, types: []string{"a"}},
		{line: `{"at":"x","facts":[{"type":"a"},{"type":"b","type":"c"},7,{}],"progress":{"type":"p"}}`, kind: fakeeve.Commit, types: []string{"a", "c", "", ""}},
		{line: `{"facts":7,"at":"x","facts":[{"\u0074ype":"a"}]}`, kind: fakeeve.Commit, types: []string{"a"}},
		{line: `{"deep":` + deep + `,"at":"x","facts":[{"type":"a"}]}`, kind: fakeeve.Commit, types: []string{"a"}},
		{line: ` {"progress":{"type":"content.delta","data":{"delta":"\ud83d"}}} ` + "\r", kind: fakeeve.Progress, types: []string{"content.delta"}},
		{line: "{\"progress\":{\"type\":\"p\",\"data\":\"\xff\"}}", kind: fakeeve.Progress, types: []string{"p"}},
		// Stored all the same, whatever it is: a server would send it as it is, and count it.
		{line: ``},
		{line: `{"$eve":"heartbeat"}`},
	}
	for _, tt := range tests {
		version := tt.version
		if version == 0 {
			version = 27
		}
		log := fakeeve.NewMemLog("0", tt.line)
		var entries []fakeeve.Entry
		for e := range fakeeve.Entries(log, version, 1, 9) {
			entries = append(entries, e)
		}
		if len(entries) != 1 || entries[0].Line != 1 || entries[0].Kind != tt.kind || string(entries[0].Raw) != tt.line {
			t.Errorf("%.80s: %v", tt.line, entries)
			continue
		}
		var types []string
		for slot, r := range entries[0].Records {
			types = append(types, r.Type)
			if r.Line != 1 || r.Slot != int64(slot) || r.Kind != tt.kind || r.EndOfLine != (slot == len(tt.types)-1) || !strings.Contains(tt.line, string(r.Raw)) {
				t.Errorf("%.80s: record %+v", tt.line, r)
			}
		}
		if diff := cmp.Diff(tt.types, types); diff != "" {
			t.Errorf("%.80s: types (-want +got):\n%s", tt.line, diff)
		}
	}
}

// TestRecords: all records of a range, in order.
func TestRecords(t *testing.T) {
	log := fakeeve.NewMemLog(`{"at":"x","facts":[{"type":"a"},{"type":"b"}]}`, `junk`, `{"progress":{"type":"c"}}`, `{"at":"x","facts":[{"type":"d"}]}`)
	log.Trim(3, 4)
	var got []string
	for r := range fakeeve.Records(log, 27, 0, -1) {
		got = append(got, string(r.Raw))
		if r.Type == "c" {
			break
		}
	}
	if diff := cmp.Diff([]string{`{"type":"a"}`, `{"type":"b"}`, `{"type":"c"}`}, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// TestReadBody: the counting rules of contract 2.5 and 2.7.
func TestReadBody(t *testing.T) {
	body := strings.Join([]string{
		`{"$eve":"position","next":9007199254740992}`,
		`{"$eve":"heartbeat"}`, ``, `  `, `{"$eve":"weather"}`, `{"at":"x","facts":[]}`, `{"$eve":"position","next":9.0}`, `junk`,
		`{"$eve":"position","next":3}`, `{"$eve":"position","next":1e2}`, `{"progress":{}}`, `{"at":"x","facts":[],"unfinished`,
	}, "\n")
	var got []string
	for _, e := range fakeeve.ReadBody([]byte(body), 27, 4) {
		got = append(got, e.String()+" "+e.Control)
	}
	want := []string{
		`line 4 unreadable {"$eve":"position","next":9007199254740992} `,
		`line 5 transport {"$eve":"heartbeat"} heartbeat`, `line 5 blank  `, `line 5 blank    `, `line 5 transport {"$eve":"weather"} weather`,
		`line 5 commit {"at":"x","facts":[]} `, `line 6 position {"$eve":"position","next":9.0} position`, `line 9 unreadable junk `,
		`line 10 position {"$eve":"position","next":3} position`, `line 10 position {"$eve":"position","next":1e2} position`,
		`line 100 progress {"progress":{}} `,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if whole := fakeeve.ReadBody([]byte(`{"progress":{}}`), 27, 0); len(whole) != 1 || whole[0].Kind != fakeeve.Progress {
		t.Errorf("an unterminated line that parses: %v", whole)
	}
}

// TestKinds: every kind has a word.
func TestKinds(t *testing.T) {
	words := map[string]bool{}
	for k := fakeeve.Unreadable; k <= fakeeve.Position; k++ {
		words[k.String()] = true
	}
	if len(words) != 8 || fakeeve.Kind(99).String() != "kind 99" {
		t.Errorf("words %v", words)
	}
}
