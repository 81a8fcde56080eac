package cursor

import (
	"cmp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxIndex is the largest stream index: the largest integer that JavaScript, and so Eve, holds exactly
// (contract G4).
const MaxIndex = 1<<53 - 1

// The range of stream versions a cursor can have been moved under. Only lines of version 27 have an inside.
const (
	MinVersion = 21
	MaxVersion = 27
)

// Child names a session that is read through the session that opened it. The zero value: not a child.
type Child struct {
	// ParentSessionID is the session whose stream holds the child.opened fact.
	ParentSessionID string
	// CallID is the parent's call that opened the child.
	CallID string
}

// IsZero reports whether c names no child.
func (c Child) IsZero() bool { return c == Child{} }

// Cursor is a position in the stream of one session, with what it takes to resume there. Cursors are values:
// copy them, compare them with ==, use them as map keys. Equal cursors mean the same; the order of two is
// [Cursor.Compare]'s. The zero value stands at the beginning of a session that the request has to name.
type Cursor struct {
	// Agent is the configured agent. It may be empty where the request names it, or where there is only one.
	Agent string
	// SessionID is the session the position belongs to. It may be empty where the request names it.
	SessionID string
	// Child is set when the session is a child read through its parent.
	Child Child

	// StreamVersion is the protocol version observed when the cursor last moved, MinVersion to MaxVersion, or 0
	// when nothing has been read.
	StreamVersion uint32
	// StreamIndex is the line of the next record, at most MaxIndex. Up to version 26, where a line is one event,
	// that is the number of events consumed.
	StreamIndex uint64
	// StreamEventIndex is the slot of the next record in that line, counted over all records of the line, those of
	// unknown type included. It is 0 at the start of a line, and below version 27 always.
	StreamEventIndex uint32

	// LastCommitTime is the time of the last commit consumed or begun; progress, which has no time of its own, is
	// dated by it. Always UTC and without a monotonic reading, so that == compares instants. Zero: none seen.
	LastCommitTime time.Time
	// Anchor is the identity of the last line consumed or begun (see [Cursor.LastLine]), opaque. Empty: the
	// position cannot be verified.
	Anchor string
	// SessionEnded says that the session's terminal line has been consumed: there is nothing to resume.
	SessionEnded bool
}

// Compare orders two cursors of one stream by line, then slot: negative when c stands before d, 0 at the same
// position, whatever else they say, positive behind it. Cursors of different agents, sessions or children have no
// order: the error is ErrOtherStream. A name that is empty in one cursor only counts as different.
func (c Cursor) Compare(d Cursor) (int, error) {
	switch {
	case c.Agent != d.Agent:
		return 0, otherStream("agent")
	case c.SessionID != d.SessionID:
		return 0, otherStream("session_id")
	case c.Child != d.Child:
		return 0, otherStream("child")
	}
	return c.order(d), nil
}

// Merge returns the one of two cursors of one stream that stands further (contract 6.3, C7). The error is
// ErrOtherStream, as for [Cursor.Compare].
//
// At the same position it prefers the one that knows of the session's end, then the one with an anchor, so that
// merging never turns a verified resume into an unverified one; what is left is decided in a fixed way. So the
// result depends neither on the order of the arguments nor on that of several merges.
func Merge(a, b Cursor) (Cursor, error) {
	order, err := a.Compare(b)
	if err != nil {
		return Cursor{}, err
	}
	if order = cmp.Or(order,
		compareBools(a.SessionEnded, b.SessionEnded),
		cmp.Compare(a.Anchor, b.Anchor), // the empty one is the least
		a.LastCommitTime.Compare(b.LastCommitTime),
		cmp.Compare(a.StreamVersion, b.StreamVersion),
	); order < 0 {
		return b, nil
	}
	return a, nil
}

// String shows the coordinates for people, on one line: "agent/session@47.2 v27", with "agent/parent/call/session"
// for a child, and " ended" after the session's end. It has no anchor and cannot be read back; see
// [Cursor.MarshalText] for that.
func (c Cursor) String() string {
	var b strings.Builder
	b.WriteString(printable(c.Agent))
	b.WriteByte('/')
	if !c.Child.IsZero() {
		b.WriteString(printable(c.Child.ParentSessionID))
		b.WriteByte('/')
		b.WriteString(printable(c.Child.CallID))
		b.WriteByte('/')
	}
	b.WriteString(printable(c.SessionID))
	b.WriteByte('@')
	b.WriteString(strconv.FormatUint(c.StreamIndex, 10))
	b.WriteByte('.')
	b.WriteString(strconv.FormatUint(uint64(c.StreamEventIndex), 10))
	b.WriteString(" v")
	b.WriteString(strconv.FormatUint(uint64(c.StreamVersion), 10))
	if c.SessionEnded {
		b.WriteString(" ended")
	}
	return b.String()
}

// order compares positions only.
func (c Cursor) order(d Cursor) int {
	return cmp.Or(
		cmp.Compare(c.StreamIndex, d.StreamIndex),
		cmp.Compare(c.StreamEventIndex, d.StreamEventIndex),
	)
}

func otherStream(field string) *Error {
	return &Error{Field: field, Problem: "differs: the cursors are of different streams", kind: ErrOtherStream}
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// printable keeps a name from breaking the line or the terminal it is shown on.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}
