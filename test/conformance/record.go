package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// record is one line of a target's output: a record, an unreadable line, or a range of lines that the server said it
// skipped.
type record struct {
	Line       int64     `json:"line"`
	Slot       int64     `json:"slot"`
	Raw        string    `json:"raw"`
	Unreadable bool      `json:"unreadable"`
	Skipped    *[2]int64 `json:"skipped"` // from and the line behind the last
}

// String is a short form for reports.
func (r record) String() string {
	switch {
	case r.Skipped != nil:
		return fmt.Sprintf("skipped [%d,%d]", r.Skipped[0], r.Skipped[1])
	case r.Unreadable:
		return fmt.Sprintf("line %d unreadable", r.Line)
	}
	raw := r.Raw
	if len(raw) > 160 {
		raw = raw[:160] + "..."
	}
	return fmt.Sprintf("line %d slot %d %s", r.Line, r.Slot, raw)
}

// readRecords reads a target's output.
func readRecords(output io.Reader) ([]record, error) {
	var all []record
	r := bufio.NewReader(output)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return all, fmt.Errorf("reading the output: %w", err)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			var rec record
			if err := json.Unmarshal(text, &rec); err != nil {
				return all, fmt.Errorf("line %d of the output is no record: %w", n, err)
			}
			all = append(all, rec)
		}
		if last {
			return all, nil
		}
	}
}

// expected is what must be printed for a log.
func (c *testCase) expected(log fakeeve.Log) []record {
	if c.Expect.Records != nil {
		return c.Expect.Records
	}
	to := int64(-1)
	if c.Expect.To != nil {
		to = *c.Expect.To
	}
	var all []record
	for e := range fakeeve.Entries(log, c.Version, c.Start, to) {
		switch e.Kind {
		case fakeeve.Unreadable:
			all = append(all, record{Line: e.Line, Unreadable: true})
		case fakeeve.Skipped:
			all = append(all, record{Skipped: &[2]int64{e.Line, e.Line + 1}})
		default:
			for _, r := range e.Records {
				all = append(all, record{Line: r.Line, Slot: r.Slot, Raw: string(r.Raw)})
			}
		}
	}
	return joinSkipped(all)
}

// joinSkipped makes one of ranges that follow each other: how many connections told them does not matter.
func joinSkipped(records []record) []record {
	var all []record
	for _, r := range records {
		if n := len(all) - 1; r.Skipped != nil && n >= 0 && all[n].Skipped != nil && all[n].Skipped[1] == r.Skipped[0] {
			all[n].Skipped = &[2]int64{all[n].Skipped[0], r.Skipped[1]}
			continue
		}
		all = append(all, r)
	}
	return all
}

// verdict says what is wrong with what a target did; empty: nothing. failure is why the target failed, nil when it
// came to the end.
func (c *testCase) verdict(got []record, failure error, log fakeeve.Log) string {
	want := c.expected(log)
	got = joinSkipped(got)
	if c.Expect.AnyOrder {
		want, got = sorted(want), sorted(got)
	}
	if c.Expect.Fails {
		want = want[:min(len(want), len(got))] // the first of them, as many as there are
	}
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want):
			return fmt.Sprintf("record %d is one too many: %v", i, got[i])
		case i >= len(got):
			return because(fmt.Sprintf("record %d is missing: %v", i, want[i]), failure)
		case !same(got[i], want[i], c.Expect.AnyOrder):
			return because(fmt.Sprintf("record %d is\n    %v\n  want\n    %v", i, got[i], want[i]), failure)
		}
	}
	switch {
	case c.Expect.Fails && failure == nil:
		return "ended as if all were well, want an error"
	case !c.Expect.Fails && failure != nil:
		return because("read everything, then failed", failure)
	}
	return ""
}

// because adds the failure of a target.
func because(difference string, failure error) string {
	if failure == nil {
		return difference
	}
	return fmt.Sprintf("%s\n  the target: %v", difference, failure)
}

// sorted orders records by what they say.
func sorted(records []record) []record {
	return slices.SortedFunc(slices.Values(records), func(a, b record) int {
		return strings.Compare(canonical(a.Raw), canonical(b.Raw))
	})
}

// same compares what is printed with what is wanted. Records are compared as JSON values, so that a target can print
// what it parsed; numbers of lines do not count where order does not.
func same(got, want record, anyOrder bool) bool {
	if (got.Skipped == nil) != (want.Skipped == nil) || got.Unreadable != want.Unreadable {
		return false
	}
	if want.Skipped != nil {
		return *got.Skipped == *want.Skipped
	}
	if !anyOrder && (got.Line != want.Line || got.Slot != want.Slot) {
		return false
	}
	return want.Unreadable || got.Raw == want.Raw || canonical(got.Raw) == canonical(want.Raw)
}

// canonical is a spelling of JSON that does not depend on white space, order, escapes or duplicate names. Text that is
// not JSON is its own.
func canonical(raw string) string {
	d := jsontext.NewDecoder(strings.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	v, err := value(d)
	if err != nil {
		return raw
	}
	text, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return string(text)
}

// value reads one value as JavaScript does: numbers are float64, the last of duplicate names counts.
func value(d *jsontext.Decoder) (any, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case '"':
		return t.String(), nil
	case '0':
		if n, err := t.Float(); err == nil {
			return n + 0, nil // JavaScript writes -0 as 0
		}
		return nil, nil // over its range: JavaScript reads Infinity, and writes null
	case 't', 'f':
		return t.Bool(), nil
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.ReadToken()
		return list, err
	case '{':
		object := map[string]any{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if object[key], err = value(d); err != nil {
				return nil, err
			}
		}
		_, err = d.ReadToken()
		return object, err
	default:
		return nil, nil
	}
}
