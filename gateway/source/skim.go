package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// maxSafeInteger is the largest integer JavaScript represents exactly: the bound of every position.
const maxSafeInteger = 1<<53 - 1

// transport is what a transport record says; it is never counted (contract 2.2, 2.4).
type transport uint8

const (
	notTransport transport = iota
	blank
	heartbeat
	leaseEnded
	streamEnded
	position
	unknownTransport
)

// skimmed is what one line of a response body turned out to be: a transport record, or a counted line.
type skimmed struct {
	transport transport
	next      int64 // of a position record
}

// skimmer classifies lines and finds the bounds of their records without decoding them (contract 2.2). It keeps
// scratch space and recently seen owner ids between lines, so that a line of known types costs no allocation
// beyond the slice of records. Not safe for concurrent use.
type skimmer struct {
	dec     *jsontext.Decoder
	in      bytes.Buffer
	raw     []byte
	owners  Scope
	scratch []byte   // of text
	digest  []byte   // of identities
	records []Record // of the line being skimmed
}

func newSkimmer() *skimmer {
	s := &skimmer{}
	s.dec = jsontext.NewDecoder(&s.in)
	return s
}

// top collects the members of a line's object; the last of duplicate names wins, as in JavaScript.
type top struct {
	eve, typ       []byte // raw JSON strings; nil when absent or of another type
	next           []byte // raw JSON number
	version        []byte // raw JSON number
	at             []byte // raw JSON string
	data           []byte
	facts          bool
	progress       bool
	meta           *Meta
	eveSeen        bool
	progressRecord Record
}

// skim classifies raw, which must be immutable from now on, and fills l (all but Number and Version) when the line
// counts. v is the stream version of the connection.
func (s *skimmer) skim(raw []byte, v uint32, l *Line) skimmed {
	body := trimJS(raw)
	if len(body) == 0 {
		return skimmed{transport: blank}
	}
	l.Raw, l.Size = raw, int64(len(raw))
	if body[0] != '{' {
		l.Kind = Unreadable
		if err := s.validate(body); err != nil {
			l.Flaw, l.Detail = InvalidJSON, syntaxDetail(err)
		} else {
			l.Flaw, l.Detail = NotAnObject, "want a JSON object"
		}
		l.Identity = unreadableIdentity(body)
		return skimmed{}
	}
	s.reset(body)
	var t top
	if err := s.readTop(&t, l); err != nil {
		*l = Line{Kind: Unreadable, Raw: raw, Size: int64(len(raw)), Flaw: InvalidJSON, Detail: syntaxDetail(err), Identity: unreadableIdentity(body)}
		return skimmed{}
	}
	return s.classify(&t, v, body, l)
}

// classify is the table of contract 2.2, extended by the sniffing of 6.4: what the record is decides, the version
// header only where a shape is legal in one generation alone.
func (s *skimmer) classify(t *top, v uint32, body []byte, l *Line) skimmed {
	if t.eve != nil {
		switch s.text(t.eve) {
		case "heartbeat":
			return skimmed{transport: heartbeat}
		case "stream.ended":
			return skimmed{transport: streamEnded}
		case "stream.lease-ended":
			if v < 27 && !isOne(t.version) { // contract 5.2: the record has a version of its own there
				return skimmed{transport: unknownTransport}
			}
			return skimmed{transport: leaseEnded}
		case "position":
			if n, ok := safeInteger(t.next); ok {
				return skimmed{transport: position, next: n}
			}
			if v < 27 { // unknown there, and unknown transport records never count
				return skimmed{transport: unknownTransport}
			}
			s.unreadable(l, body, MalformedPosition, "a position record whose next is not a safe integer")
			return skimmed{}
		}
		return skimmed{transport: unknownTransport}
	}
	switch {
	case v < 27 && t.typ != nil, v >= 27 && t.typ != nil && t.meta != nil && !t.progress && (!t.facts || t.at == nil):
		s.event(t, l, body)
	case t.facts && t.at != nil:
		s.commit(t, l)
	case t.progress:
		l.Kind = Progress
		l.Records = append(l.Records[:0], t.progressRecord)
		l.Identity = s.progressIdentity(&l.Records[0])
	case t.eveSeen:
		s.unreadable(l, body, UnknownShape, "member $eve is not a string")
	default:
		s.unreadable(l, body, UnknownShape, "an object that is no commit, progress record, event or transport record")
	}
	return skimmed{}
}

func (s *skimmer) unreadable(l *Line, body []byte, f Flaw, detail string) {
	l.Kind, l.Flaw, l.Detail, l.Records = Unreadable, f, detail, nil
	l.Identity = unreadableIdentity(body)
}

func (s *skimmer) commit(t *top, l *Line) {
	l.Kind = Commit
	l.AtText = s.alias(t.at)
	l.At = parseTime(l.AtText)
	for i := range l.Records {
		if l.Records[i].Type == "session.ended" {
			l.Terminal = true
		}
	}
	l.Identity = s.commitIdentity(l.AtText, l.Records)
}

func (s *skimmer) event(t *top, l *Line, body []byte) {
	l.Kind = Event
	l.Records = append(l.Records[:0], Record{Type: s.typeName(t.typ), Raw: body, Data: t.data, Meta: t.meta})
	l.Terminal = l.Records[0].Type == "session.completed" || l.Records[0].Type == "session.failed"
	l.Identity = s.eventIdentity(&l.Records[0])
}

// reset makes the decoder read body as JavaScript's JSON.parse does after a lossy UTF-8 decode.
func (s *skimmer) reset(body []byte) {
	s.raw = body
	s.in = *bytes.NewBuffer(body)
	s.dec.Reset(&s.in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func (s *skimmer) validate(body []byte) error {
	s.reset(body)
	if err := s.dec.SkipValue(); err != nil {
		return err
	}
	return s.end()
}

var errTooManyFacts = errors.New("more than 262144 facts in one commit")

var errTrailing = errors.New("more than one JSON value on the line")

func (s *skimmer) end() error {
	if _, err := s.dec.ReadToken(); err == nil {
		return errTrailing
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// value reads the next value and returns its bytes as part of the line, which outlive the decoder's next read.
func (s *skimmer) value() ([]byte, error) {
	v, err := s.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(s.dec.InputOffset())
	return s.raw[end-len(v) : end : end], nil
}

// object reads an object and calls member for each of its names; member must read or skip the value.
func (s *skimmer) object(member func(name []byte) error) error {
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	for s.dec.PeekKind() == '"' {
		name, err := s.value()
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := s.dec.ReadToken()
	return err
}

func (s *skimmer) readTop(t *top, l *Line) error {
	err := s.object(func(name []byte) error {
		var err error
		kind := s.dec.PeekKind()
		switch s.text(name) {
		case "$eve":
			t.eveSeen = true
			t.eve, err = s.only('"', kind)
		case "next":
			t.next, err = s.only('0', kind)
		case "version":
			t.version, err = s.only('0', kind)
		case "at":
			t.at, err = s.only('"', kind)
		case "type":
			t.typ, err = s.only('"', kind)
		case "data":
			t.data, err = s.value()
		case "meta":
			t.meta, err = s.readMeta(kind)
		case "facts":
			l.Records = l.Records[:0]
			if t.facts = kind == '['; !t.facts {
				return s.dec.SkipValue()
			}
			return s.readFacts(l)
		case "progress":
			if t.progress = kind == '{'; !t.progress {
				return s.dec.SkipValue()
			}
			t.progressRecord, err = s.readRecord()
		default:
			return s.dec.SkipValue()
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.end()
}

// only reads a value of the wanted kind, or skips one of another kind.
func (s *skimmer) only(want, kind jsontext.Kind) ([]byte, error) {
	if kind != want {
		return nil, s.dec.SkipValue()
	}
	return s.value()
}

// maxFacts is the most facts a commit can have: what is kept of each must not multiply the size of a line. Real
// commits have a handful.
const maxFacts = 1 << 18

// readFacts reads the records of a commit.
func (s *skimmer) readFacts(l *Line) error {
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	for {
		kind := s.dec.PeekKind()
		if len(l.Records) == maxFacts && kind != ']' {
			return errTooManyFacts
		}
		switch kind {
		case ']':
			_, err := s.dec.ReadToken()
			return err
		case '{':
			r, err := s.readRecord()
			if err != nil {
				return err
			}
			l.Records = append(l.Records, r)
		default: // no object: a slot all the same (contract 2.2)
			v, err := s.value()
			if err != nil {
				return err
			}
			l.Records = append(l.Records, Record{Raw: v})
		}
	}
}

func (s *skimmer) readRecord() (Record, error) {
	var r Record
	start := -1
	err := s.object(func(name []byte) error {
		if start < 0 {
			start = s.openBrace(name)
		}
		var err error
		switch kind := s.dec.PeekKind(); s.text(name) {
		case "type":
			var v []byte
			if v, err = s.only('"', kind); v == nil {
				r.Type = ""
				return err
			}
			r.Type = s.typeName(v)
		case "scope":
			r.Scope, r.HasScope = Scope{}, kind == '{'
			if !r.HasScope {
				return s.dec.SkipValue()
			}
			err = s.readScope(&r.Scope)
		case "data":
			r.Data, err = s.value()
		default:
			return s.dec.SkipValue()
		}
		return err
	})
	if err != nil {
		return r, err
	}
	end := int(s.dec.InputOffset())
	if start < 0 { // no members
		start = bytes.LastIndexByte(s.raw[:end], '{')
	}
	r.Raw = s.raw[start:end:end]
	return r, nil
}

// openBrace finds the brace that opens the object whose first name is given: only white space stands between.
func (s *skimmer) openBrace(firstName []byte) int {
	at := int(s.dec.InputOffset()) - len(firstName)
	return bytes.LastIndexByte(s.raw[:at], '{')
}

func (s *skimmer) readScope(sc *Scope) error {
	return s.object(func(name []byte) error {
		var to, last *string
		switch s.text(name) {
		case "turnId":
			to, last = &sc.TurnID, &s.owners.TurnID
		case "runId":
			to, last = &sc.RunID, &s.owners.RunID
		case "taskId":
			to, last = &sc.TaskID, &s.owners.TaskID
		case "changeId":
			to, last = &sc.ChangeID, &s.owners.ChangeID
		default:
			return s.dec.SkipValue()
		}
		v, err := s.only('"', s.dec.PeekKind())
		*to = ""
		if v != nil {
			if id := s.text(v); id != *last { // owners repeat from record to record: keep one copy
				*last = strings.Clone(id)
			}
			*to = *last
		}
		return err
	})
}

func (s *skimmer) readMeta(kind jsontext.Kind) (*Meta, error) {
	if kind != '{' {
		return nil, s.dec.SkipValue()
	}
	m := new(Meta)
	return m, s.object(func(name []byte) error {
		var v []byte
		var err error
		switch kind := s.dec.PeekKind(); s.text(name) {
		case "id":
			v, err = s.only('"', kind)
			m.ID = s.alias(v)
		case "at":
			v, err = s.only('"', kind)
			m.AtText = s.alias(v)
			m.At = parseTime(m.AtText)
		case "deliveryIds":
			m.DeliveryIDs = nil
			if kind != '[' {
				return s.dec.SkipValue()
			}
			return s.readStrings(&m.DeliveryIDs)
		default:
			return s.dec.SkipValue()
		}
		return err
	})
}

func (s *skimmer) readStrings(to *[]string) error {
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	for s.dec.PeekKind() != ']' {
		v, err := s.only('"', s.dec.PeekKind())
		if err != nil {
			return err
		}
		if v != nil {
			*to = append(*to, s.alias(v))
		}
	}
	_, err := s.dec.ReadToken()
	return err
}

// letGo drops scratch space that one giant line made large: a reader that follows a quiet session keeps little.
func (s *skimmer) letGo() {
	if cap(s.scratch) > keepSpace {
		s.scratch = nil
	}
	if cap(s.digest) > keepSpace {
		s.digest = nil
	}
	if cap(s.records) > keepSpace/128 {
		s.records = nil
	}
	s.raw, s.in = nil, bytes.Buffer{}
}

// text decodes a raw JSON string into scratch space: valid until the next call.
func (s *skimmer) text(quoted []byte) string {
	if len(quoted) < 2 {
		return ""
	}
	in := quoted[1 : len(quoted)-1]
	if plain(in) {
		return unsafe.String(unsafe.SliceData(in), len(in)) //nolint:gosec // the line is immutable
	}
	s.scratch, _ = jsontext.AppendUnquote(s.scratch[:0], quoted)      // the error tells of replaced bytes only
	return unsafe.String(unsafe.SliceData(s.scratch), len(s.scratch)) //nolint:gosec // until the next call, as said
}

// alias decodes a raw JSON string into a string that shares the line's memory where it can.
func (s *skimmer) alias(quoted []byte) string {
	if len(quoted) < 2 {
		return ""
	}
	in := quoted[1 : len(quoted)-1]
	if plain(in) {
		return unsafe.String(unsafe.SliceData(in), len(in)) //nolint:gosec // the line is immutable
	}
	out, _ := jsontext.AppendUnquote(nil, quoted)
	return string(out)
}

// typeName is alias for names: the known ones are shared by the whole process.
func (s *skimmer) typeName(quoted []byte) string {
	if known, ok := knownType(s.text(quoted)); ok {
		return known
	}
	return strings.Clone(s.text(quoted))
}

// plain says whether a JSON string's inside is its own decoding: printable ASCII without escapes.
func plain(in []byte) bool {
	for _, c := range in {
		if c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
}

// safeInteger reads a JSON number as JavaScript does and keeps it only when it is a safe integer: 7.0 is 7.
func safeInteger(number []byte) (int64, bool) {
	if number == nil {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafeInteger {
		return 0, false
	}
	return int64(f), true
}

func isOne(number []byte) bool {
	n, ok := safeInteger(number)
	return ok && n == 1
}

// parseTime reads an RFC 3339 time; zero when it is none.
func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// syntaxDetail says what is wrong and where, without a byte of the line.
func syntaxDetail(err error) string {
	if syn, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Sprintf("not JSON at byte %d", syn.ByteOffset)
	}
	if errors.Is(err, errTrailing) || errors.Is(err, errTooManyFacts) {
		return err.Error()
	}
	return "not JSON: ends too early"
}

// trimJS cuts what JavaScript's String.prototype.trim cuts.
func trimJS(b []byte) []byte {
	if n := len(b); n > 0 && b[0] == '{' && b[n-1] == '}' {
		return b
	}
	return bytes.TrimFunc(b, func(r rune) bool {
		switch r {
		case '\t', '\n', '\v', '\f', '\r', ' ', 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF:
			return true
		}
		return r >= 0x2000 && r <= 0x200A
	})
}
