package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

var errBody = errors.New("the connection was reset")

// pieces gives one piece a read; the last one comes together with the error.
type pieces struct {
	list []string
	err  error
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.list) == 0 {
		return 0, p.err
	}
	n := copy(b, p.list[0])
	if p.list[0] = p.list[0][n:]; p.list[0] == "" {
		p.list = p.list[1:]
	}
	if len(p.list) == 0 {
		return n, p.err
	}
	return n, nil
}

// split reads a body to its end; each line as text, or its size when it was over the limit.
func split(s *splitter) ([]string, error) {
	var lines []string
	for {
		c, err := s.next()
		switch {
		case c.line == nil && c.size > 0:
			lines = append(lines, fmt.Sprintf("over: %d", c.size))
		case err == nil && c.unterminated:
			lines = append(lines, "rest: "+string(c.line))
		case err == nil:
			lines = append(lines, string(c.line))
		}
		if err != nil {
			return lines, err
		}
		if c.line != nil && int64(len(c.line)) != c.size {
			return lines, fmt.Errorf("a line of %d bytes says %d", len(c.line), c.size)
		}
	}
}

func TestSplitter(t *testing.T) {
	const limit = 8
	for _, test := range []struct {
		name   string
		pieces []string
		err    error // of the body; nil: a clean end
		want   []string
	}{
		{name: "an empty body"},
		{name: "lines", pieces: []string{"a\nbc\n"}, want: []string{"a", "bc"}},
		{name: "empty lines", pieces: []string{"\n\na\n\n"}, want: []string{"", "", "a", ""}},
		{name: "CRLF belongs to the line", pieces: []string{"a\r\n\r\n"}, want: []string{"a\r", "\r"}},
		{name: "a line over reads", pieces: []string{"a", "b", "c\nd", "e\n"}, want: []string{"abc", "de"}},
		{name: "a line end of its own", pieces: []string{"ab", "\n", "\n", "c", "\n"}, want: []string{"ab", "", "c"}},
		{name: "the limit passes", pieces: []string{"12345678\n1234567\n"}, want: []string{"12345678", "1234567"}},
		{name: "one byte more does not", pieces: []string{"123456789\na\n"}, want: []string{"over: 9", "a"}},
		{name: "nor over reads", pieces: []string{"12345678", "9", "\na\n"}, want: []string{"over: 9", "a"}},
		{name: "the limit over reads", pieces: []string{"12345678", "\na\n"}, want: []string{"12345678", "a"}},
		{name: "over the limit, in a row", pieces: []string{"0123456789\n0123456789ab", "cd", "ef\n\nx\n"},
			want: []string{"over: 10", "over: 16", "", "x"}},
		{name: "a clean end inside a line", pieces: []string{"a\nbc"}, want: []string{"a", "rest: bc"}},
		{name: "a clean end inside a line, over reads", pieces: []string{"a\nb", "c"}, want: []string{"a", "rest: bc"}},
		{name: "a clean end at the limit", pieces: []string{"12345678"}, want: []string{"rest: 12345678"}},
		{name: "a clean end inside a line over the limit", pieces: []string{"0123456789"}, want: []string{"over: 10"}},
		{name: "the same, over reads", pieces: []string{"0123456789", "ab"}, want: []string{"over: 12"}},
		{name: "a cut between lines", pieces: []string{"a\n"}, err: errBody, want: []string{"a"}},
		{name: "a cut inside a line", pieces: []string{"a\nbc"}, err: errBody, want: []string{"a"}},
		{name: "a cut inside a line over the limit", pieces: []string{"a\n0123456789"}, err: errBody, want: []string{"a", "over: 10"}},
		{name: "lines that came with the cut count", pieces: []string{"a", "\nb\nc"}, err: errBody, want: []string{"a", "b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantErr := test.err
			if wantErr == nil {
				wantErr = io.EOF
			}
			whole := strings.Join(test.pieces, "")
			for how, r := range map[string]io.Reader{
				"in pieces":        &pieces{test.pieces, wantErr},
				"byte by byte":     iotest.OneByteReader(io.MultiReader(strings.NewReader(whole), iotest.ErrReader(wantErr))),
				"error with bytes": iotest.DataErrReader(io.MultiReader(strings.NewReader(whole), iotest.ErrReader(wantErr))),
			} {
				s := newSplitter(r, limit)
				got, err := split(s)
				if !errors.Is(err, wantErr) {
					t.Errorf("%s: ended with %v, want %v", how, err, wantErr)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", how, diff)
				}
				if c, err := s.next(); !errors.Is(err, wantErr) || c.line != nil || c.size != 0 {
					t.Errorf("%s: the end did not stay the end: %q, %v", how, c.line, err)
				}
			}
		})
	}
}

// endless is a line that does not end before it has n bytes.
type endless struct{ n int64 }

func (e *endless) Read(b []byte) (int, error) {
	if e.n <= 0 {
		return copy(b, "\nnext\n"), io.EOF
	}
	n := int(min(e.n, int64(len(b))))
	clear(b[:n]) // what it says does not matter
	e.n -= int64(n)
	return n, nil
}

func TestSplitterMemory(t *testing.T) {
	const limit = 1 << 20

	t.Run("a giant line is not kept", func(t *testing.T) {
		const size = 1 << 28
		s := newSplitter(&endless{size}, limit)
		got, err := split(s)
		if diff := cmp.Diff([]string{fmt.Sprintf("over: %d", size), "next"}, got); diff != "" || !errors.Is(err, io.EOF) {
			t.Errorf("err %v, (-want +got):\n%s", err, diff)
		}
		if most := limit + readSize; cap(s.buf) > most {
			t.Errorf("kept a buffer of %d bytes, want at most %d", cap(s.buf), most)
		}
	})

	t.Run("a large buffer is let go once it is empty", func(t *testing.T) {
		s := newSplitter(io.MultiReader(strings.NewReader(strings.Repeat("x", limit)+"\n"), &pieces{[]string{"a\n", "b\n"}, io.EOF}), limit)
		for i, want := range []int{limit, 1, 1} {
			if c, err := s.next(); err != nil || c.size != int64(want) {
				t.Fatalf("line %d: size %d, %v, want %d", i, c.size, err, want)
			}
		}
		if cap(s.buf) > keepSpace {
			t.Errorf("kept a buffer of %d bytes behind a large line, want at most %d", cap(s.buf), keepSpace)
		}
	})

	t.Run("short lines cost nothing", func(t *testing.T) {
		body := strings.Repeat(strings.Repeat("x", 100)+"\n", 2000)
		s := newSplitter(strings.NewReader(body), limit)
		if _, err := s.next(); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(1000, func() {
			if _, err := s.next(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations a line, want none", n)
		}
	})
}

// FuzzSplitter compares with bytes.Split, however the body is cut into reads.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a\nbc\n\r\n\nlonger than the limit\nrest"), uint16(1), uint64(1), 8)
	f.Add([]byte("12345678\n123456789\n"), uint16(1), uint64(2), 8)
	f.Add([]byte("0123456789\n"), uint16(9000), uint64(3), 10)
	f.Add([]byte("0123456789"), uint16(9000), uint64(4), 40_000)
	f.Fuzz(func(t *testing.T, body []byte, times uint16, seed uint64, limit int) {
		// Repeated, so that small inputs go over the size of a read.
		body = bytes.Repeat(body, min(int(times), 100_000/(1+len(body))))
		limit = 1 + int(uint(limit)%(1<<16))
		var want []string
		all := bytes.Split(body, []byte{'\n'})
		for i, line := range all {
			switch {
			case i == len(all)-1 && len(line) == 0: // behind the last line end
			case len(line) > limit:
				want = append(want, fmt.Sprintf("over: %d", len(line)))
			case i == len(all)-1:
				want = append(want, "rest: "+string(line))
			default:
				want = append(want, string(line))
			}
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		var list []string
		for rest := string(body); rest != ""; {
			n := 1 + rng.IntN(min(len(rest), 1+rng.IntN(2*readSize)))
			list, rest = append(list, rest[:n]), rest[n:]
		}
		s := newSplitter(&pieces{list, io.EOF}, limit)
		got, err := split(s)
		if !errors.Is(err, io.EOF) {
			t.Fatalf("ended with %v", err)
		}
		if !slices.Equal(want, got) {
			t.Errorf("seed %d, limit %d (-want +got):\n%s", seed, limit, cmp.Diff(want, got))
		}
		if most := limit + readSize; cap(s.buf) > most {
			t.Errorf("a buffer of %d bytes, want at most %d", cap(s.buf), most)
		}
	})
}
