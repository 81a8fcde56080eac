package cursor

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The largest sizes of a cursor's strings, in bytes. Real ones are a fraction of that; the bounds keep what a
// client makes the server remember and send to Eve small.
const (
	// MaxName bounds the agent, the session id and both parts of the child.
	MaxName = 512
	// MaxAnchor bounds the anchor.
	MaxAnchor = 256
)

// Validate reports the first thing that no reader could have put into a cursor: a number out of range, fields that
// contradict each other, a string that is too long, not UTF-8 or has control characters, half a child. The error
// is ErrInvalid. The agent and the session may be empty, since a request may name them. Whether the position
// exists is for the server to find out.
func (c Cursor) Validate() error {
	for _, s := range [...]struct {
		field, value string
		maxBytes     int
	}{
		{"agent", c.Agent, MaxName},
		{"session_id", c.SessionID, MaxName},
		{"child.parent_session_id", c.Child.ParentSessionID, MaxName},
		{"child.call_id", c.Child.CallID, MaxName},
		{"anchor", c.Anchor, MaxAnchor},
	} {
		if len(s.value) > s.maxBytes {
			return invalid(s.field, fmt.Sprintf("has %d bytes, more than %d", len(s.value), s.maxBytes))
		}
		if problem := textProblem(s.value); problem != "" {
			return invalid(s.field, problem)
		}
	}
	if !c.Child.IsZero() {
		switch {
		case c.Child.ParentSessionID == "":
			return invalid("child.parent_session_id", "is missing")
		case c.Child.CallID == "":
			return invalid("child.call_id", "is missing")
		}
	}

	switch {
	case c.StreamVersion != 0 && (c.StreamVersion < MinVersion || c.StreamVersion > MaxVersion):
		return invalid("stream_version", fmt.Sprintf("is %d: neither 0 nor %d to %d", c.StreamVersion, MinVersion, MaxVersion))
	case c.StreamIndex > MaxIndex:
		return invalid("stream_index", fmt.Sprintf("is %d: beyond %d", c.StreamIndex, uint64(MaxIndex)))
	case c.StreamVersion == 0 && (c.StreamIndex > 0 || c.StreamEventIndex > 0):
		return invalid("stream_version", "is 0 although something has been read")
	case c.StreamEventIndex > 0 && c.StreamVersion != MaxVersion:
		return invalid("stream_event_index", fmt.Sprintf("is %d: lines of version %d are one record", c.StreamEventIndex, c.StreamVersion))
	case c.StreamEventIndex > 0 && c.SessionEnded:
		return invalid("session_ended", "is set inside a line")
	}

	if !c.LastCommitTime.IsZero() {
		if problem := timeProblem(c.LastCommitTime); problem != "" {
			return invalid("last_commit_time", problem)
		}
	}
	if _, ok := c.LastLine(); !ok {
		switch {
		case c.Anchor != "":
			return invalid("anchor", "is set at the beginning, where no line has been read")
		case !c.LastCommitTime.IsZero():
			return invalid("last_commit_time", "is set at the beginning, where no line has been read")
		case c.SessionEnded:
			return invalid("session_ended", "is set at the beginning, where no line has been read")
		}
	}
	return nil
}

// textProblem says what is wrong with the characters of a string, "" if nothing.
func textProblem(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "is not UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "has control characters"
	}
	return ""
}

// timeProblem says what is wrong with a time that is set, "" if nothing. The epoch itself is refused too: other
// readers write it for "unknown" (contract 2.6), and here unknown is unset.
func timeProblem(t time.Time) string {
	switch {
	case t != t.UTC(): // the values, not the instants: == on cursors needs one spelling of a time
		return "is not in UTC or has a monotonic reading"
	case t.Unix() < 0 || t.Equal(time.Unix(0, 0)):
		return "is not after 1970-01-01T00:00:00Z"
	case t.Year() > 9999:
		return "is beyond the year 9999"
	}
	return ""
}
