package cursor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/evegateway/evegateway/cursor"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", cursor.MaxName)
	anchor := strings.Repeat("a", cursor.MaxAnchor)
	tests := []struct {
		name   string
		change func(c *cursor.Cursor) // to at(5, 0)
		field  string                 // "" = valid
	}{
		{"as it is", func(*cursor.Cursor) {}, ""},
		{"zero value", func(c *cursor.Cursor) { *c = cursor.Cursor{} }, ""},
		{"opened, nothing read", func(c *cursor.Cursor) { *c = cursor.Cursor{StreamVersion: 26} }, ""},
		{"agent and session left to the request", func(c *cursor.Cursor) { c.Agent, c.SessionID = "", "" }, ""},
		{"neither time nor anchor", func(c *cursor.Cursor) { c.LastCommitTime, c.Anchor = time.Time{}, "" }, ""},
		{"ended", func(c *cursor.Cursor) { c.SessionEnded = true }, ""},
		{"letters of all kinds", func(c *cursor.Cursor) { c.Agent, c.SessionID, c.Anchor = "помощь", "会话", "🜁 x" }, ""},

		{"longest names", func(c *cursor.Cursor) {
			c.Agent, c.SessionID, c.Child, c.Anchor = name, name, cursor.Child{ParentSessionID: name, CallID: name}, anchor
		}, ""},
		{"agent too long", func(c *cursor.Cursor) { c.Agent = name + "n" }, "agent"},
		{"session too long", func(c *cursor.Cursor) { c.SessionID = name + "n" }, "session_id"},
		{"parent too long", func(c *cursor.Cursor) { c.Child = cursor.Child{ParentSessionID: name + "n", CallID: "c"} }, "child.parent_session_id"},
		{"call too long", func(c *cursor.Cursor) { c.Child = cursor.Child{ParentSessionID: "p", CallID: name + "n"} }, "child.call_id"},
		{"anchor too long", func(c *cursor.Cursor) { c.Anchor = anchor + "a" }, "anchor"},
		{"line break in the agent", func(c *cursor.Cursor) { c.Agent = "a\n" }, "agent"},
		{"NUL in the session", func(c *cursor.Cursor) { c.SessionID = "s\x00" }, "session_id"},
		{"tab in the parent", func(c *cursor.Cursor) { c.Child = cursor.Child{ParentSessionID: "\tp", CallID: "c"} }, "child.parent_session_id"},
		{"DEL in the call", func(c *cursor.Cursor) { c.Child = cursor.Child{ParentSessionID: "p", CallID: "c\x7f"} }, "child.call_id"},
		{"C1 control in the anchor", func(c *cursor.Cursor) { c.Anchor = "a\u0085" }, "anchor"},
		{"session not UTF-8", func(c *cursor.Cursor) { c.SessionID = "s\xff" }, "session_id"},
		{"anchor not UTF-8", func(c *cursor.Cursor) { c.Anchor = "\xed\xa0\x80" }, "anchor"},

		{"child", func(c *cursor.Cursor) { c.Child = cursor.Child{ParentSessionID: "p", CallID: "c"} }, ""},
		{"child without parent", func(c *cursor.Cursor) { c.Child.CallID = "c" }, "child.parent_session_id"},
		{"child without call", func(c *cursor.Cursor) { c.Child.ParentSessionID = "p" }, "child.call_id"},

		{"lowest version", func(c *cursor.Cursor) { c.StreamVersion = 21 }, ""},
		{"version too low", func(c *cursor.Cursor) { c.StreamVersion = 20 }, "stream_version"},
		{"version too high", func(c *cursor.Cursor) { c.StreamVersion = 28 }, "stream_version"},
		{"version far too high", func(c *cursor.Cursor) { c.StreamVersion = 1<<32 - 1 }, "stream_version"},
		{"position without version", func(c *cursor.Cursor) { c.StreamVersion = 0 }, "stream_version"},
		{"slot without version", func(c *cursor.Cursor) { *c = cursor.Cursor{StreamEventIndex: 1} }, "stream_version"},
		{"anchor without version", func(c *cursor.Cursor) { *c = cursor.Cursor{Anchor: "a"} }, "anchor"},
		{"time without version", func(c *cursor.Cursor) { *c = cursor.Cursor{LastCommitTime: noon()} }, "last_commit_time"},
		{"ended without version", func(c *cursor.Cursor) { *c = cursor.Cursor{SessionEnded: true} }, "session_ended"},
		{"anchor at the beginning", func(c *cursor.Cursor) { c.StreamIndex, c.LastCommitTime = 0, time.Time{} }, "anchor"},
		{"time at the beginning", func(c *cursor.Cursor) { c.StreamIndex, c.Anchor = 0, "" }, "last_commit_time"},
		{"ended at the beginning", func(c *cursor.Cursor) { *c = cursor.Cursor{StreamVersion: 27, SessionEnded: true} }, "session_ended"},

		{"last position", func(c *cursor.Cursor) { c.StreamIndex = cursor.MaxIndex }, ""},
		{"index too high", func(c *cursor.Cursor) { c.StreamIndex = cursor.MaxIndex + 1 }, "stream_index"},
		{"negative index", func(c *cursor.Cursor) { c.StreamIndex = 1<<64 - 1 }, "stream_index"},
		{"inside the first line", func(c *cursor.Cursor) { c.StreamIndex, c.StreamEventIndex = 0, 1 }, ""},
		{"far inside", func(c *cursor.Cursor) { c.StreamEventIndex = 1<<32 - 1 }, ""},
		{"inside an event", func(c *cursor.Cursor) { c.StreamVersion, c.StreamEventIndex = 26, 1 }, "stream_event_index"},
		{"ended inside a line", func(c *cursor.Cursor) { c.StreamEventIndex, c.SessionEnded = 1, true }, "session_ended"},

		{"first time", func(c *cursor.Cursor) { c.LastCommitTime = time.Unix(0, 1).UTC() }, ""},
		{"last time", func(c *cursor.Cursor) { c.LastCommitTime = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC) }, ""},
		{"epoch", func(c *cursor.Cursor) { c.LastCommitTime = time.Unix(0, 0).UTC() }, "last_commit_time"},
		{"before the epoch", func(c *cursor.Cursor) { c.LastCommitTime = time.Unix(0, -1).UTC() }, "last_commit_time"},
		{"antiquity", func(c *cursor.Cursor) { c.LastCommitTime = time.Time{}.Add(1) }, "last_commit_time"},
		{"before the zero time", func(c *cursor.Cursor) { c.LastCommitTime = time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC) }, "last_commit_time"},
		{"year 10000", func(c *cursor.Cursor) { c.LastCommitTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "last_commit_time"},
		{"another zone", func(c *cursor.Cursor) { c.LastCommitTime = noon().In(time.FixedZone("", 3600)) }, "last_commit_time"},
		{"monotonic reading", func(c *cursor.Cursor) { c.LastCommitTime = time.Now() }, "last_commit_time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := at(5, 0)
			tt.change(&c)
			if tt.field == "" {
				checkError(t, c.Validate(), nil, "")
				return
			}
			checkError(t, c.Validate(), cursor.ErrInvalid, tt.field)
			// What is refused when read is not written either.
			_, err := c.MarshalText()
			checkError(t, err, cursor.ErrInvalid, tt.field)
			_, err = c.MarshalJSON()
			checkError(t, err, cursor.ErrInvalid, tt.field)
		})
	}
}
