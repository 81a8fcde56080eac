package cursor_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/evegateway/evegateway/cursor"
)

// A reader moves over what it has consumed and can stop anywhere, also inside a line.
func Example() {
	commitTime := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	stored := []cursor.Line{
		{Number: 0, Version: 27, Slots: 3, At: commitTime, Anchor: "first"},
		{Number: 1, Version: 27, Slots: 0, At: commitTime, Anchor: "second"}, // a commit without facts
		{Number: 2, Version: 27, Slots: 2, At: commitTime, Anchor: "third", Terminal: true},
	}

	c := cursor.Cursor{Agent: "support", SessionID: "wrun_1", StreamVersion: 27, StreamEventIndex: 1}
	for !c.SessionEnded {
		line := stored[c.StreamIndex]
		slot, whole, err := c.Begin(line)
		if err != nil {
			fmt.Println(err)
			return
		}
		if whole {
			c = c.AfterLine(line)
			fmt.Println("nothing in line", line.Number, "then", c)
			continue
		}
		for ; slot < line.Slots; slot++ {
			c = c.After(line, slot)
			fmt.Println("record", line.Number, slot, "then", c)
		}
	}
	// Output:
	// record 0 1 then support/wrun_1@0.2 v27
	// record 0 2 then support/wrun_1@1.0 v27
	// nothing in line 1 then support/wrun_1@2.0 v27
	// record 2 0 then support/wrun_1@2.1 v27
	// record 2 1 then support/wrun_1@3.0 v27 ended
}

// A cursor from inside a line does not fit a line that has become shorter: the history is another one.
func ExampleCursor_Begin() {
	c := cursor.Cursor{Agent: "support", SessionID: "wrun_1", StreamVersion: 27, StreamIndex: 47, StreamEventIndex: 4}
	_, _, err := c.Begin(cursor.Line{Number: 47, Version: 27, Slots: 3})

	if e, ok := errors.AsType[*cursor.Error](err); ok {
		fmt.Println(e.Field)
	}
	fmt.Println(err)
	fmt.Println(errors.Is(err, cursor.ErrSlotBeyondLine))
	// Output:
	// stream_event_index
	// cursor: stream_event_index is 4, line 47 has 3 records
	// true
}

// The server reports that it left lines out: the cursor moves, and what was not read has a name.
func ExampleCursor_SkipTo() {
	c := cursor.Cursor{Agent: "support", SessionID: "wrun_1", StreamVersion: 27, StreamIndex: 47, StreamEventIndex: 2}
	c, unread, moved := c.SkipTo(52, 27)
	fmt.Println(c, moved)
	fmt.Printf("unread: %+v\n", unread)
	// Output:
	// support/wrun_1@52.0 v27 true
	// unread: {FromLine:47 FromRecordIndex:2 ToLine:52}
}

// Two workers read the same session; the one that got further counts.
func ExampleMerge() {
	a := cursor.Cursor{Agent: "support", SessionID: "wrun_1", StreamVersion: 27, StreamIndex: 47, StreamEventIndex: 2}
	b := cursor.Cursor{Agent: "support", SessionID: "wrun_1", StreamVersion: 27, StreamIndex: 48}
	fmt.Println(cursor.Merge(a, b))

	b.SessionID = "wrun_2"
	_, err := cursor.Merge(a, b)
	fmt.Println(err)
	// Output:
	// support/wrun_1@48.0 v27 <nil>
	// cursor: session_id differs: the cursors are of different streams
}

// The text form goes into flags, files and messages, and back.
func ExampleCursor_MarshalText() {
	c := cursor.Cursor{Agent: "support", SessionID: "wrun_1", StreamVersion: 27, StreamIndex: 47, StreamEventIndex: 2}
	text, err := c.MarshalText()
	fmt.Println(string(text), err)

	var back cursor.Cursor
	err = back.UnmarshalText(text)
	fmt.Println(back == c, err)
	// Output:
	// evc1.CBsQLxgCOgdzdXBwb3J0QgZ3cnVuXzE <nil>
	// true <nil>
}

// The JSON form is the one every protobuf library writes and reads.
func ExampleCursor_UnmarshalJSON() {
	var c cursor.Cursor
	err := c.UnmarshalJSON([]byte(`{"agent": "support", "sessionId": "wrun_1", "streamVersion": 27, "streamIndex": "47"}`))
	fmt.Println(c, err)

	err = c.UnmarshalJSON([]byte(`{"streamVersion": 26, "streamIndex": "47", "streamEventIndex": 2}`))
	fmt.Println(err)
	// Output:
	// support/wrun_1@47.0 v27 <nil>
	// cursor: stream_event_index is 2: lines of version 26 are one record
}
