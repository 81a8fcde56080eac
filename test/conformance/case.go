package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

//go:embed cases/*.json
var caseFiles embed.FS

// testCase is one scripted session and what a target must print for it. Files in cases/ hold lists of them.
type testCase struct {
	// Name is unique. It is also the id of the session.
	Name string `json:"name"`
	// Rule is what a target that fails the case does not keep to, in words, with its place in the contract.
	Rule string `json:"rule"`
	// Version is the stream version, 21 to 27. Default 27, or that of the transcripts.
	Version int `json:"version"`
	// Log is the stored stream.
	Log logSpec `json:"log"`
	// Live, when set, stores the lines from there on only while the session is read.
	Live *liveSpec `json:"live"`
	// Stranded, when not empty, is the eve version of a run that can never go on: the session cannot be followed.
	Stranded string `json:"stranded"`
	// Faults go to the stream requests one by one, Always to all later ones.
	Faults []faultSpec `json:"faults"`
	Always *faultSpec  `json:"always"`
	// Start is the line to start with.
	Start int64 `json:"start"`
	// Until is untilEnd, the default, or untilTail.
	Until string `json:"until"`
	// Expect is what must come of it.
	Expect expectation `json:"expect"`
}

// How far to read.
const (
	untilEnd  = "end"  // until the session ends
	untilTail = "tail" // until what is stored now has been read: for sessions that are never told to have ended
)

// logSpec is a stored stream: exactly one of its first three fields.
type logSpec struct {
	// Transcripts are recorded bodies by name, that follow each other.
	Transcripts []string `json:"transcripts"`
	// Lines are the lines themselves. null is one that the server does not have any more.
	Lines []*string `json:"lines"`
	// Generated is a finished session.
	Generated *generatedSpec `json:"generated"`
	// Skip are ranges [from, to) of generated lines that the server does not have any more.
	Skip [][2]int64 `json:"skip"`
	// Large, when set, makes one line, of version 27, a commit of so many bytes.
	Large *largeSpec `json:"large"`
}

// largeSpec is a line with a large value.
type largeSpec struct {
	Line  int64 `json:"line"`
	Bytes int   `json:"bytes"`
}

// generatedSpec is a finished session of so many lines.
type generatedSpec struct {
	Lines int64  `json:"lines"`
	Shape string `json:"shape"` // deltas, commits, large or mixed
}

// liveSpec says which lines are stored while the session is followed.
type liveSpec struct {
	From  int64    `json:"from"`
	Every duration `json:"every"`
}

// expectation is what a target must print. By default: every record from the start to the end of the log.
type expectation struct {
	// To is the line before which the records end; nil: the end of the log.
	To *int64 `json:"to"`
	// Records, when not nil, are listed in place of the oracle's.
	Records []record `json:"records"`
	// AnyOrder: each record once, in any order, whatever the line numbers.
	AnyOrder bool `json:"anyOrder"`
	// Fails: the target must end with an error, having printed nothing but the first of the records.
	Fails bool `json:"fails"`
}

// duration is a time.Duration as text, such as "50ms".
type duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = duration(v)
	return err
}

// loadCases reads all cases whose names match, in the order of their files.
func loadCases(match *regexp.Regexp) ([]*testCase, error) {
	names, err := fs.Glob(caseFiles, "cases/*.json")
	if err != nil {
		return nil, fmt.Errorf("listing the cases: %w", err)
	}
	var matching []*testCase
	seen := make(map[string]bool)
	for _, name := range names {
		text, err := caseFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		cases, err := parseCases(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		for _, c := range cases {
			if seen[c.Name] {
				return nil, fmt.Errorf("reading %s: a second case %q", name, c.Name)
			}
			seen[c.Name] = true
			if match.MatchString(c.Name) {
				matching = append(matching, c)
			}
		}
	}
	return matching, nil
}

// parseCases reads a file of cases; names it does not know are errors.
func parseCases(text []byte) ([]*testCase, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var cases []*testCase
	if err := d.Decode(&cases); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the list")
	}
	for _, c := range cases {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("case %q: %w", c.Name, err)
		}
	}
	return cases, nil
}

var caseName = regexp.MustCompile(`^[a-z0-9-]+$`)

// check completes a case and finds mistakes that running it would hide.
func (c *testCase) check() error {
	if !caseName.MatchString(c.Name) {
		return errors.New("the name must be of a-z, 0-9 and -")
	}
	if c.Rule == "" {
		return errors.New("no rule")
	}
	if c.Start < 0 {
		return errors.New("start is negative")
	}
	switch c.Until {
	case "":
		c.Until = untilEnd
	case untilEnd, untilTail:
	default:
		return fmt.Errorf("until is %q", c.Until)
	}
	if c.Version == 0 {
		c.Version = 27
		for _, name := range c.Log.Transcripts {
			t, err := fakeeve.Transcript(name)
			if err != nil {
				return err
			}
			c.Version = t.Version
		}
	}
	if c.Version < 21 || c.Version > 27 {
		return errors.New("version: want 21 to 27")
	}
	log, err := c.Log.build(c.Version)
	if err != nil {
		return err
	}
	if c.Log.Transcripts != nil && (c.Live != nil || c.Faults != nil || c.Always != nil || c.Log.Skip != nil) {
		return errors.New("transcripts are played as they are: they cannot be live, faulty or skipped")
	}
	if c.Live != nil && (c.Live.From < 0 || c.Live.From >= log.Len() || c.Live.Every <= 0) {
		return errors.New("live: want from inside the log, and every above 0")
	}
	if c.Always == nil {
		c.Always = new(faultSpec)
	}
	for _, f := range append(c.Faults, *c.Always) {
		if _, err := f.fault(fakeeve.Conn{}); err != nil {
			return err
		}
	}
	return nil
}

// build makes the stored stream.
func (l *logSpec) build(version int) (fakeeve.Log, error) {
	log := fakeeve.NewMemLog()
	switch {
	case l.Transcripts != nil:
		for _, name := range l.Transcripts {
			t, err := fakeeve.Transcript(name)
			if err != nil {
				return nil, err
			}
			for i := log.Len(); i < t.Len(); i++ {
				log.AppendRaw(t.Line(i))
			}
		}
	case l.Lines != nil:
		for _, line := range l.Lines {
			if line == nil {
				log.AppendRaw(nil)
			} else {
				log.Append(*line)
			}
		}
	case l.Generated != nil:
		shapes := map[string]fakeeve.Shape{
			"deltas": fakeeve.SmallDeltas, "commits": fakeeve.Commits, "large": fakeeve.LargeResults, "mixed": fakeeve.Mixed,
		}
		shape, ok := shapes[l.Generated.Shape]
		if !ok || l.Generated.Lines <= 0 {
			return nil, errors.New("generated: want lines above 0 and a shape: deltas, commits, large or mixed")
		}
		whole := fakeeve.Generated(l.Generated.Lines, shape, version)
		for i := range whole.Len() {
			log.AppendRaw(bytes.Clone(whole.Line(i)))
		}
	default:
		return nil, errors.New("log: want transcripts, lines or generated")
	}
	if l.Large != nil {
		log.Replace(l.Large.Line, fmt.Sprintf(`{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"call.settled","data":{"callId":"large","output":%q}}]}`,
			strings.Repeat("x", l.Large.Bytes)))
	}
	for _, r := range l.Skip {
		log.Trim(r[0], r[1])
	}
	log.End()
	return log, nil
}
