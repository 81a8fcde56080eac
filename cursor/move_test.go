package cursor_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/evegateway/evegateway/cursor"
)

// noon is when the line before a cursor was written, one when the line it stands at was.
func noon() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 5_000_000, time.UTC) }

func one() time.Time { return noon().Add(time.Hour) }

// at is a cursor of version 27 that stands behind something read at noon.
func at(index uint64, slot uint32) cursor.Cursor {
	return cursor.Cursor{
		Agent: "support", SessionID: "wrun_1",
		StreamVersion: 27, StreamIndex: index, StreamEventIndex: slot,
		LastCommitTime: noon(), Anchor: "before",
	}
}

// behindEnd is a cursor that has consumed the terminal line 4.
func behindEnd() cursor.Cursor {
	c := at(5, 0)
	c.SessionEnded = true
	return c
}

func commit(number uint64, slots uint32) cursor.Line {
	return cursor.Line{Number: number, Version: 27, Slots: slots, At: one(), Anchor: "this"}
}

func TestBegin(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		at    cursor.Cursor
		line  cursor.Line
		slot  uint32
		whole bool
		err   error
		field string
	}{
		{name: "beginning", at: cursor.Cursor{}, line: commit(0, 3)},
		{name: "line start", at: at(5, 0), line: commit(5, 3)},
		{name: "inside", at: at(5, 2), line: commit(5, 3), slot: 2},
		{name: "behind the last slot", at: at(5, 3), line: commit(5, 3), slot: 3, whole: true},
		{name: "behind more slots than there are", at: at(5, 4), line: commit(5, 3), err: cursor.ErrSlotBeyondLine, field: "stream_event_index"},
		{name: "inside a line that has no records", at: at(5, 1), line: commit(5, 0), err: cursor.ErrSlotBeyondLine, field: "stream_event_index"},
		{name: "commit without facts", at: at(5, 0), line: commit(5, 0), whole: true},
		{name: "event", at: at(5, 0), line: cursor.Line{Number: 5, Version: 26, Slots: 1}},
		{name: "inside, now an event", at: at(5, 1), line: cursor.Line{Number: 5, Version: 26, Slots: 1}, err: cursor.ErrVersionInsideLine, field: "stream_event_index"},
		{name: "inside, now a commit under 26", at: at(5, 1), line: cursor.Line{Number: 5, Version: 26, Slots: 3}, err: cursor.ErrVersionInsideLine, field: "stream_event_index"},
		{name: "inside, beyond and another version", at: at(5, 9), line: cursor.Line{Number: 5, Version: 21, Slots: 1}, err: cursor.ErrVersionInsideLine, field: "stream_event_index"},
		{name: "line before", at: at(5, 0), line: commit(4, 1), err: cursor.ErrOtherLine, field: "stream_index"},
		{name: "line behind", at: at(5, 0), line: commit(6, 1), err: cursor.ErrOtherLine, field: "stream_index"},
		{name: "behind the end", at: behindEnd(), line: commit(5, 1), err: cursor.ErrSessionEnded, field: "session_ended"},
		{name: "last line with a position behind it", at: at(cursor.MaxIndex-1, 0), line: commit(cursor.MaxIndex-1, 1)},
		{name: "no position behind the line", at: at(cursor.MaxIndex, 0), line: commit(cursor.MaxIndex, 1), err: cursor.ErrInvalid, field: "stream_index"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			slot, whole, err := tt.at.Begin(tt.line)
			checkError(t, err, tt.err, tt.field)
			if err == nil && (slot != tt.slot || whole != tt.whole) {
				t.Errorf("Begin = slot %d, whole %t; want %d, %t", slot, whole, tt.slot, tt.whole)
			}
		})
	}
}

func TestAfter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		from cursor.Cursor
		line cursor.Line
		slot uint32
		want func(c *cursor.Cursor) // changes to from
	}{
		{
			name: "first of three", from: at(5, 0), line: commit(5, 3), slot: 0,
			want: func(c *cursor.Cursor) {
				c.StreamEventIndex, c.LastCommitTime, c.Anchor = 1, one(), "this"
			},
		},
		{
			name: "second of three", from: at(5, 1), line: commit(5, 3), slot: 1,
			want: func(c *cursor.Cursor) {
				c.StreamEventIndex, c.LastCommitTime, c.Anchor = 2, one(), "this"
			},
		},
		{
			name: "last of three", from: at(5, 2), line: commit(5, 3), slot: 2,
			want: func(c *cursor.Cursor) {
				c.StreamIndex, c.StreamEventIndex, c.LastCommitTime, c.Anchor = 6, 0, one(), "this"
			},
		},
		{
			name: "only one", from: at(5, 0), line: commit(5, 1), slot: 0,
			want: func(c *cursor.Cursor) { c.StreamIndex, c.LastCommitTime, c.Anchor = 6, one(), "this" },
		},
		{
			name: "a slot behind the last", from: at(5, 0), line: commit(5, 3), slot: 1<<32 - 1,
			want: func(c *cursor.Cursor) { c.StreamIndex, c.LastCommitTime, c.Anchor = 6, one(), "this" },
		},
		{
			name: "the largest line", from: at(5, 0), line: commit(5, 1<<32-1), slot: 1<<32 - 3,
			want: func(c *cursor.Cursor) {
				c.StreamEventIndex, c.LastCommitTime, c.Anchor = 1<<32-2, one(), "this"
			},
		},
		{
			name: "slots left out by a filter", from: at(5, 0), line: commit(5, 9), slot: 6,
			want: func(c *cursor.Cursor) {
				c.StreamEventIndex, c.LastCommitTime, c.Anchor = 7, one(), "this"
			},
		},
		{
			name: "progress keeps the time", from: at(5, 0), slot: 0,
			line: cursor.Line{Number: 5, Version: 27, Slots: 1, Anchor: "this"},
			want: func(c *cursor.Cursor) { c.StreamIndex, c.Anchor = 6, "this" },
		},
		{
			name: "unidentifiable line clears the anchor", from: at(5, 0), slot: 0,
			line: cursor.Line{Number: 5, Version: 27, Slots: 1},
			want: func(c *cursor.Cursor) { c.StreamIndex, c.Anchor = 6, "" },
		},
		{
			name: "event of an older version", from: at(5, 0), slot: 0,
			line: cursor.Line{Number: 5, Version: 24, Slots: 1, Anchor: "this"},
			want: func(c *cursor.Cursor) { c.StreamVersion, c.StreamIndex, c.Anchor = 24, 6, "this" },
		},
		{
			name: "inside a commit that an older server sent", from: at(5, 0), slot: 0,
			line: cursor.Line{Number: 5, Version: 26, Slots: 2, At: one(), Anchor: "this"},
			want: func(c *cursor.Cursor) {
				c.StreamEventIndex, c.LastCommitTime, c.Anchor = 1, one(), "this"
			},
		},
		{
			name: "behind a commit that an older server sent", from: at(5, 0), slot: 1,
			line: cursor.Line{Number: 5, Version: 26, Slots: 2, At: one(), Anchor: "this"},
			want: func(c *cursor.Cursor) {
				c.StreamVersion, c.StreamIndex, c.LastCommitTime, c.Anchor = 26, 6, one(), "this"
			},
		},
		{
			name: "terminal line begun", from: at(5, 0), slot: 0,
			line: cursor.Line{Number: 5, Version: 27, Slots: 2, At: one(), Anchor: "this", Terminal: true},
			want: func(c *cursor.Cursor) {
				c.StreamEventIndex, c.LastCommitTime, c.Anchor = 1, one(), "this"
			},
		},
		{
			name: "terminal line complete", from: at(5, 1), slot: 1,
			line: cursor.Line{Number: 5, Version: 27, Slots: 2, At: one(), Anchor: "this", Terminal: true},
			want: func(c *cursor.Cursor) {
				c.StreamIndex, c.StreamEventIndex, c.LastCommitTime, c.Anchor, c.SessionEnded = 6, 0, one(), "this", true
			},
		},
		{name: "first of a line behind the end", from: behindEnd(), line: commit(5, 2), slot: 0},
		{name: "last of a line behind the end", from: behindEnd(), line: commit(5, 2), slot: 1},
		{name: "a slot again", from: at(5, 2), line: commit(5, 4), slot: 1},
		{name: "an earlier slot again", from: at(5, 2), line: commit(5, 4), slot: 0},
		{name: "a line again", from: at(5, 0), line: commit(4, 1), slot: 0},
		{name: "a terminal line again", from: at(5, 0), slot: 0, line: cursor.Line{Number: 4, Version: 27, Slots: 1, Terminal: true}},
		{
			name: "time in another zone", from: at(5, 0), slot: 0,
			line: cursor.Line{Number: 5, Version: 27, Slots: 1, At: one().In(time.FixedZone("", 3600)), Anchor: "this"},
			want: func(c *cursor.Cursor) { c.StreamIndex, c.LastCommitTime, c.Anchor = 6, one(), "this" },
		},
		{
			name: "times no cursor keeps", from: at(5, 0), slot: 0,
			line: cursor.Line{Number: 5, Version: 27, Slots: 1, At: time.Unix(0, 0), Anchor: "this"},
			want: func(c *cursor.Cursor) { c.StreamIndex, c.Anchor = 6, "this" },
		},
		{
			name: "anchor that is too long", from: at(5, 0), slot: 0,
			line: cursor.Line{Number: 5, Version: 27, Slots: 1, Anchor: strings.Repeat("a", cursor.MaxAnchor+1)},
			want: func(c *cursor.Cursor) { c.StreamIndex, c.Anchor = 6, "" },
		},
		{
			name: "anchor with a line break", from: at(5, 0), slot: 0,
			line: cursor.Line{Number: 5, Version: 27, Slots: 1, Anchor: "a\nb"},
			want: func(c *cursor.Cursor) { c.StreamIndex, c.Anchor = 6, "" },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.from
			if tt.want != nil {
				tt.want(&want)
			}
			got := tt.from.After(tt.line, tt.slot)
			if got != want {
				t.Errorf("After(%+v, %d)\n got %+v\nwant %+v", tt.line, tt.slot, got, want)
			}
			if err := got.Validate(); err != nil {
				t.Errorf("the result is invalid: %v", err)
			}
		})
	}
}

func TestAfterLine(t *testing.T) {
	t.Parallel()
	behind := at(6, 0)
	behind.LastCommitTime, behind.Anchor = one(), "this"
	ended := behind
	ended.SessionEnded = true
	terminal := commit(5, 4)
	terminal.Terminal = true

	tests := []struct {
		name string
		from cursor.Cursor
		line cursor.Line
		want cursor.Cursor
	}{
		{"commit without facts", at(5, 0), commit(5, 0), behind},
		{"whole line left out", at(5, 0), commit(5, 4), behind},
		{"rest of a line", at(5, 2), commit(5, 4), behind},
		{"position behind the last slot", at(5, 4), commit(5, 4), behind},
		{"terminal", at(5, 0), terminal, ended},
		{"rest of a terminal line", at(5, 3), terminal, ended},
		{"line before", at(5, 2), commit(4, 4), at(5, 2)},
		{"line behind the end", behindEnd(), commit(5, 4), behindEnd()},
		{"number that no line can have", at(5, 0), commit(1<<64-1, 1), at(5, 0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.from.AfterLine(tt.line); got != tt.want {
				t.Errorf("AfterLine(%+v)\n got %+v\nwant %+v", tt.line, got, tt.want)
			}
		})
	}
}

func TestSkipTo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		from    cursor.Cursor
		next    uint64
		version uint32
		moved   bool
		unread  cursor.Range
	}{
		{name: "forward", from: at(5, 0), next: 9, version: 27, moved: true, unread: cursor.Range{FromLine: 5, ToLine: 9}},
		{name: "from the beginning", from: cursor.Cursor{}, next: 3, version: 27, moved: true, unread: cursor.Range{FromLine: 0, ToLine: 3}},
		{name: "from inside a line", from: at(5, 2), next: 9, version: 27, moved: true, unread: cursor.Range{FromLine: 5, FromRecordIndex: 2, ToLine: 9}},
		{name: "over the rest of a line only", from: at(5, 2), next: 6, version: 27, moved: true, unread: cursor.Range{FromLine: 5, FromRecordIndex: 2, ToLine: 6}},
		{name: "under another version", from: at(5, 0), next: 6, version: 26, moved: true, unread: cursor.Range{FromLine: 5, ToLine: 6}},
		{name: "to the last position", from: at(5, 0), next: cursor.MaxIndex, version: 27, moved: true, unread: cursor.Range{FromLine: 5, ToLine: cursor.MaxIndex}},
		{name: "to the same line", from: at(5, 0), next: 5, version: 27},
		{name: "to the same line from inside", from: at(5, 2), next: 5, version: 27},
		{name: "backwards", from: at(5, 0), next: 4, version: 26},
		{name: "behind the end", from: behindEnd(), next: 9, version: 27},
		{name: "to no position", from: at(5, 0), next: cursor.MaxIndex + 1, version: 27},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.from
			if tt.moved {
				want.StreamVersion, want.StreamIndex, want.StreamEventIndex, want.Anchor = tt.version, tt.next, 0, ""
			}
			got, unread, moved := tt.from.SkipTo(tt.next, tt.version)
			if got != want || unread != tt.unread || moved != tt.moved {
				t.Errorf("SkipTo(%d, %d)\n got %+v, %+v, %t\nwant %+v, %+v, %t", tt.next, tt.version, got, unread, moved, want, tt.unread, tt.moved)
			}
			if err := got.Validate(); err != nil {
				t.Errorf("the result is invalid: %v", err)
			}
		})
	}
}

func TestPositionedAt(t *testing.T) {
	t.Parallel()
	stream := cursor.Cursor{Agent: "support", SessionID: "wrun_2", Child: cursor.Child{ParentSessionID: "wrun_1", CallID: "call_1"}}
	position := func(change func(c *cursor.Cursor)) cursor.Cursor {
		c := stream
		change(&c)
		return c
	}
	used := position(func(c *cursor.Cursor) {
		c.StreamVersion, c.StreamIndex, c.StreamEventIndex, c.LastCommitTime, c.Anchor = 27, 50, 3, noon(), "before"
	})

	tests := []struct {
		name string
		got  cursor.Cursor
		want cursor.Cursor
	}{
		{
			"tail", stream.PositionedAt(48, 27, "this", one(), false),
			position(func(c *cursor.Cursor) {
				c.StreamVersion, c.StreamIndex, c.LastCommitTime, c.Anchor = 27, 48, one(), "this"
			}),
		},
		{
			"tail of an ended session", stream.PositionedAt(48, 26, "this", time.Time{}, true),
			position(func(c *cursor.Cursor) {
				c.StreamVersion, c.StreamIndex, c.Anchor, c.SessionEnded = 26, 48, "this", true
			}),
		},
		{
			"session without lines", stream.PositionedAt(0, 27, "this", one(), true),
			position(func(c *cursor.Cursor) { c.StreamVersion = 27 }),
		},
		{
			"the old position is gone, also backwards", used.PositionedAt(7, 26, "", time.Time{}, false),
			position(func(c *cursor.Cursor) { c.StreamVersion, c.StreamIndex = 26, 7 }),
		},
		{
			"what no cursor keeps", stream.PositionedAt(7, 27, "a\x00b", time.Unix(-1, 0), false),
			position(func(c *cursor.Cursor) { c.StreamVersion, c.StreamIndex = 27, 7 }),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.got != tt.want {
				t.Errorf("PositionedAt\n got %+v\nwant %+v", tt.got, tt.want)
			}
			if err := tt.got.Validate(); err != nil {
				t.Errorf("the result is invalid: %v", err)
			}
		})
	}
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		at     cursor.Cursor
		number uint64
		ok     bool
	}{
		{name: "beginning", at: at(0, 0)},
		{name: "inside the first line", at: at(0, 1), number: 0, ok: true},
		{name: "behind the first line", at: at(1, 0), number: 0, ok: true},
		{name: "inside", at: at(5, 2), number: 5, ok: true},
		{name: "line start", at: at(5, 0), number: 4, ok: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if number, ok := tt.at.LastLine(); number != tt.number || ok != tt.ok {
				t.Errorf("LastLine = %d, %t; want %d, %t", number, ok, tt.number, tt.ok)
			}
		})
	}
}

// TestMovesDoNotAllocate guards the hot path: one move per record sent. It is not parallel, because it counts
// the allocations of the process.
func TestMovesDoNotAllocate(t *testing.T) {
	tests := []struct {
		name string
		line cursor.Line
	}{
		{"ordinary", cursor.Line{Number: 5, Version: 27, Slots: 3, At: one(), Anchor: "1:5f0c6b7e0b0e4d6a"}},
		{"time in another zone", cursor.Line{Number: 5, Version: 27, Slots: 3, At: one().In(time.FixedZone("", 3600)), Anchor: "é"}},
		{"unusable", cursor.Line{Number: 5, Version: 27, Slots: 3, At: time.Unix(-1, 0), Anchor: strings.Repeat("a", cursor.MaxAnchor+1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			from := at(5, 0)
			var to cursor.Cursor
			var beginErr error
			allocs := testing.AllocsPerRun(100, func() {
				_, _, beginErr = from.Begin(tt.line)
				to = from.After(tt.line, 0).After(tt.line, 1).After(tt.line, 2)
				to = to.AfterLine(cursor.Line{Number: 6, Version: 27})
				to, _, _ = to.SkipTo(9, 27)
			})
			if beginErr != nil {
				t.Fatal(beginErr)
			}
			if to.StreamIndex != 9 {
				t.Fatalf("the moves led to %v", to)
			}
			if allocs != 0 {
				t.Errorf("the moves over two lines allocate %v times", allocs)
			}
		})
	}
}

// checkError compares an error of the package with the kind and the field it must have; no kind: no error.
func checkError(t *testing.T, err, kind error, field string) {
	t.Helper()
	if kind == nil {
		if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
		return
	}
	e, ok := errors.AsType[*cursor.Error](err)
	if !ok {
		t.Fatalf("error %v (%T), want a *cursor.Error of kind %q", err, err, kind)
	}
	if !errors.Is(err, kind) {
		t.Errorf("error %q is not %q", err, kind)
	}
	if e.Field != field {
		t.Errorf("error %q blames %q, want %q", err, e.Field, field)
	}
	if e.Problem == "" || strings.ContainsAny(err.Error(), "\n\u00a0") {
		t.Errorf("error %q does not say what is wrong on one plain line", err)
	}
}
