package fakeeve_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

func transcript(t *testing.T, name string) *fakeeve.TranscriptFile {
	t.Helper()
	f, err := fakeeve.Transcript(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestTranscriptCounts: the package's own reading of every transcript is what expected.json says.
func TestTranscriptCounts(t *testing.T) {
	names := fakeeve.TranscriptNames()
	if len(names) != 17 {
		t.Fatalf("%d transcripts: %q", len(names), names)
	}
	for _, name := range names {
		f := transcript(t, name)
		raw, err := os.ReadFile("transcripts/" + name)
		if err != nil || !bytes.Equal(raw, f.Body) {
			t.Errorf("%s: not the file's bytes (%v)", name, err)
		}
		got := fakeeve.Expected{File: name, StreamVersion: fmt.Sprint(f.Version), StartIndex: f.Start, FinalCursor: f.Start}
		for _, e := range fakeeve.ReadBody(f.Body, f.Version, f.Start) {
			if e.Kind != fakeeve.Blank {
				got.Records++
			}
			got.Slots += len(e.Records)
			switch e.Kind {
			case fakeeve.Blank:
				got.Blank++
			case fakeeve.Transport:
				if !slices.Contains([]string{"heartbeat", "stream.ended", "stream.lease-ended"}, e.Control) {
					got.UnknownTransport++
				} else {
					got.Transport++
				}
			case fakeeve.Position:
				got.Transport++
				got.FinalCursor = max(got.FinalCursor, e.Next)
			case fakeeve.Commit:
				got.Commits++
			case fakeeve.Progress:
				got.Progress++
			case fakeeve.Unreadable:
				got.Invalid++
			case fakeeve.Event, fakeeve.Skipped:
			}
			if e.Kind.Counts() {
				got.FinalCursor = e.Line + 1
			}
		}
		want := f.Expected
		// The catalog of types and the end of the response are not this package's business.
		got.Events, got.UnknownTypes, got.EndedBy = want.Events, want.UnknownTypes, want.EndedBy
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-expected +counted):\n%s", name, diff)
		}
		if f.Len() != want.FinalCursor {
			t.Errorf("%s: as a log %d lines, want %d", name, f.Len(), want.FinalCursor)
		}
	}
}

// TestTranscriptServed: the first response is the file; later ones hold the lines asked for, then the end.
func TestTranscriptServed(t *testing.T) {
	for _, name := range fakeeve.TranscriptNames() {
		t.Run(name, func(t *testing.T) {
			f := transcript(t, name)
			bubble(t, plain, func(t *testing.T, e *env) {
				session, err := e.s.AddTranscript("a", name)
				if err != nil {
					t.Fatal(err)
				}
				first := e.read(fmt.Sprintf("a/stream?startIndex=%d&includeTailIndex=1", f.Start))
				if diff := cmp.Diff(string(f.Body), first.raw()); diff != "" || first.err != nil {
					t.Errorf("first body (-want +got), ended with %v:\n%s", first.err, diff)
				}
				if first.took != 0 {
					t.Errorf("took %v", first.took)
				}
				if got := first.res.Header.Get("X-Eve-Stream-Tail-Index"); got != fmt.Sprint(f.Tail) {
					t.Errorf("tail %s, want %d", got, f.Tail)
				}
				if got := first.res.Header.Get("X-Eve-Stream-Version"); got != fmt.Sprint(f.Version) {
					t.Errorf("version %s, want %d", got, f.Version)
				}

				for start := max(0, f.Start-2); start <= f.Len(); start++ {
					got := e.read(fmt.Sprintf("a/stream?startIndex=%d", start))
					checkStored(t, got, session.Log(), f.Version, start)
				}
			})
		})
	}
}

// spell is all of an entry as one text: comparing the bytes of records one by one takes long.
func spell(e fakeeve.Entry) string {
	text := fmt.Sprintf("%d %v %s", e.Line, e.Kind, e.Raw)
	for _, r := range e.Records {
		text += fmt.Sprintf("\n%d.%d %v %s %v %s", r.Line, r.Slot, r.Kind, r.Type, r.EndOfLine, r.Raw)
	}
	return text
}

// checkStored compares a body with the lines of a log from start on, and its end with that of a closed stream.
func checkStored(t *testing.T, got output, log fakeeve.Log, version int, start int64) {
	t.Helper()
	var want, have []string
	for e := range fakeeve.Entries(log, version, start, -1) {
		if e.Kind != fakeeve.Skipped {
			want = append(want, spell(e))
		}
	}
	entries := fakeeve.ReadBody([]byte(got.raw()), version, start)
	cursor := start
	for _, e := range entries {
		if e.Kind.Counts() {
			have = append(have, spell(e.Entry))
			cursor = e.Line + 1
		} else if e.Kind == fakeeve.Position {
			cursor = e.Next
		}
	}
	if diff := cmp.Diff(want, have); diff != "" || got.err != nil || got.took != 0 {
		t.Errorf("from line %d, ended with %v after %v (-want +got):\n%s", start, got.err, got.took, diff)
	}
	if cursor != log.Len() {
		t.Errorf("from line %d: counted to %d, want %d", start, cursor, log.Len())
	}
	if last := got.lines[len(got.lines)-1].text; (last == ended) != (version >= 27) {
		t.Errorf("from line %d: the last line is %q", start, last)
	}
}

// TestTranscriptFromBefore: a reader that asks for the line before the file's first is told where it begins.
func TestTranscriptFromBefore(t *testing.T) {
	for name, opening := range map[string]string{"06": beat, "07b": beat, "11b": ""} {
		f := transcript(t, name)
		for _, back := range []int64{1, f.Start} {
			bubble(t, plain, func(t *testing.T, e *env) {
				if _, err := e.s.AddTranscript("a", name); err != nil {
					t.Fatal(err)
				}
				got := e.read(fmt.Sprintf("a/stream?startIndex=%d", f.Start-back))
				body := strings.TrimPrefix(string(f.Body), opening+"\n")
				want := opening + "\n" + position(int(f.Start)) + "\n" + body
				if diff := cmp.Diff(want, got.raw()); diff != "" {
					t.Errorf("%s from %d before (-want +got):\n%s", name, back, diff)
				}
			})
		}
	}
}

// TestTranscriptInside: a request from inside the file, before anyone had it, is served from the stored lines, and the
// file is still there for the next.
func TestTranscriptInside(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		session, err := e.s.AddTranscript("a", "05")
		if err != nil {
			t.Fatal(err)
		}
		checkStored(t, e.read("a/stream?startIndex=3"), session.Log(), 27, 3)
		if got := e.read("a/stream"); got.raw() != string(transcript(t, "05").Body) {
			t.Errorf("not the file: %s", got.raw())
		}
	})
}

// TestTranscriptChain: a session of two files, read as a gateway does that re-reads the line before its cursor.
func TestTranscriptChain(t *testing.T) {
	for _, names := range [][]string{{"07a", "07b"}, {"11", "11b"}} {
		first, second := transcript(t, names[0]), transcript(t, names[1])
		bubble(t, plain, func(t *testing.T, e *env) {
			session, err := e.s.AddTranscript("a", names...)
			if err != nil {
				t.Fatal(err)
			}
			one := e.read("a/stream?streamControlVersion=1")
			if one.raw() != string(first.Body) {
				t.Errorf("the first body: %s", one.raw())
			}
			two := e.read(fmt.Sprintf("a/stream?startIndex=%d", second.Start-1))
			opening, rest, _ := strings.Cut(string(second.Body), "\n")
			want := opening + "\n" + string(first.Line(second.Start-1)) + "\n" + rest
			if diff := cmp.Diff(want, two.raw()); diff != "" {
				t.Errorf("the second body (-want +got):\n%s", diff)
			}
			three := e.read("a/stream")
			checkStored(t, three, session.Log(), second.Version, 0)
			if session.Log().Len() != second.Len() {
				t.Errorf("%d stored lines, want %d", session.Log().Len(), second.Len())
			}
		})
	}
}

// TestTranscriptFaults: faults apply to a transcript as to stored lines, and one that is answered by a status leaves
// the file for the next connection.
func TestTranscriptFaults(t *testing.T) {
	f := transcript(t, "01")
	bubble(t, plain, func(t *testing.T, e *env) {
		if _, err := e.s.AddTranscript("a", "01"); err != nil {
			t.Fatal(err)
		}
		e.s.Script("a", fakeeve.Faults(fakeeve.Fault{Status: 404}, fakeeve.Fault{CutAt: fakeeve.AtLine(2, 5), Cut: fakeeve.Abort}))
		if got := e.read("a/stream"); got.res.StatusCode != 404 {
			t.Errorf("status %d", got.res.StatusCode)
		}
		got := e.read("a/stream")
		if want := string(f.Body[:strings.Index(string(f.Body), string(f.Line(2)))+5]); got.raw() != want || got.err == nil {
			t.Errorf("ended with %v:\n%s\nwant\n%s", got.err, got.raw(), want)
		}
	})
}

// TestTranscriptUnknown: names that are none.
func TestTranscriptUnknown(t *testing.T) {
	for _, name := range []string{"", "14", "expected.json", "0"} {
		if f, err := fakeeve.Transcript(name); err == nil {
			t.Errorf("%q is %s", name, f.Name)
		}
	}
	if _, err := fakeeve.New().AddTranscript("a"); err == nil {
		t.Error("a session of no transcripts")
	}
}
