package cursor_test

import (
	"testing"

	"github.com/evegateway/evegateway/cursor"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		a, b cursor.Cursor
		want int
	}{
		{"same", at(5, 2), at(5, 2), 0},
		{"line", at(5, 0), at(6, 0), -1},
		{"slot", at(5, 2), at(5, 1), 1},
		{"line before slot", at(5, 9), at(6, 0), -1},
		{"the rest does not matter", at(5, 0), at(5, 0).PositionedAt(5, 21, "other", one(), true), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				a, b cursor.Cursor
				want int
			}{{tt.a, tt.b, tt.want}, {tt.b, tt.a, -tt.want}} {
				got, err := c.a.Compare(c.b)
				if err != nil || got != c.want {
					t.Errorf("%v.Compare(%v) = %d, %v; want %d", c.a, c.b, got, err, c.want)
				}
			}
		})
	}
}

func TestOtherStreams(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, field string
		change      func(c *cursor.Cursor)
	}{
		{"agent", "agent", func(c *cursor.Cursor) { c.Agent = "sales" }},
		{"no agent", "agent", func(c *cursor.Cursor) { c.Agent = "" }},
		{"session", "session_id", func(c *cursor.Cursor) { c.SessionID = "wrun_9" }},
		{"no session", "session_id", func(c *cursor.Cursor) { c.SessionID = "" }},
		{"child", "child", func(c *cursor.Cursor) { c.Child = cursor.Child{ParentSessionID: "wrun_0", CallID: "call_1"} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, b := at(5, 0), at(6, 0)
			tt.change(&b)
			_, err := a.Compare(b)
			checkError(t, err, cursor.ErrOtherStream, tt.field)
			_, err = b.Compare(a)
			checkError(t, err, cursor.ErrOtherStream, tt.field)
			merged, err := cursor.Merge(a, b)
			checkError(t, err, cursor.ErrOtherStream, tt.field)
			if merged != (cursor.Cursor{}) {
				t.Errorf("Merge of different streams = %v", merged)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	with := func(c cursor.Cursor, change func(c *cursor.Cursor)) cursor.Cursor {
		change(&c)
		return c
	}
	old := with(at(5, 0), func(c *cursor.Cursor) { c.StreamVersion = 26 })
	tests := []struct {
		name          string
		further, less cursor.Cursor
	}{
		{"line", at(6, 0), at(5, 3)},
		{"slot", at(5, 3), at(5, 2)},
		{"the version follows the further one, also when it is lower", with(at(6, 0), func(c *cursor.Cursor) { c.StreamVersion = 21 }), at(5, 3)},
		{"an anchor does not outweigh a record", with(at(5, 3), func(c *cursor.Cursor) { c.Anchor = "" }), at(5, 2)},
		{"ended", with(old, func(c *cursor.Cursor) { c.SessionEnded, c.Anchor = true, "" }), at(5, 0)},
		{"anchor", old, with(at(5, 0), func(c *cursor.Cursor) { c.Anchor, c.LastCommitTime = "", one() })},
		{"time", with(old, func(c *cursor.Cursor) { c.LastCommitTime = one() }), at(5, 0)},
		{"version", at(5, 0), old},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, pair := range [][2]cursor.Cursor{{tt.further, tt.less}, {tt.less, tt.further}} {
				got, err := cursor.Merge(pair[0], pair[1])
				if err != nil || got != tt.further {
					t.Errorf("Merge(%+v, %+v)\n got %+v, %v\nwant %+v", pair[0], pair[1], got, err, tt.further)
				}
			}
		})
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	child := cursor.Child{ParentSessionID: "wrun_0", CallID: "call_3"}
	tests := []struct {
		c    cursor.Cursor
		want string
	}{
		{cursor.Cursor{}, "/@0.0 v0"},
		{at(47, 2), "support/wrun_1@47.2 v27"},
		{cursor.Cursor{Agent: "a", SessionID: "s", Child: child, StreamVersion: 26, StreamIndex: 9, SessionEnded: true}, "a/wrun_0/call_3/s@9.0 v26 ended"},
		{cursor.Cursor{Agent: "a\nb", SessionID: "\x1b[31m\u202e\xff"}, "a\ufffdb/\ufffd[31m\ufffd\ufffd@0.0 v0"},
	}
	for _, tt := range tests {
		if got := tt.c.String(); got != tt.want {
			t.Errorf("String of %+v = %q, want %q", tt.c, got, tt.want)
		}
	}
}

func TestChildIsZero(t *testing.T) {
	t.Parallel()
	tests := []struct {
		child cursor.Child
		want  bool
	}{
		{cursor.Child{}, true},
		{cursor.Child{ParentSessionID: "wrun_0"}, false},
		{cursor.Child{CallID: "call_3"}, false},
		{cursor.Child{ParentSessionID: "wrun_0", CallID: "call_3"}, false},
	}
	for _, tt := range tests {
		if got := tt.child.IsZero(); got != tt.want {
			t.Errorf("%+v.IsZero() = %t", tt.child, got)
		}
	}
}
