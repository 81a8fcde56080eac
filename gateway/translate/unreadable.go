package translate

import (
	"unicode/utf8"

	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// maxUnreadableText bounds UnreadableLine.text, in bytes.
const maxUnreadableText = 4 << 10

func unreadable(l *source.Line, endOfLine bool, f Form) *evev1.SubscribeResponse_UnreadableLine {
	m := &evev1.UnreadableLine{
		Source: setSource(new(evev1.SourceCoordinates), l, 0, endOfLine),
		Reason: unreadableReason(l.Flaw),
		Size:   uint64(max(l.Size, 0)),
		Detail: validText(l.Detail),
	}
	if f.any() && l.Raw != nil {
		m.Text, m.Truncated = beginning(l.Raw)
	} else {
		m.Truncated = l.Size > 0
	}
	return &evev1.SubscribeResponse_UnreadableLine{UnreadableLine: m}
}

// beginning returns as much of line as makes at most maxUnreadableText bytes of valid UTF-8, cut between characters,
// and whether there is more.
func beginning(line []byte) (text string, truncated bool) {
	// Replacing never makes text shorter, so a few bytes beyond the bound are enough, and what cutting them off does
	// to the last character falls off below.
	text, _ = recordText(line[:min(len(line), maxUnreadableText+utf8.UTFMax)])
	if len(text) <= maxUnreadableText {
		return text, false
	}
	end := maxUnreadableText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end], true
}

func unreadableReason(f source.Flaw) evev1.UnreadableReason {
	switch f {
	case source.InvalidJSON:
		return evev1.UnreadableReason_UNREADABLE_REASON_INVALID_JSON
	case source.NotAnObject:
		return evev1.UnreadableReason_UNREADABLE_REASON_NOT_AN_OBJECT
	case source.UnknownShape:
		return evev1.UnreadableReason_UNREADABLE_REASON_UNKNOWN_SHAPE
	case source.MalformedPosition:
		return evev1.UnreadableReason_UNREADABLE_REASON_MALFORMED_POSITION
	case source.TooLarge:
		return evev1.UnreadableReason_UNREADABLE_REASON_TOO_LARGE
	case source.NoFlaw:
	}
	return evev1.UnreadableReason_UNREADABLE_REASON_UNSPECIFIED
}
