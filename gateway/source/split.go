package source

import (
	"bytes"
	"errors"
	"io"
)

// splitter cuts a response body into lines. A line is what stands between two '\n' bytes, exactly; its limit is
// exact too: limit bytes pass, limit+1 do not. Memory is bounded by the limit plus one read.
type splitter struct {
	r     io.Reader
	limit int
	buf   []byte // unread bytes are buf[start:]
	start int
	scan  int // buf[start:scan] holds no '\n'
	err   error
	// discarding: inside a line that is over the limit.
	discarding bool
}

// chunk is one step of a splitter.
type chunk struct {
	// line is the line without its '\n', valid until the next call; nil when it was over the limit.
	line []byte
	// size is the line's length in bytes.
	size int64
	// unterminated: the body ended cleanly inside the line.
	unterminated bool
}

const (
	readSize  = 32 << 10
	keepSpace = 256 << 10 // a buffer grown beyond this is let go once it is empty
)

func newSplitter(r io.Reader, limit int) *splitter {
	return &splitter{r: r, limit: limit}
}

// inside says whether a part of a line has been read and its end has not.
func (s *splitter) inside() bool { return s.discarding || s.start < len(s.buf) }

// next returns the next line. At a clean end of the body it returns what was left, if anything, as unterminated, and
// io.EOF after that. Any other error ends the body inside whatever was being read.
func (s *splitter) next() (chunk, error) {
	for {
		if i := bytes.IndexByte(s.buf[s.scan:], '\n'); i >= 0 {
			line := s.buf[s.start : s.scan+i]
			s.start, s.scan = s.scan+i+1, s.scan+i+1
			if len(line) > s.limit {
				return chunk{size: int64(len(line))}, nil
			}
			return chunk{line: line, size: int64(len(line))}, nil
		}
		s.scan = len(s.buf)
		if len(s.buf)-s.start > s.limit {
			return s.discard()
		}
		if s.err != nil {
			return s.finish()
		}
		s.fill()
	}
}

// finish hands out the rest of a body that has ended.
func (s *splitter) finish() (chunk, error) {
	rest := s.buf[s.start:]
	s.start, s.scan = len(s.buf), len(s.buf)
	if len(rest) > 0 && errors.Is(s.err, io.EOF) {
		return chunk{line: rest, size: int64(len(rest)), unterminated: true}, nil
	}
	return chunk{}, s.err
}

// discard reads to the end of a line that is over the limit, keeping nothing but its size.
func (s *splitter) discard() (chunk, error) {
	size := int64(len(s.buf) - s.start)
	s.discarding = true
	defer func() { s.discarding = false }()
	for {
		s.buf, s.start, s.scan = s.buf[:0], 0, 0
		if s.err != nil {
			return chunk{size: size, unterminated: true}, s.err
		}
		s.fill()
		if i := bytes.IndexByte(s.buf, '\n'); i >= 0 {
			s.start, s.scan = i+1, i+1
			return chunk{size: size + int64(i)}, nil
		}
		size += int64(len(s.buf))
	}
}

// fill makes one read behind the unread bytes.
func (s *splitter) fill() {
	if s.start > 0 {
		if s.start == len(s.buf) && cap(s.buf) > keepSpace {
			s.buf = nil
		} else {
			s.buf = s.buf[:copy(s.buf, s.buf[s.start:])]
		}
		s.start, s.scan = 0, len(s.buf)
	}
	if cap(s.buf)-len(s.buf) < readSize {
		grown := make([]byte, len(s.buf), max(len(s.buf)+readSize, min(2*cap(s.buf), s.limit+readSize)))
		copy(grown, s.buf)
		s.buf = grown
	}
	n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
	s.buf = s.buf[:len(s.buf)+n]
	s.err = err
}
