package fakeeve

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

//go:embed transcripts
var transcripts embed.FS

// Expected is what a correct reader counts in a transcript: one entry of transcripts/expected.json.
type Expected struct {
	File             string   `json:"file"`
	StreamVersion    string   `json:"streamVersion"`
	StartIndex       int64    `json:"startIndex"`
	Records          int      `json:"records"` // lines that are not blank
	Blank            int      `json:"blank"`
	Transport        int      `json:"transport"`
	UnknownTransport int      `json:"unknownTransport"`
	Commits          int      `json:"commits"`
	Progress         int      `json:"progress"`
	Invalid          int      `json:"invalid"`
	Events           int      `json:"events"` // records of known types
	Slots            int      `json:"slots"`  // records of any type
	UnknownTypes     []string `json:"unknownTypes"`
	EndedBy          string   `json:"endedBy"`
	FinalCursor      int64    `json:"finalCursor"`
}

// TranscriptFile is one response body in the exact shape of the wire, and the part of a stored stream it shows. It is
// itself the [Log] of that part: lines before its start, and lines its position records jump over, are not there any
// more (nil). As a log it is closed.
type TranscriptFile struct {
	// Name is the file name.
	Name string
	// Version is the stream version of the response, 21 to 27.
	Version int
	// Start is the line the response starts with.
	Start int64
	// Tail is the number of the last counted line in the body.
	Tail int64
	// Body is the file, byte for byte.
	Body []byte
	// Expected is what a correct reader counts in it.
	Expected Expected

	lines [][]byte // from Start on
}

// TranscriptNames are the embedded files, in order.
func TranscriptNames() []string {
	names, err := fs.Glob(transcripts, "transcripts/*.ndjson")
	if err != nil {
		panic("fakeeve: listing the embedded transcripts: " + err.Error())
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, "transcripts/")
	}
	return names
}

// Transcript reads an embedded transcript by its name: whole ("06-position-jump.ndjson"), or the part before the
// first dash ("06").
func Transcript(name string) (*TranscriptFile, error) {
	raw, err := transcripts.ReadFile("transcripts/expected.json")
	if err != nil {
		return nil, fmt.Errorf("fakeeve: reading the expectations: %w", err)
	}
	var all []Expected
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("fakeeve: reading the expectations: %w", err)
	}
	i := slices.IndexFunc(all, func(e Expected) bool {
		return e.File == name || e.File == name+".ndjson" || strings.HasPrefix(e.File, name+"-")
	})
	if i < 0 {
		return nil, fmt.Errorf("fakeeve: no transcript %q", name)
	}
	expected := all[i]
	version, err := strconv.Atoi(expected.StreamVersion)
	if err != nil {
		return nil, fmt.Errorf("fakeeve: transcript %s: stream version: %w", expected.File, err)
	}
	body, err := transcripts.ReadFile("transcripts/" + expected.File)
	if err != nil {
		return nil, fmt.Errorf("fakeeve: reading transcript %s: %w", expected.File, err)
	}
	t := &TranscriptFile{
		Name: expected.File, Version: version, Start: expected.StartIndex, Tail: expected.StartIndex - 1,
		Body: body, Expected: expected,
	}
	for _, e := range ReadBody(body, version, t.Start) {
		if e.Kind == Position {
			t.grow(e.Next)
		}
		if e.Kind.Counts() {
			t.grow(e.Line)
			t.lines = append(t.lines, e.Raw)
			t.Tail = e.Line
		}
	}
	return t, nil
}

// grow makes the log at least n lines long, with lines that are not there.
func (t *TranscriptFile) grow(n int64) {
	for t.Len() < n {
		t.lines = append(t.lines, nil)
	}
}

// Len implements [Log].
func (t *TranscriptFile) Len() int64 { return t.Start + int64(len(t.lines)) }

// Line implements [Log].
func (t *TranscriptFile) Line(i int64) []byte {
	if i < t.Start {
		return nil
	}
	return t.lines[i-t.Start]
}

// bodyLines are the physical lines of the body, each with the number it has if it counts, else -1.
func (t *TranscriptFile) bodyLines() []bodyLine {
	var lines []bodyLine
	for _, e := range ReadBody(t.Body, t.Version, t.Start) {
		n := int64(-1)
		if e.Kind.Counts() {
			n = e.Line
		}
		lines = append(lines, bodyLine{raw: e.Raw, line: n})
	}
	return lines
}

type bodyLine struct {
	raw  []byte
	line int64
}

// chain is the log of transcripts that follow one another: each file adds the lines from its start on.
func chain(files []*TranscriptFile) Log {
	if len(files) == 1 {
		return files[0]
	}
	l := NewMemLog()
	for _, f := range files {
		if missing := f.Start - l.Len(); missing > 0 {
			l.AppendRaw(make([][]byte, missing)...)
		}
		l.Truncate(f.Start)
		l.AppendRaw(f.lines...)
	}
	l.End()
	return l
}

// openingLine tells whether a body line is the one every response opens with (contract G16).
func openingLine(raw []byte) bool {
	return len(bytes.TrimSpace(raw)) == 0 || string(raw) == heartbeatRecord
}
