package fakeeve

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind says what one line of a stream body or of a [Log] is (contract 2.2, 5.1).
type Kind uint8

const (
	// Unreadable is a counted line of no known shape.
	Unreadable Kind = iota
	// Commit is a counted line of facts (27).
	Commit
	// Progress is a counted line with one preview record (27).
	Progress
	// Event is a counted line with one event (21 to 26; also what an old session holds under 27, contract 6.4).
	Event
	// Skipped is a stored line that readers can no longer have.
	Skipped
	// Blank is an empty line of a body: never counted.
	Blank
	// Transport is a transport record of a body, known or not: never counted.
	Transport
	// Position is a well-formed position transport record: never counted, may raise the next line's number.
	Position
)

// String is the kind in words.
func (k Kind) String() string {
	switch k {
	case Unreadable:
		return "unreadable"
	case Commit:
		return "commit"
	case Progress:
		return "progress"
	case Event:
		return "event"
	case Skipped:
		return "skipped"
	case Blank:
		return "blank"
	case Transport:
		return "transport"
	case Position:
		return "position"
	default:
		return "kind " + strconv.Itoa(int(k))
	}
}

// Counts tells whether a line of this kind has a number.
func (k Kind) Counts() bool { return k <= Event }

// Record is one record of a line: a fact, a progress record, or a whole event.
type Record struct {
	// Line and Slot are its place; Slot is the raw index in facts, 0 for everything else.
	Line, Slot int64
	// Type is the name on the wire; empty when there is none.
	Type string
	// Kind is that of the line: Commit, Progress or Event.
	Kind Kind
	// Raw is the record as stored.
	Raw []byte
	// EndOfLine is set on the last record of the line.
	EndOfLine bool
}

// parsed is a body line taken apart.
type parsed struct {
	kind    Kind
	control string // the name of a transport record
	next    int64  // of a position record
	records []Record
}

// newDecoder reads JSON the way JavaScript does.
func newDecoder(data []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// classify applies the table of contract 2.2, top to bottom; line has no line end. Shapes decide, whatever the version
// (contract 6.4); only an event without meta is one at 21 to 26 alone. The records of the result alias line.
func classify(line []byte, version int) parsed {
	if len(bytes.TrimSpace(line)) == 0 {
		return parsed{kind: Blank}
	}
	o, ok := readObject(line)
	if !ok {
		return parsed{}
	}
	if name, ok := o.str("$eve"); ok {
		if name != "position" {
			return parsed{kind: Transport, control: name}
		}
		if next, ok := o.safeInteger("next"); ok {
			return parsed{kind: Position, control: name, next: next}
		}
		return parsed{}
	}
	if facts, at := o["facts"], o["at"]; facts.Kind() == '[' && at.Kind() == '"' {
		p := parsed{kind: Commit}
		elements := readArray(facts)
		for slot, raw := range elements {
			p.records = append(p.records, Record{
				Slot: int64(slot), Type: recordType(raw), Kind: Commit, Raw: raw, EndOfLine: slot == len(elements)-1,
			})
		}
		return p
	}
	if progress := o["progress"]; progress.Kind() == '{' {
		return parsed{kind: Progress, records: []Record{{
			Type: recordType(progress), Kind: Progress, Raw: progress, EndOfLine: true,
		}}}
	}
	if typ, ok := o.str("type"); ok && (version < 27 || o["meta"].Kind() == '{') {
		raw := bytes.TrimSpace(line)
		return parsed{kind: Event, records: []Record{{Type: typ, Kind: Event, Raw: raw, EndOfLine: true}}}
	}
	return parsed{}
}

// recordType is the type member of a record; empty when there is none.
func recordType(raw jsontext.Value) string {
	o, _ := readObject(raw)
	typ, _ := o.str("type")
	return typ
}

// object holds the members of a JSON object; of duplicates the last.
type object map[string]jsontext.Value

func (o object) str(name string) (string, bool) {
	v := o[name]
	if v.Kind() != '"' {
		return "", false
	}
	dst, _ := jsontext.AppendUnquote(nil, v)
	return string(dst), true
}

// safeInteger reads a number as JavaScript's Number.isSafeInteger sees it: 7.0 and 1e2 are integers.
func (o object) safeInteger(name string) (int64, bool) {
	v := o[name]
	if v.Kind() != '0' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafeInteger {
		return 0, false
	}
	return int64(f), true
}

// readObject reads one JSON object and nothing after it. The values alias data.
func readObject(data []byte) (object, bool) {
	dec := newDecoder(data)
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, false
	}
	o := object{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, false
		}
		key := name.String()
		value, ok := readValue(dec, data)
		if !ok {
			return nil, false
		}
		o[key] = value
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, false
	}
	_, err := dec.ReadToken()
	return o, errors.Is(err, io.EOF)
}

// readArray splits an array that is known to be valid. The elements alias data.
func readArray(data []byte) []jsontext.Value {
	dec := newDecoder(data)
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	var elements []jsontext.Value
	for dec.PeekKind() != ']' {
		value, ok := readValue(dec, data)
		if !ok {
			return nil
		}
		elements = append(elements, value)
	}
	return elements
}

// readValue reads the next value and returns the part of data that it is: the decoder's own buffer does not last.
func readValue(dec *jsontext.Decoder, data []byte) (jsontext.Value, bool) {
	value, err := dec.ReadValue()
	if err != nil {
		return nil, false
	}
	end := dec.InputOffset()
	return data[end-int64(len(value)) : end : end], true
}
