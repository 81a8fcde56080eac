package cursor_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/evegateway/evegateway/cursor"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// Generators. Small ranges on purpose: equal positions, repeated lines and the ends of ranges must come up.

func names() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"a", "wrun_1", "é", "a/b@1.0 v27"}),
		rapid.StringOfN(rapid.RuneFrom([]rune("aZ09_-./ \"\\<é会🜁\u2028")), 1, 40, cursor.MaxName),
	)
}

func times() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		seconds := rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64Range(1, 253_402_300_799)).Draw(t, "seconds")
		nanos := rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(0, 999_999_999)).Draw(t, "nanos")
		return time.Unix(seconds, nanos).UTC()
	})
}

func versions() *rapid.Generator[uint32] {
	return rapid.Uint32Range(cursor.MinVersion, cursor.MaxVersion)
}

func indexes() *rapid.Generator[uint64] {
	return rapid.OneOf(rapid.Uint64Range(1, 4), rapid.Uint64Range(1, cursor.MaxIndex-10))
}

// positions are valid cursors of one stream.
func positions() *rapid.Generator[cursor.Cursor] {
	return rapid.Custom(func(t *rapid.T) cursor.Cursor {
		c := cursor.Cursor{Agent: "support", SessionID: "wrun_1"}
		switch rapid.SampledFrom([]string{"inside", "line start", "beginning", "unread"}).Draw(t, "place") {
		case "unread":
			return c
		case "beginning":
			c.StreamVersion = versions().Draw(t, "version")
			return c
		case "line start":
			c.StreamVersion = versions().Draw(t, "version")
			c.StreamIndex = indexes().Draw(t, "index")
			c.SessionEnded = rapid.Bool().Draw(t, "ended")
		case "inside":
			c.StreamVersion = cursor.MaxVersion
			c.StreamIndex = indexes().Draw(t, "index") - 1
			c.StreamEventIndex = rapid.Uint32Range(1, 3).Draw(t, "slot")
		}
		if rapid.Bool().Draw(t, "dated") {
			c.LastCommitTime = times().Draw(t, "time")
		}
		if rapid.Bool().Draw(t, "anchored") {
			c.Anchor = names().Draw(t, "anchor")
		}
		return c
	})
}

// cursors are valid cursors of any stream.
func cursors() *rapid.Generator[cursor.Cursor] {
	return rapid.Custom(func(t *rapid.T) cursor.Cursor {
		c := positions().Draw(t, "position")
		c.Agent = rapid.OneOf(rapid.Just(""), names()).Draw(t, "agent")
		c.SessionID = rapid.OneOf(rapid.Just(""), names()).Draw(t, "session")
		if rapid.Bool().Draw(t, "child") {
			c.Child = cursor.Child{ParentSessionID: names().Draw(t, "parent"), CallID: names().Draw(t, "call")}
		}
		return c
	})
}

// lines are lines of any kind with the given number, with times and anchors a server may come up with.
func lines(number uint64) *rapid.Generator[cursor.Line] {
	return rapid.Custom(func(t *rapid.T) cursor.Line {
		l := cursor.Line{Number: number, Version: cursor.MaxVersion, Slots: 1}
		switch rapid.SampledFrom([]string{"commit", "commit", "event", "progress"}).Draw(t, "kind") {
		case "commit":
			l.Slots = rapid.SampledFrom([]uint32{3, 2, 4, 0, 1}).Draw(t, "slots")
			l.At = rapid.OneOf(
				times(),
				rapid.SampledFrom([]time.Time{{}, time.Unix(0, 0), time.Unix(-1, 0), time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}),
			).Draw(t, "at").In(time.FixedZone("", 3600))
		case "event":
			l.Version = versions().Draw(t, "version")
		}
		l.Anchor = rapid.OneOf(rapid.Just(""), names(), rapid.String()).Draw(t, "anchor")
		// Small numbers are drawn more often than large ones, so this is rare, and shrinking makes it rarer.
		l.Terminal = rapid.IntRange(0, 19).Draw(t, "terminal") == 19
		return l
	})
}

func mustCompare(t *rapid.T, a, b cursor.Cursor) int {
	order, err := a.Compare(b)
	if err != nil {
		t.Fatalf("%v.Compare(%v): %v", a, b, err)
	}
	return order
}

func mustMerge(t *rapid.T, a, b cursor.Cursor) cursor.Cursor {
	c, err := cursor.Merge(a, b)
	if err != nil {
		t.Fatalf("Merge(%v, %v): %v", a, b, err)
	}
	return c
}

func TestOrderIsTotal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := positions().Draw(t, "a"), positions().Draw(t, "b"), positions().Draw(t, "c")
		if mustCompare(t, a, a) != 0 {
			t.Errorf("%v differs from itself", a)
		}
		ab, ba := mustCompare(t, a, b), mustCompare(t, b, a)
		if ab != -ba {
			t.Errorf("%v against %v: %d one way, %d the other", a, b, ab, ba)
		}
		if samePlace := a.StreamIndex == b.StreamIndex && a.StreamEventIndex == b.StreamEventIndex; samePlace != (ab == 0) {
			t.Errorf("%v against %v: %d", a, b, ab)
		}
		if ab <= 0 && mustCompare(t, b, c) <= 0 && mustCompare(t, a, c) > 0 {
			t.Errorf("%v <= %v <= %v, but not the first and the last", a, b, c)
		}
	})
}

func TestMergeIsASemilattice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := positions().Draw(t, "a"), positions().Draw(t, "b"), positions().Draw(t, "c")
		ab := mustMerge(t, a, b)
		if mustMerge(t, a, a) != a {
			t.Errorf("not idempotent on %+v", a)
		}
		if ba := mustMerge(t, b, a); ab != ba {
			t.Errorf("not commutative: %+v and %+v", ab, ba)
		}
		if left, right := mustMerge(t, ab, c), mustMerge(t, a, mustMerge(t, b, c)); left != right {
			t.Errorf("not associative: %+v and %+v", left, right)
		}
		if ab != a && ab != b {
			t.Errorf("%+v is neither of %+v and %+v", ab, a, b)
		}
		if mustCompare(t, ab, a) < 0 || mustCompare(t, ab, b) < 0 {
			t.Errorf("%v is before %v or %v", ab, a, b)
		}
	})
}

// TestMovesGoForward applies moves with lines before, at and behind the cursor, also ones Begin would refuse.
func TestMovesGoForward(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := cursors().Draw(t, "cursor")
		for range rapid.IntRange(1, 8).Draw(t, "moves") {
			if c.StreamIndex >= cursor.MaxIndex {
				return // no line here has a position behind it
			}
			near := max(c.StreamIndex, 2) + rapid.Uint64Range(0, 4).Draw(t, "near") - 2
			near = min(near, cursor.MaxIndex-1)
			l := lines(near).Draw(t, "line")
			var to cursor.Cursor
			switch rapid.SampledFrom([]string{"After", "AfterLine", "SkipTo"}).Draw(t, "move") {
			case "After":
				to = c.After(l, rapid.Uint32Range(0, 5).Draw(t, "slot"))
			case "AfterLine":
				to = c.AfterLine(l)
			case "SkipTo":
				next := rapid.OneOf(rapid.Just(near), rapid.Uint64()).Draw(t, "next")
				var unread cursor.Range
				var moved bool
				to, unread, moved = c.SkipTo(next, l.Version)
				want := cursor.Range{}
				if moved {
					want = cursor.Range{FromLine: c.StreamIndex, FromRecordIndex: c.StreamEventIndex, ToLine: to.StreamIndex}
				}
				if moved != (to != c) || unread != want {
					t.Errorf("SkipTo(%d) from %v to %v: %+v, %t", next, c, to, unread, moved)
				}
			}
			if err := to.Validate(); err != nil {
				t.Errorf("%+v\nmoved to %+v\nwhich is invalid: %v", c, to, err)
			}
			if order := mustCompare(t, to, c); order < 0 || (order == 0) != (to == c) {
				t.Errorf("%+v\nmoved backwards, or changed without moving, to %+v", c, to)
			}
			if c.SessionEnded && to != c {
				t.Errorf("%v has ended and moved to %v", c, to)
			}
			c = to
		}
	})
}

// visit is one record that a reader was given.
type visit struct {
	line uint64
	slot uint32
}

// read gives the records of stored from c on to onRecord, as a server does, until onRecord wants no more, and
// returns the cursor it came to.
func read(t *rapid.T, c cursor.Cursor, stored []cursor.Line, onRecord func(visit, cursor.Cursor) bool) cursor.Cursor {
	for !c.SessionEnded && c.StreamIndex < uint64(len(stored)) {
		l := stored[c.StreamIndex]
		slot, whole, err := c.Begin(l)
		if err != nil {
			t.Fatalf("%+v.Begin(%+v): %v", c, l, err)
		}
		if whole {
			c = c.AfterLine(l)
			continue
		}
		for ; slot < l.Slots; slot++ {
			c = c.After(l, slot)
			if !onRecord(visit{l.Number, slot}, c) {
				return c
			}
		}
	}
	return c
}

func store(t *rapid.T) []cursor.Line {
	stored := make([]cursor.Line, 12-rapid.IntRange(0, 12).Draw(t, "fewer lines than 12"))
	for i := range stored {
		stored[i] = lines(uint64(i)).Draw(t, "line")
	}
	return stored
}

// all are the records that belong to the session, and the position behind them.
func all(stored []cursor.Line) (visits []visit, end uint64, ended bool) {
	for _, l := range stored {
		for slot := range l.Slots {
			visits = append(visits, visit{l.Number, slot})
		}
		if l.Terminal {
			return visits, l.Number + 1, true
		}
	}
	return visits, uint64(len(stored)), false
}

// TestResumesExactly stops reading after every record in turn, writes the cursor down in one of its forms, resumes
// from what was written, and expects the records that were not read, each once.
func TestResumesExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		stored := store(t)
		want, last, ended := all(stored)
		for stop := range len(want) + 1 {
			var got []visit
			keep := func(v visit, _ cursor.Cursor) bool {
				got = append(got, v)
				return len(got) != stop
			}
			c := cursor.Cursor{Agent: "support", SessionID: "wrun_1"}
			if stop > 0 {
				c = read(t, c, stored, keep)
			}
			c = rapid.SampledFrom(roundTrips(t)).Draw(t, "form")(c)
			end := read(t, c, stored, keep)
			if !slices.Equal(got, want) {
				t.Fatalf("stopped after %d, went on at %v: read %v, want %v", stop, c, got, want)
			}
			if end.StreamIndex != last || end.StreamEventIndex != 0 || end.SessionEnded != ended {
				t.Fatalf("all was read, and the cursor is %v, want %d.0, ended %t", end, last, ended)
			}
		}
	})
}

// TestAnyNumberOfStops is the same with several readers one after the other, each stopping where it likes.
func TestAnyNumberOfStops(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		stored := store(t)
		want, _, _ := all(stored)
		c := cursor.Cursor{Agent: "support", SessionID: "wrun_1"}
		var got []visit
		for !c.SessionEnded && c.StreamIndex < uint64(len(stored)) {
			budget := rapid.IntRange(1, 5).Draw(t, "budget")
			before := c
			c = read(t, c, stored, func(v visit, at cursor.Cursor) bool {
				got = append(got, v)
				if order := mustCompare(t, at, before); order <= 0 {
					t.Fatalf("record %v did not move the cursor: %v, then %v", v, before, at)
				}
				before = at
				budget--
				return budget > 0
			})
			c = rapid.SampledFrom(roundTrips(t)).Draw(t, "form")(c)
		}
		if !slices.Equal(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
	})
}

// TestOffTheLine begins lines that do not fit the cursor, and expects it to be told which way.
func TestOffTheLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := positions().Draw(t, "cursor")
		l := lines(rapid.OneOf(rapid.Just(c.StreamIndex), rapid.Uint64Range(0, 5)).Draw(t, "number")).Draw(t, "line")
		var want error
		switch {
		case c.SessionEnded:
			want = cursor.ErrSessionEnded
		case l.Number != c.StreamIndex:
			want = cursor.ErrOtherLine
		case c.StreamEventIndex > 0 && l.Version != 27:
			want = cursor.ErrVersionInsideLine
		case c.StreamEventIndex > l.Slots:
			want = cursor.ErrSlotBeyondLine
		}
		slot, whole, err := c.Begin(l)
		if !errors.Is(err, want) {
			t.Fatalf("%v.Begin(%+v): %v, want %v", c, l, err, want)
		}
		if err != nil {
			return
		}
		if slot != c.StreamEventIndex || whole != (slot >= l.Slots) {
			t.Errorf("%v.Begin(%+v) = %d, %t", c, l, slot, whole)
		}
	})
}

// roundTrips writes and reads a cursor in each of its forms.
func roundTrips(t *rapid.T) []func(cursor.Cursor) cursor.Cursor {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	return []func(cursor.Cursor) cursor.Cursor{
		func(c cursor.Cursor) cursor.Cursor { // message
			b, err := proto.Marshal(c.Proto())
			must(err)
			var m evev1.Cursor
			must(proto.Unmarshal(b, &m))
			d, err := cursor.FromProto(&m)
			must(err)
			return d
		},
		func(c cursor.Cursor) cursor.Cursor { // JSON
			b, err := c.MarshalJSON()
			must(err)
			var d cursor.Cursor
			must(d.UnmarshalJSON(b))
			return d
		},
		func(c cursor.Cursor) cursor.Cursor { // text
			b, err := c.MarshalText()
			must(err)
			if !plainText(b) {
				t.Fatalf("text form %q is not safe to paste", b)
			}
			var d cursor.Cursor
			must(d.UnmarshalText(b))
			return d
		},
	}
}

// plainText reports whether b is one unquoted word for shells, URLs and files.
func plainText(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_' && r != '.'
	})
}

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := cursors().Draw(t, "cursor")
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		for i, roundTrip := range roundTrips(t) {
			if got := roundTrip(c); got != c {
				t.Errorf("form %d: %+v came back as %+v", i, c, got)
			}
		}
	})
}
