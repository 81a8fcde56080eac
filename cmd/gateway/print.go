package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// printer prints messages, each in one write: to people in a readable line, or as JSON.
type printer struct {
	w      io.Writer
	json   bool
	colour bool
}

func newPrinter(p *process, asJSON bool) *printer {
	return &printer{w: p.stdout, json: asJSON, colour: !asJSON && colourful(p.stdout, p.getenv)}
}

func (p *printer) print(m *evev1.SubscribeResponse) error {
	if p.json {
		line, err := jsonLine(m)
		if err != nil {
			return err
		}
		_, err = p.w.Write(line)
		return err
	}
	r, ok := rowOf(m)
	if !ok {
		return nil
	}
	_, err := io.WriteString(p.w, r.format(p.colour))
	return err
}

// jsonLine is the message's protobuf JSON form on one line of ASCII and printable characters: a program reads the same
// from it, and a terminal can show it.
func jsonLine(m *evev1.SubscribeResponse) ([]byte, error) {
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("as JSON: %w", err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil { // white space of protojson varies on purpose
		return nil, fmt.Errorf("as JSON: %w", err)
	}
	line := make([]byte, 0, b.Len()+1)
	for _, r := range b.String() {
		switch {
		case unicode.IsPrint(r):
			line = append(line, string(r)...)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			line = fmt.Appendf(line, `\u%04x\u%04x`, hi, lo)
		default:
			line = fmt.Appendf(line, `\u%04x`, r)
		}
	}
	return append(line, '\n'), nil
}

// row is a message for people.
type row struct {
	at     time.Time // zero: none
	place  string
	name   string
	gist   string
	colour colour // of the name
	faint  bool   // all of it
}

const (
	gistLength = 110
	timeForm   = "15:04:05.000"
)

// format writes the row in columns.
func (r row) format(coloured bool) string {
	at := strings.Repeat(" ", len(timeForm))
	if !r.at.IsZero() {
		at = r.at.UTC().Format(timeForm)
	}
	front := fmt.Sprintf("%s %7s  ", at, r.place)
	name := fmt.Sprintf("%-20s", short(printable(r.name), 40))
	gist := short(printable(r.gist), gistLength)
	switch {
	case coloured && r.faint:
		return dim.paint(strings.TrimRight(front+name+" "+gist, " ")) + "\n"
	case coloured:
		return dim.paint(front) + r.colour.paint(name) + " " + gist + "\n"
	}
	return strings.TrimRight(front+name+" "+gist, " ") + "\n"
}

// rowOf is false for messages that say nothing to people.
func rowOf(m *evev1.SubscribeResponse) (row, bool) {
	switch item := m.GetItem().(type) {
	case *evev1.SubscribeResponse_Fact:
		f := item.Fact
		return row{at: timeOf(f.GetRecordedAt()), place: place(f.GetSource()), name: f.GetType(), gist: factGist(f), colour: factColour(f)}, true
	case *evev1.SubscribeResponse_Progress:
		g := item.Progress
		return row{at: timeOf(g.GetRecordedAt()), place: place(g.GetSource()), name: g.GetType(), gist: progressGist(g), faint: true}, true
	case *evev1.SubscribeResponse_Event:
		e := item.Event
		return row{at: timeOf(e.GetMetaAt()), place: place(e.GetSource()), name: e.GetType(), gist: eventGist(e), colour: blue}, true
	case *evev1.SubscribeResponse_UnreadableLine:
		u := item.UnreadableLine
		return row{place: place(u.GetSource()), name: "(unreadable line)", gist: unreadableGist(u), colour: yellow}, true
	case *evev1.SubscribeResponse_Checkpoint:
		text := checkpointGist(item.Checkpoint)
		at := fmt.Sprintf("%d.%d", m.GetCursor().GetStreamIndex(), m.GetCursor().GetStreamEventIndex())
		return row{place: at, name: "--", gist: text, faint: true}, text != ""
	}
	return row{name: "(an item this build does not know)", colour: yellow}, true
}

func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func place(s *evev1.SourceCoordinates) string {
	return fmt.Sprintf("%d.%d", s.GetLine(), s.GetRecordIndex())
}
