package fakeeve

import (
	"bytes"
	"fmt"
	"iter"
)

// Entry is one stored line, taken apart.
type Entry struct {
	// Line is its number.
	Line int64
	// Kind is Commit, Progress, Event, Unreadable or Skipped.
	Kind Kind
	// Raw is the line without its line end.
	Raw []byte
	// Records are its records in order; a commit may have none, and only commits have more than one.
	Records []Record
}

// Entries is what a correct reader must find in the lines from <= i < to of a log (to < 0: its end), read at this
// stream version: the other side of every comparison. It does not share code with the gateway.
func Entries(l Log, version int, from, to int64) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if n := l.Len(); to < 0 || to > n {
			to = n
		}
		for i := from; i < to; i++ {
			if !yield(entry(i, l.Line(i), version)) {
				return
			}
		}
	}
}

func entry(i int64, raw []byte, version int) Entry {
	if raw == nil {
		return Entry{Line: i, Kind: Skipped}
	}
	p := classify(raw, version)
	if !p.kind.Counts() {
		// A stored line is counted whatever it says; that a transport record is stored is the test's own mischief.
		p = parsed{}
	}
	for s := range p.records {
		p.records[s].Line = i
	}
	return Entry{Line: i, Kind: p.kind, Raw: raw, Records: p.records}
}

// Records is Entries, record by record; lines without records are not in it.
func Records(l Log, version int, from, to int64) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for e := range Entries(l, version, from, to) {
			for _, r := range e.Records {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// BodyEntry is one physical line of a response body.
type BodyEntry struct {
	Entry
	// Control is the name of a transport record, known or not.
	Control string
	// Next is the number a position record names.
	Next int64
}

// ReadBody takes a response body apart as contract 2.2 and 2.5 say, counting from start. Line is set on counted
// entries; on the others it is the number the next counted one would have. Bytes after the last line end are a line
// only when they parse (contract 2.7).
func ReadBody(body []byte, version int, start int64) []BodyEntry {
	var entries []BodyEntry
	cursor := start
	for len(body) > 0 {
		line, rest, ended := bytes.Cut(body, []byte{'\n'})
		p := classify(line, version)
		if !ended && p.kind == Unreadable {
			break
		}
		body = rest
		e := BodyEntry{Entry: Entry{Line: cursor, Kind: p.kind, Raw: line, Records: p.records}, Control: p.control, Next: p.next}
		if p.kind == Position {
			cursor = max(cursor, p.next)
		}
		if p.kind.Counts() {
			for s := range e.Records {
				e.Records[s].Line = cursor
			}
			cursor++
		}
		entries = append(entries, e)
	}
	return entries
}

// String is a short form for failure messages.
func (e Entry) String() string { return fmt.Sprintf("line %d %v %.60s", e.Line, e.Kind, e.Raw) }
