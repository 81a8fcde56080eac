package translate_test

import (
	"bytes"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/evegateway/evegateway/gateway/source"
)

// The tests build lines themselves: what is under test is the translation of a line, not how it was read.

// member is one member of a JSON object, or one element of an array.
type member struct {
	name string
	raw  []byte
	at   int // where raw starts in the object or array
}

// members returns what is in a JSON object or array, nil when raw is neither.
func members(tb testing.TB, raw []byte) []member {
	tb.Helper()
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	next := func() (v []byte, at int) {
		v, err := d.ReadValue()
		if err != nil {
			tb.Fatalf("test line %q: %v", raw, err)
		}
		end := int(d.InputOffset())
		at = end - len(v)
		return raw[at:end:end], at
	}
	var out []member
	switch d.PeekKind() {
	case '{':
		for _, _ = d.ReadToken(); d.PeekKind() != '}'; {
			name, _ := next()
			v, at := next()
			out = append(out, member{text(name), v, at})
		}
	case '[':
		for _, _ = d.ReadToken(); d.PeekKind() != ']'; {
			v, at := next()
			out = append(out, member{"", v, at})
		}
	default:
	}
	return out
}

// get returns the last member of a name.
func get(ms []member, name string) []byte {
	for _, m := range slices.Backward(ms) {
		if m.name == name {
			return m.raw
		}
	}
	return nil
}

// text returns the text of a JSON string, bytes that are not UTF-8 included; "" for everything else.
func text(raw []byte) string {
	if jsontext.Value(raw).Kind() != '"' {
		return ""
	}
	if !bytes.ContainsRune(raw, '\\') {
		return string(raw[1 : len(raw)-1])
	}
	out, _ := jsontext.AppendUnquote(nil, raw)
	return string(out)
}

func timeOf(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// record builds the record of a fact, a progress record, or an event.
func record(tb testing.TB, raw []byte) source.Record {
	tb.Helper()
	ms := members(tb, raw)
	r := source.Record{Type: text(get(ms, "type")), Raw: raw, Data: get(ms, "data")}
	if scope := get(ms, "scope"); jsontext.Value(scope).Kind() == '{' {
		s := members(tb, scope)
		r.HasScope = true
		r.Scope = source.Scope{
			TurnID: text(get(s, "turnId")), RunID: text(get(s, "runId")),
			TaskID: text(get(s, "taskId")), ChangeID: text(get(s, "changeId")),
		}
	}
	if meta := get(ms, "meta"); meta != nil {
		m := members(tb, meta)
		r.Meta = &source.Meta{ID: text(get(m, "id")), AtText: text(get(m, "at"))}
		r.Meta.At = timeOf(r.Meta.AtText)
		for _, id := range members(tb, get(m, "deliveryIds")) {
			r.Meta.DeliveryIDs = append(r.Meta.DeliveryIDs, text(id.raw))
		}
	}
	return r
}

// line builds the line that raw stands for. It is nil for what does not count: blank lines and transport records.
func line(tb testing.TB, raw []byte, version uint32, number uint64) *source.Line {
	tb.Helper()
	l := &source.Line{Number: number, Version: version, Raw: raw, Size: int64(len(raw))}
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 {
		return nil
	}
	if !jsontext.Value(trimmed).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		l.Flaw, l.Detail = source.InvalidJSON, "not JSON"
		return l
	}
	ms := members(tb, trimmed)
	eve, facts, prog := get(ms, "$eve"), get(ms, "facts"), get(ms, "progress")
	switch {
	case trimmed[0] != '{':
		l.Flaw, l.Detail = source.NotAnObject, "not an object"
	case text(eve) == "position" && jsontext.Value(get(ms, "next")).Kind() != '0':
		l.Flaw, l.Detail = source.MalformedPosition, "next is no number"
	case text(eve) != "":
		return nil
	case jsontext.Value(facts).Kind() == '[':
		l.Kind = source.Commit
		l.AtText = text(get(ms, "at"))
		l.At = timeOf(l.AtText)
		for _, f := range members(tb, facts) {
			l.Records = append(l.Records, record(tb, f.raw))
		}
	case jsontext.Value(prog).Kind() == '{':
		l.Kind = source.Progress
		l.Records = []source.Record{record(tb, prog)}
	case text(get(ms, "type")) != "" && version < 27:
		l.Kind = source.Event
		l.Records = []source.Record{record(tb, trimmed)}
	default:
		l.Flaw, l.Detail = source.UnknownShape, "no known shape"
	}
	return l
}

// factLine builds a commit of one fact.
func factLine(tb testing.TB, typ, data string) *source.Line {
	tb.Helper()
	return line(tb, []byte(`{"at":"2026-11-18T09:00:00.012Z","facts":[{"type":"`+typ+`","data":`+data+`}]}`), 27, 7)
}

// progressLine builds a progress line.
func progressLine(tb testing.TB, typ, data string) *source.Line {
	tb.Helper()
	return line(tb, []byte(`{"progress":{"type":"`+typ+`","data":`+data+`}}`), 27, 7)
}

// transcript is one of the recorded streams.
type transcript struct {
	name  string
	lines []*source.Line
}

// transcripts reads the recorded streams. Lines are numbered from 0, jumps left out: they are no matter here.
func transcripts(tb testing.TB) []transcript {
	tb.Helper()
	dir := os.DirFS("../../internal/fakeeve/transcripts")
	files, err := fs.Glob(dir, "*.ndjson")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no transcripts: %v", err)
	}
	var out []transcript
	for _, file := range files {
		content, err := fs.ReadFile(dir, file)
		if err != nil {
			tb.Fatal(err)
		}
		t := transcript{name: strings.TrimSuffix(file, ".ndjson")}
		version := uint32(27)
		switch {
		case strings.Contains(t.name, "v26"):
			version = 26
		case strings.Contains(t.name, "v24"):
			version = 24
		}
		for raw := range bytes.Lines(content) {
			if l := line(tb, bytes.TrimSuffix(raw, []byte("\n")), version, uint64(len(t.lines))); l != nil {
				t.lines = append(t.lines, l)
			}
		}
		out = append(out, t)
	}
	return out
}
