package cursor

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// textPrefix opens the text form and names its version.
const textPrefix = "evc1."

// FromProto reads a cursor from its message and validates it. A missing message is an error, since its meaning,
// the beginning or a mistake, is the caller's to say. Fields unknown to this build are ignored.
func FromProto(m *evev1.Cursor) (Cursor, error) {
	if m == nil {
		return Cursor{}, invalid("", "is missing")
	}
	c := Cursor{
		Agent:            m.GetAgent(),
		SessionID:        m.GetSessionId(),
		Child:            Child{m.GetChild().GetParentSessionId(), m.GetChild().GetCallId()},
		StreamVersion:    m.GetStreamVersion(),
		StreamIndex:      m.GetStreamIndex(),
		StreamEventIndex: m.GetStreamEventIndex(),
		Anchor:           m.GetAnchor(),
		SessionEnded:     m.GetSessionEnded(),
	}
	if m.GetChild() != nil && c.Child.IsZero() {
		return Cursor{}, invalid("child", "is set but empty")
	}
	if t := m.GetLastCommitTime(); t != nil {
		if err := t.CheckValid(); err != nil {
			return Cursor{}, invalid("last_commit_time", "is not a time: "+plain(err))
		}
		if c.LastCommitTime = t.AsTime(); c.LastCommitTime.IsZero() {
			// The year 1 is a forgery like any time before 1970, but reads as "unset" from here on.
			return Cursor{}, invalid("last_commit_time", timeProblem(c.LastCommitTime))
		}
	}
	if err := c.Validate(); err != nil {
		return Cursor{}, err
	}
	return c, nil
}

// Proto is the cursor as a message, new with every call. It does not validate.
func (c Cursor) Proto() *evev1.Cursor {
	m := &evev1.Cursor{
		StreamVersion:    c.StreamVersion,
		StreamIndex:      c.StreamIndex,
		StreamEventIndex: c.StreamEventIndex,
		Anchor:           c.Anchor,
		SessionEnded:     c.SessionEnded,
		Agent:            c.Agent,
		SessionId:        c.SessionID,
	}
	if !c.LastCommitTime.IsZero() {
		m.LastCommitTime = timestamppb.New(c.LastCommitTime)
	}
	if !c.Child.IsZero() {
		m.Child = &evev1.ChildStream{ParentSessionId: c.Child.ParentSessionID, CallId: c.Child.CallID}
	}
	return m
}

// MarshalJSON writes the protobuf JSON mapping of the message: lowerCamelCase names, the stream index as a string,
// unset fields left out, no white space.
func (c Cursor) MarshalJSON() ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	spaced, err := protojson.Marshal(c.Proto())
	if err != nil {
		return nil, invalid("", "cannot be written as JSON: "+plain(err))
	}
	// protojson varies its white space from build to build, so that nobody relies on it.
	var b bytes.Buffer
	if err := json.Compact(&b, spaced); err != nil {
		return nil, invalid("", "cannot be written as JSON: "+err.Error())
	}
	return b.Bytes(), nil
}

// UnmarshalJSON reads the protobuf JSON mapping of the message, with lowerCamelCase or proto names, and validates.
// Unknown and repeated fields are refused, and so is null. On error c is unchanged.
func (c *Cursor) UnmarshalJSON(b []byte) error {
	var m evev1.Cursor
	if err := protojson.Unmarshal(b, &m); err != nil {
		return invalid("", "cannot be read as JSON: "+plain(err))
	}
	return c.set(&m)
}

// MarshalText writes one line of printable characters that shells and URLs leave alone: "evc1." and the
// base64url form, without padding, of the message. Equal cursors have equal texts.
func (c Cursor) MarshalText() ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.Proto())
	if err != nil {
		return nil, invalid("", "cannot be written as text: "+plain(err))
	}
	return base64.RawURLEncoding.AppendEncode([]byte(textPrefix), b), nil
}

// UnmarshalText reads what MarshalText wrote, to the letter, and validates. Fields unknown to this build are
// dropped. On error c is unchanged.
func (c *Cursor) UnmarshalText(text []byte) error {
	encoded, ok := bytes.CutPrefix(text, []byte(textPrefix))
	if !ok {
		return invalid("", `does not begin with "`+textPrefix+`": not a cursor, or one of another build`)
	}
	// The decoder skips line breaks; a text that was wrapped or doubled on its way is not what was written.
	if bytes.ContainsAny(encoded, "\r\n") {
		return invalid("", "is broken over lines")
	}
	b, err := base64.RawURLEncoding.Strict().AppendDecode(nil, encoded)
	if err != nil {
		return invalid("", "is damaged: "+err.Error())
	}
	var m evev1.Cursor
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, &m); err != nil {
		return invalid("", "is damaged: "+plain(err))
	}
	return c.set(&m)
}

func (c *Cursor) set(m *evev1.Cursor) error {
	d, err := FromProto(m)
	if err != nil {
		return err
	}
	*c = d
	return nil
}

// plain is the text of an error of the protobuf module without its prefix, and without the non-breaking spaces it
// varies from build to build.
func plain(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
}
