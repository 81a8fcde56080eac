package source_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// TestChaos reads a growing session through a server that does everything wrong that a retry can help with, with a
// reader that releases its body and is replaced by another one now and then. Every line comes once, with its own bytes
// and, at 27, in order, or is reported skipped.
func TestChaos(t *testing.T) {
	for seed := range uint64(20) {
		for _, version := range []int{27, 26} {
			t.Run(fmt.Sprintf("%d seed %d", version, seed), func(t *testing.T) { chaos(t, version, seed) })
		}
	}
}

func chaos(t *testing.T, version int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, uint64(version)))
	var mu sync.Mutex // of the server's part of it
	faults := rand.New(rand.NewPCG(seed, 1))
	bad := 0 // answers in a row that carry nothing: fewer than the retry budget
	script := func(c fakeeve.Conn) fakeeve.Fault {
		mu.Lock()
		defer mu.Unlock()
		f := fakeeve.Fault{CRLF: faults.IntN(4) == 0, ChunkSize: []int{0, 0, 1, 13}[faults.IntN(4)]}
		if version < 27 && faults.IntN(2) == 0 { // contract O4
			every, by := int64(5+faults.IntN(10)), 1+faults.IntN(4)
			f.Late = func(line int64) int { return map[bool]int{true: by}[line%every == 0] }
		}
		if faults.IntN(3) == 0 {
			f.Delay = time.Duration(faults.IntN(3000)) * time.Millisecond
		}
		kind := faults.IntN(9)
		if bad == 5 {
			kind = 8
		}
		bad++
		// A line or two behind those that are read again, so that it gets on.
		at := fakeeve.AtLine(c.Start+int64(17+faults.IntN(4)), int64(faults.IntN(60)))
		switch kind {
		case 0:
			return status([]int{409, 425, 429, 500, 502, 503, 504}[faults.IntN(7)])
		case 1:
			return status(200, "Content-Type", "text/html")
		case 2:
			f.CutAt, f.Cut = fakeeve.AtByte(int64(faults.IntN(40))), fakeeve.How(faults.IntN(3))
			return f
		case 3, 4:
			f.CutAt, f.Cut = at, fakeeve.How(faults.IntN(3))
		case 5:
			f.Lease, f.LineDelay = 20*time.Second, time.Second
		case 6:
			f.StallAt, f.Stall = at, time.Duration(faults.IntN(40))*time.Second
		case 7:
			f.Lease = time.Duration(1+faults.IntN(10_000)) * time.Millisecond
		default:
		}
		bad = 0
		return f
	}
	var stored []string
	for i := range 120 {
		switch {
		case version < 27:
			stored = append(stored, events(i + 1)[i])
		case rng.IntN(8) == 0:
			stored = append(stored, []string{"not json", `{"progress":{"type":"p"}}`, `[7]`, `{"at":"x","facts":[]}`, `{"x":"\ud83d"}`}[rng.IntN(5)])
		default:
			stored = append(stored, page(i))
		}
	}
	stored = append(stored, map[bool]string{true: sessionEnded, false: sessionCompleted}[version == 27])
	bubble(t, setup{version: version, lines: stored[:20], script: script}, func(w *world) {
		t := w.t // of the bubble
		due := time.Duration(0)
		for rest := stored[20:]; len(rest) > 0; {
			n := min(len(rest), 1+rng.IntN(6))
			due += time.Duration(1+rng.IntN(15_000)) * time.Millisecond // never two at a time: their order would be open
			w.after(due, rest[:n]...)
			rest = rest[n:]
		}
		trimmed, seen := map[uint64]bool{}, map[uint64]bool{}
		if version == 27 && rng.IntN(2) == 0 { // not the end
			from := 5 + rng.IntN(10)
			to := from + 1 + rng.IntN(5)
			w.sess.MemLog().Trim(int64(from), int64(to))
			for i := from; i < to; i++ {
				trimmed[uint64(i)] = true
			}
		}
		// What a client remembers: where it stands and the anchor of that place.
		here := source.Place{Version: uint32(version)}
		r := w.open(source.Request{})
		for {
			s, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("at line %d: %v", here.Line, err)
			}
			switch s.Kind {
			case source.StepLine:
				l := s.Line
				n := l.Number
				if version < 27 { // a live stream may be out of order: what it is, its text tells
					n = uint64(slices.Index(stored, strings.TrimSuffix(string(l.Raw), "\r")))
				}
				if version >= 27 && n != here.Line || l.Place != here.Line || s.Next != here.Line+1 || trimmed[n] || seen[n] {
					t.Fatalf("line %d at %d, then %d; the reader stands at %d; seen before: %v", n, l.Place, s.Next, here.Line, seen[n])
				}
				seen[n] = true
				if got := strings.TrimSuffix(string(l.Raw), "\r"); got != stored[n] {
					t.Fatalf("line %d is %s, want %s", n, got, stored[n])
				}
				here.Line, here.Anchor = s.Next, l.Anchor
			case source.StepSkipped:
				for i := here.Line; i < s.Next; i++ {
					if s.From != here.Line || !trimmed[i] {
						t.Fatalf("%s at %d, but line %d is there", words(s), here.Line, i)
					}
				}
				here.Line, here.Anchor = s.Next, ""
			case source.StepEnded:
				if s.End != source.SessionEnded || here.Line != uint64(len(stored)) {
					t.Fatalf("%s at %d of %d", words(s), here.Line, len(stored))
				}
			case source.StepCaughtUp:
			default:
				t.Fatal(words(s))
			}
			switch rng.IntN(20) {
			case 0:
				r.Release()
			case 1:
				time.Sleep(time.Duration(rng.IntN(100)) * time.Second)
			case 2: // another replica goes on
				r.Close()
				r = w.open(source.Request{Start: here})
			}
		}
	})
}
