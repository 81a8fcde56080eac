package cursor

import (
	"fmt"
	"time"
)

// Line is what a cursor must know of a counted source line to move over it. Transport records and blank lines are
// not lines.
type Line struct {
	// Number is the line's place in the stored stream, from 0.
	Number uint64
	// Version is the stream version the line came under, MinVersion to MaxVersion. Where a server before 27
	// answers with a commit (contract 6.4, case E), give 27: only a line of 27 can be resumed inside.
	Version uint32
	// Slots is the number of records in the line: the facts of a commit, which may have none, and 1 for everything
	// else, lines that cannot be read included.
	Slots uint32
	// At is the time of a commit. Zero for other lines, and for commits whose time cannot be read.
	At time.Time
	// Anchor is the identity of the line: at most MaxAnchor bytes without control characters. Empty when the line
	// cannot be identified.
	Anchor string
	// Terminal says that no record of a later line belongs to the session (contract 4.1 and 5.6).
	Terminal bool
}

// Range is a run of source positions that were not read: from one record, inclusive, to a line, exclusive.
type Range struct {
	// FromLine is the line of the first record that was not read.
	FromLine uint64
	// FromRecordIndex is the slot of that record; 0 unless the reader stood inside the line.
	FromRecordIndex uint32
	// ToLine is the first line after the range.
	ToLine uint64
}

// LastLine is the last line that was consumed or begun: the one that Anchor identifies, and the first line to ask
// for when resuming, since it must be there and be the same. It is the cursor's own line for a position inside it,
// else the line before. There is none at the beginning.
func (c Cursor) LastLine() (number uint64, ok bool) {
	switch {
	case c.StreamEventIndex > 0:
		return c.StreamIndex, true
	case c.StreamIndex > 0:
		return c.StreamIndex - 1, true
	}
	return 0, false
}

// Begin says how to go on with the line the cursor stands at: at which slot, or, with whole set, that nothing of
// it remains, be it that it holds no record or that all of them were consumed; [Cursor.AfterLine] then moves
// behind it.
//
// The error is ErrSessionEnded when the session's terminal line is consumed, which readers check first, ErrOtherLine
// for a line that is not the cursor's, ErrVersionInsideLine where the cursor stands
// inside a line that came under a version before 27, ErrSlotBeyondLine where it stands behind more records than the
// line has, and ErrInvalid for the line MaxIndex, behind which there is no position.
func (c Cursor) Begin(l Line) (slot uint32, whole bool, err error) {
	switch {
	case c.SessionEnded:
		return 0, false, &Error{"session_ended", fmt.Sprintf("is set, and line %d lies behind the end", l.Number), ErrSessionEnded}
	case l.Number != c.StreamIndex:
		return 0, false, &Error{"stream_index", fmt.Sprintf("is %d, the line is %d", c.StreamIndex, l.Number), ErrOtherLine}
	case l.Number >= MaxIndex:
		return 0, false, invalid("stream_index", fmt.Sprintf("is %d, and there is no position behind that line", c.StreamIndex))
	case c.StreamEventIndex > 0 && l.Version < MaxVersion:
		return 0, false, &Error{"stream_event_index", fmt.Sprintf("is %d, and the line came under version %d, whose lines are one record",
			c.StreamEventIndex, l.Version), ErrVersionInsideLine}
	case c.StreamEventIndex > l.Slots:
		return 0, false, &Error{"stream_event_index", fmt.Sprintf("is %d, line %d has %d records",
			c.StreamEventIndex, l.Number, l.Slots), ErrSlotBeyondLine}
	}
	return c.StreamEventIndex, c.StreamEventIndex == l.Slots, nil
}

// After moves over one record: the one in the given slot of a line that [Cursor.Begin] accepted. The last slot, or
// one behind it, completes the line. A record before the cursor, or behind the end of the session, leaves it as it
// is.
func (c Cursor) After(l Line, slot uint32) Cursor {
	if uint64(slot)+1 >= uint64(l.Slots) {
		return c.AfterLine(l)
	}
	// Only lines of 27 have an inside, so the position says 27 even if a server before 27 sent a commit: this way
	// it is valid, and resuming it there is refused rather than guessed.
	return c.over(l, Cursor{StreamVersion: MaxVersion, StreamIndex: l.Number, StreamEventIndex: slot + 1})
}

// AfterLine moves behind a whole line that [Cursor.Begin] accepted: one without records, one that was filtered out
// or could not be read, or the rest of one that was partly consumed. A line before the cursor leaves it as it is.
func (c Cursor) AfterLine(l Line) Cursor {
	return c.over(l, Cursor{StreamVersion: l.Version, StreamIndex: l.Number + 1, SessionEnded: l.Terminal})
}

// over moves to a position that consuming something of l leads to.
func (c Cursor) over(l Line, to Cursor) Cursor {
	if c.SessionEnded || to.order(c) <= 0 {
		return c
	}
	c.StreamVersion, c.StreamIndex, c.StreamEventIndex = to.StreamVersion, to.StreamIndex, to.StreamEventIndex
	c.SessionEnded = to.SessionEnded
	c.Anchor = usableAnchor(l.Anchor)
	if at := usableTime(l.At); !at.IsZero() {
		c.LastCommitTime = at
	}
	return c
}

// SkipTo applies a report of the server that the next line it sends is next (contract 2.4, record "position"), seen
// under the given stream version. If that is behind the cursor's line, the cursor moves to its start, the range is
// what remains unread before it, and the result is true. The anchor is dropped: nobody here has seen the line
// before next. Otherwise, for a next beyond MaxIndex, which is no position, and once the session has ended, the
// cursor is unchanged and the result false.
func (c Cursor) SkipTo(next uint64, version uint32) (Cursor, Range, bool) {
	if c.SessionEnded || next <= c.StreamIndex || next > MaxIndex {
		return c, Range{}, false
	}
	unread := Range{FromLine: c.StreamIndex, FromRecordIndex: c.StreamEventIndex, ToLine: next}
	c.StreamVersion, c.StreamIndex, c.StreamEventIndex = version, next, 0
	c.Anchor = ""
	return c, unread, true
}

// PositionedAt is the absolute position that a relative start resolved to (contract 6.3, C8): at the start of line
// next, under the given stream version, in the stream that c names. The anchor, time and terminality are those of
// the line before it, as in [Line], empty where it is not known; at line 0 there is no line before and they are
// ignored. What c says of a position is replaced.
func (c Cursor) PositionedAt(next uint64, version uint32, anchor string, at time.Time, terminal bool) Cursor {
	to := Cursor{Agent: c.Agent, SessionID: c.SessionID, Child: c.Child, StreamVersion: version, StreamIndex: next}
	if next > 0 {
		to.Anchor, to.LastCommitTime, to.SessionEnded = usableAnchor(anchor), usableTime(at), terminal
	}
	return to
}

// usableAnchor is the anchor, or none if it is not one.
func usableAnchor(anchor string) string {
	if len(anchor) > MaxAnchor || textProblem(anchor) != "" {
		return ""
	}
	return anchor
}

// usableTime is the time as a cursor keeps it, or none if it keeps no such time.
func usableTime(at time.Time) time.Time {
	if at = at.UTC(); timeProblem(at) != "" {
		return time.Time{}
	}
	return at
}
