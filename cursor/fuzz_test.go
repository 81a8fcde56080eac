package cursor_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/evegateway/evegateway/cursor"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// seeds are valid cursors and forged ones.
func seeds() []*evev1.Cursor {
	seeds := []*evev1.Cursor{
		nil,
		{Child: &evev1.ChildStream{}},
		{StreamVersion: 28, StreamIndex: 1 << 53, StreamEventIndex: 1},
		{StreamVersion: 26, StreamIndex: 1, StreamEventIndex: 1},
		{Agent: "a\n", SessionId: "\u202e"},
		forgedTime(time.Time{}.Unix(), 0),
		forgedTime(1<<62, -1),
	}
	for _, f := range forms() {
		seeds = append(seeds, f.c.Proto())
	}
	return seeds
}

// checkDecoded holds what must hold for whatever a decoder says about whatever input.
func checkDecoded(t *testing.T, c cursor.Cursor, err error) {
	t.Helper()
	if err != nil {
		if _, ok := errors.AsType[*cursor.Error](err); !ok || !errors.Is(err, cursor.ErrInvalid) {
			t.Errorf("error %v (%T) is not an invalid cursor", err, err)
		}
		return
	}
	if err := c.Validate(); err != nil {
		t.Fatalf("accepted %+v, which is invalid: %v", c, err)
	}
	if again, err := cursor.FromProto(c.Proto()); err != nil || again != c {
		t.Errorf("as a message %+v came back as %+v, %v", c, again, err)
	}
	var again cursor.Cursor
	text, err := c.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.UnmarshalText(text); err != nil || again != c {
		t.Errorf("as text %+v came back as %+v, %v", c, again, err)
	}
	again = cursor.Cursor{}
	b, err := c.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.UnmarshalJSON(b); err != nil || again != c {
		t.Errorf("as JSON %+v came back as %+v, %v", c, again, err)
	}
	// What was accepted can be gone on with, and what it leads to is accepted again.
	l := cursor.Line{Number: c.StreamIndex, Version: 27, Slots: c.StreamEventIndex | 1}
	slot, whole, err := c.Begin(l)
	switch {
	case err != nil:
		if !c.SessionEnded && c.StreamIndex < cursor.MaxIndex {
			t.Errorf("%+v cannot go on: %v", c, err)
		}
		return
	case whole:
		c = c.AfterLine(l)
	default:
		c = c.After(l, slot)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("went on to %+v, which is invalid: %v", c, err)
	}
}

func FuzzFromProto(f *testing.F) {
	for _, m := range seeds() {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("\xc2\x3e\x01x\x08\x1b")) // an unknown field first
	f.Fuzz(func(t *testing.T, b []byte) {
		var m evev1.Cursor
		if proto.Unmarshal(b, &m) != nil {
			return // not a message: gRPC refuses it before this package sees it
		}
		c, err := cursor.FromProto(&m)
		checkDecoded(t, c, err)
	})
}

func FuzzUnmarshalText(f *testing.F) {
	for _, form := range forms() {
		f.Add([]byte(form.text))
		f.Add([]byte(form.text[:len(form.text)-1]))
	}
	f.Add([]byte("evc1.CBt"))
	f.Add([]byte("evc2."))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c cursor.Cursor
		err := c.UnmarshalText(text)
		checkDecoded(t, c, err)
	})
}

func FuzzUnmarshalJSON(f *testing.F) {
	for _, form := range forms() {
		f.Add([]byte(form.json))
	}
	f.Add([]byte(`null`))
	f.Add([]byte(`{"stream_version":27,"streamIndex":1e2,"last_commit_time":"2026-11-01T13:00:00.005+01:00","child":{}}`))
	f.Add([]byte(`{"lastCommitTime":"0001-01-01T00:00:00Z","agent":"\ud83d"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c cursor.Cursor
		err := c.UnmarshalJSON(b)
		checkDecoded(t, c, err)
	})
}
