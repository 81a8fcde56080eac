package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"slices"
	"strconv"
	"time"
)

const (
	minVersion = 21
	maxVersion = 27
	noTail     = -2 // the response did not say
)

// conn is one response body of the stream route: it numbers the counted lines and keeps the transport records to
// itself (contract 2.5). A conn is read by one goroutine.
type conn struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	body    io.ReadCloser
	split   *splitter
	skim    *skimmer
	version uint32
	tail    int64 // header x-eve-stream-tail-index, or noTail
	num     int64 // number of the next counted line

	idle     time.Duration
	deadline time.Time // when set, silence or not: the next line must have begun by then
	linger   bool      // begun or not, nothing is waited for beyond the deadline
	timer    *time.Timer

	leased bool // a lease record was seen
	closed bool // stream.ended was seen
}

var (
	errIdle      = errors.New("nothing arrived for too long")
	errNoAnchor  = errors.New("the line before the position did not arrive")
	errReleased  = errors.New("released")
	errTruncated = errors.New("the body ended inside a line")
)

// event is one step of a body: a counted line, or a jump of the numbering.
type event struct {
	line *Line
	jump bool // num was raised by a position record
}

// newConn takes over a 200 answer. It fails when the answer is no stream, or one of an unknown version.
func newConn(ctx context.Context, cancel context.CancelCauseFunc, a *answer, cfg *Config, skim *skimmer, session string) (*conn, error) {
	h := a.header
	version := h.Get("X-Eve-Stream-Version")
	content := h.Get("Content-Type")
	if t, _, err := mime.ParseMediaType(content); (version == "" || content != "") && (err != nil || t != "application/x-ndjson") {
		return nil, nonsense("the answer is no stream: its content type is not application/x-ndjson")
	}
	if e := h.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, nonsense("the answer is encoded, although identity was asked for: a proxy rewrites it")
	}
	v, err := strconv.ParseUint(version, 10, 32)
	if err != nil || v < minVersion || v > maxVersion {
		shown := strconv.QuoteToASCII(truncate(version, 32))
		e := failf(VersionUnsupported, "the agent answers with stream version %s, want 21 to 27", shown)
		e.Meta = map[string]string{"stream_version": shown[1 : len(shown)-1]}
		return nil, e
	}
	if id := h.Get("X-Eve-Session-Id"); id != "" && id != session {
		return nil, nonsense("the answer is for another session")
	}
	c := &conn{ctx: ctx, cancel: cancel, body: a.body, skim: skim, version: uint32(v), tail: noTail, idle: cfg.Idle}
	if c.version < 27 {
		c.idle = cfg.LegacyIdle
	}
	if t := h.Get("X-Eve-Stream-Tail-Index"); t != "" {
		n, err := strconv.ParseInt(t, 10, 64)
		if err != nil || n < -1 || n > maxSafeInteger {
			return nil, nonsense("malformed tail index in the answer")
		}
		c.tail = n
	}
	c.split = newSplitter(c, cfg.MaxLineBytes)
	c.timer = time.AfterFunc(time.Hour, func() { cancel(errIdle) })
	c.timer.Stop()
	return c, nil
}

func truncate(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// Read reads the body under the idle deadline, which runs only while reading: a slow consumer is no silence.
func (c *conn) Read(p []byte) (int, error) {
	wait, expired := c.idle, errIdle
	if !c.deadline.IsZero() && (c.linger || !c.split.inside()) {
		wait, expired = max(1, time.Until(c.deadline)), errNoAnchor
	}
	c.timer.Reset(wait)
	n, err := c.body.Read(p)
	c.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(c.ctx); errors.Is(cause, errIdle) {
			err = expired // the timer's goroutine cannot know what was waited for
		} else if cause != nil {
			err = cause
		}
	}
	return n, err
}

// close gives the connection up; one that was read to its end goes back to the pool.
func (c *conn) close() {
	c.timer.Stop()
	c.cancel(errReleased)
	_ = c.body.Close()
}

// box holds a line and its only record in one allocation: most lines have one.
type box struct {
	Line
	one [1]Record
}

// next returns the next counted line or jump. io.EOF is a clean end of the body. A line over the limit that was cut, too,
// comes together with errTruncated.
func (c *conn) next() (event, error) {
	for {
		ch, err := c.split.next()
		if err != nil && ch.size == 0 {
			return event{}, err
		}
		if ch.line == nil && ch.size > 0 { // over the limit, perhaps cut as well
			l := c.tooLarge(ch.size)
			if err != nil {
				return event{line: l}, errTruncated
			}
			c.num++
			return event{line: l}, nil
		}
		if len(ch.line) == 0 {
			continue
		}
		b := &box{}
		b.Records = c.skim.records[:0]
		t := c.skim.skim(bytes.Clone(ch.line), c.version, &b.Line)
		if b.Records != nil {
			c.skim.records = b.Records[:0]
		}
		if ch.unterminated && t.transport == notTransport && b.Kind == Unreadable {
			// A cut line must not be counted: its other half comes with the next connection (contract 2.7).
			return event{}, errTruncated
		}
		switch t.transport {
		case notTransport:
			b.own()
			c.skim.letGo()
			b.Number, b.Version = uint64(c.num), c.version
			c.num++
			return event{line: &b.Line}, nil
		case position:
			if t.next > c.num {
				c.num = t.next
				return event{jump: true}, nil
			}
		case leaseEnded:
			c.leased = true
		case streamEnded:
			c.closed = true
		case blank, heartbeat, unknownTransport:
		}
	}
}

// own moves the records out of the skimmer's scratch space.
func (b *box) own() {
	if len(b.Records) == 1 {
		b.one[0] = b.Records[0]
		b.Records = b.one[:]
		return
	}
	b.Records = slices.Clone(b.Records)
}

func (c *conn) tooLarge(size int64) *Line {
	return &Line{Number: uint64(c.num), Version: c.version, Kind: Unreadable, Flaw: TooLarge, Size: size,
		Detail: "larger than the gateway reads"}
}
