package guarantee

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// item is what a message carries of a stored line: a record, or a line that cannot be read.
type item struct {
	kind      fakeeve.Kind
	at        position
	typ, id   string
	text      string // as sent; "" when it was not
	lossy     bool
	omitted   bool
	endOfLine bool

	// Of an unreadable line.
	tooLarge, truncated bool
	size                int64
}

// itemOf takes a message apart; ok is false for a checkpoint and for a message that carries nothing.
func itemOf(m *evev1.SubscribeResponse) (it item, ok bool) {
	var at *evev1.SourceCoordinates
	switch x := m.GetItem().(type) {
	case *evev1.SubscribeResponse_Fact:
		f := x.Fact
		it = item{kind: fakeeve.Commit, typ: f.GetType(), text: f.GetRecordJson(), lossy: f.GetLossy(), omitted: f.GetOmitted() != nil}
		at = f.GetSource()
	case *evev1.SubscribeResponse_Progress:
		p := x.Progress
		it = item{kind: fakeeve.Progress, typ: p.GetType(), text: p.GetRecordJson(), lossy: p.GetLossy(), omitted: p.GetOmitted() != nil}
		at = p.GetSource()
	case *evev1.SubscribeResponse_Event:
		e := x.Event
		it = item{
			kind: fakeeve.Event, typ: e.GetType(), id: e.GetMetaId(), text: e.GetRecordJson(), lossy: e.GetLossy(), omitted: e.GetOmitted() != nil,
		}
		at = e.GetSource()
	case *evev1.SubscribeResponse_UnreadableLine:
		u := x.UnreadableLine
		it = item{
			kind: fakeeve.Unreadable, text: u.GetText(), truncated: u.GetTruncated(), size: number(u.GetSize()),
			tooLarge: u.GetReason() == evev1.UnreadableReason_UNREADABLE_REASON_TOO_LARGE,
		}
		at = u.GetSource()
	default:
		return item{}, false
	}
	it.at = position{number(at.GetLine()), int64(at.GetRecordIndex())}
	it.endOfLine = at.GetEndOfLine()
	return it, true
}

func (it *item) String() string {
	if it.kind == fakeeve.Unreadable {
		return fmt.Sprintf("unreadable line %d", it.at.line)
	}
	return fmt.Sprintf("%v %v %.60q", it.kind, it.at, it.typ)
}

// is tells whether the item is what is stored in a slot of a line, as far as it says.
func (it *item) is(e fakeeve.Entry, slot int64) bool {
	if it.kind == fakeeve.Unreadable {
		return it.isLine(e)
	}
	if e.Kind != it.kind || slot >= int64(len(e.Records)) {
		return false
	}
	r := e.Records[slot]
	switch {
	case it.typ != r.Type && utf8.ValidString(r.Type):
		return false
	case it.text != "":
		return it.text == string(r.Raw) || it.lossy && readable(it.text) == readable(string(r.Raw))
	case it.id != "":
		return it.id == eventID(r.Raw)
	}
	return true
}

// isLine is the same for a line that cannot be read, or that the gateway does not want to. A carriage return before the line
// end is part of a line or not, as the server ended it.
func (it *item) isLine(e fakeeve.Entry) bool {
	size := int64(len(e.Raw))
	switch {
	case e.Kind == fakeeve.Skipped, it.size < size, it.size > size+1:
		return false
	case it.tooLarge:
		return true
	case e.Kind != fakeeve.Unreadable:
		return false
	case it.text == "" && it.truncated:
		return true
	case it.truncated:
		return strings.HasPrefix(readable(string(e.Raw)), strings.TrimSpace(readable(it.text)))
	}
	return strings.TrimSpace(readable(it.text)) == strings.TrimSpace(readable(string(e.Raw)))
}

// readable is what is left of a text without what cannot be told in UTF-8, nor the sign that stands for it.
func readable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\uFFFD", "")
}

// eventID is the meta.id of an event.
func eventID(raw []byte) string {
	var e struct {
		Meta struct {
			ID string `json:"id"`
		} `json:"meta"`
	}
	if json.Unmarshal(bytes.ToValidUTF8(raw, nil), &e) != nil {
		return ""
	}
	return e.Meta.ID
}

// position is a place in a stream: a line, and a record in it.
type position struct{ line, slot int64 }

func (p position) String() string { return fmt.Sprintf("%d.%d", p.line, p.slot) }

func (p position) before(q position) bool {
	return p.line < q.line || p.line == q.line && p.slot < q.slot
}

// positionOf is where a cursor stands.
func positionOf(c *evev1.Cursor) position {
	return position{number(c.GetStreamIndex()), int64(c.GetStreamEventIndex())}
}

// number is n as a signed number; what is larger than any line number stays larger.
func number(n uint64) int64 { return int64(min(n, 1<<62)) }
