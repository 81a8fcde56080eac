package source

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"
)

// Request says what to read.
type Request struct {
	// Session to read; must be a ValidID.
	Session string
	// Via is the route to a child session. Nil: the session's own.
	Via *Via
	// Start is the absolute start. Ignored when Relative.
	Start Place
	// Relative starts Last lines before the tail of the open; 0 is behind it.
	Relative bool
	Last     uint32
	// Bounded ends the read at the tail of the first open, pinned over all later connections (contract 2.5).
	Bounded bool
	// SkipOversize yields a line over the limit as unreadable; else it ends the read with LineTooLarge.
	SkipOversize bool
}

// Place is an absolute position as a resumed reader knows it.
type Place struct {
	// Line is the number of the next line.
	Line uint64
	// Begun: part of Line has been consumed, and Anchor is its identity; else Anchor is that of Line-1.
	Begun bool
	// Anchor is the identity to verify; empty when unknown.
	Anchor string
	// Version is the stream version under which the position was reached; 0 when nothing was read.
	Version uint32
}

// Reader is one read of one session: it goes on over leases, cuts and retries until the session ends, the bound is
// reached, the context ends, or nothing helps any more. One goroutine uses it.
//
// Invariants: every line below next was yielded or reported skipped; trail.last, when known, is the identity of line
// next-1 (of line next while begun); a body is open only between Next calls that follow each other closely
// (see Release).
type Reader struct {
	c    *Client
	ctx  context.Context
	req  Request
	skim *skimmer

	conn    *conn
	bounded bool // the open body ends at conn.tail

	next    uint64
	begun   bool
	trail   trail
	overlap *overlap // up to version 26, until the connection is reconciled with the trail
	held    *Line    // up to version 26, the session's end until the connection has nothing else
	before  Before
	version uint32
	tail    int64 // of the first open

	positioned bool
	caughtUp   bool
	lingering  bool // a bounded read is past its bound and reads on to the body's end
	ended      bool
	err        error // what Next answers once ended and nothing is due
	stranded   bool  // following is refused: what is left of the history comes bounded
	drained    bool  // nothing was left when the history was last read bounded, and nothing was followed since
	tailFirst  bool  // the next open must look at the tail

	failures    int // bodies in a row that ended badly without a counted line
	emptyLeases int // leases in a row that ended at once with nothing
	opened      time.Time
	unmatchedAt time.Time // since when the stored stream lacks events that were consumed
	safeAt      uint64    // position known not to be beyond the tail although its line before is unknown

	queue []Step // what is due; head is the first
	head  int
}

const (
	anchorWait = 5 * time.Second // for the line before the position, which is stored and comes first
	linger     = time.Second     // for the end of a bounded body after its last line
	lateWait   = linger / 4      // for what comes late behind the session's end, up to version 26
)

// Read opens a read: tail first, so that an unknown session, an unsupported version and a position beyond the tail
// fail here (api.md section 2; contract O3). It is retried as contract 1.12 says. The reader lives until ctx ends or
// Close is called.
func (c *Client) Read(ctx context.Context, req Request) (*Reader, error) {
	r := &Reader{c: c, ctx: ctx, req: req, skim: newSkimmer(), positioned: !req.Relative,
		next: req.Start.Line, begun: req.Start.Begun, trail: parseTrail(req.Start.Anchor), version: req.Start.Version}
	if req.Relative {
		r.next, r.begun, r.trail, r.version = 0, false, trail{}, 0
	}
	if err := r.openTail(true); err != nil {
		return nil, err
	}
	return r, nil
}

// Version is the stream version of the last connection.
func (r *Reader) Version() uint32 { return r.version }

// Tail is the last line that existed when the read opened; -1 when there was none.
func (r *Reader) Tail() int64 { return r.tail }

// Release gives the open body up while the consumer is busy: a held body is a held invocation upstream. The next
// call of Next opens another one at the same position.
func (r *Reader) Release() {
	if r.conn != nil {
		r.conn.close()
		r.conn = nil
	}
}

// Close ends the read.
func (r *Reader) Close() {
	r.Release()
	r.ended, r.err = true, io.EOF
	r.queue, r.head = nil, 0
}

// Next returns the next step; io.EOF after StepEnded. Any other error is final and of type *Error, or the context's.
func (r *Reader) Next() (Step, error) {
	for {
		if r.head < len(r.queue) {
			s := r.queue[r.head]
			r.queue[r.head] = Step{}
			if r.head++; r.head == len(r.queue) {
				r.queue, r.head = r.queue[:0], 0
			}
			return s, nil
		}
		if r.ended {
			return Step{}, r.err
		}
		if err := r.advance(); err != nil {
			r.fail(err)
		}
	}
}

// advance does one thing towards the next step.
func (r *Reader) advance() error {
	if r.conn == nil {
		if r.held != nil {
			return r.reread()
		}
		return r.reopen()
	}
	ev, err := r.conn.next()
	switch {
	case err != nil:
		return r.bodyEnded(ev, err)
	case ev.jump:
		r.jumped()
		return nil
	}
	return r.counted(ev.line)
}

// fail makes err the end of the read, behind what is due.
func (r *Reader) fail(err error) {
	r.Release()
	r.ended, r.err = true, err
}

// counted takes in a counted line and queues what it means.
func (r *Reader) counted(l *Line) error {
	if r.lingering { // the server does not end the body at the tail: the bound does
		r.end(BoundReached)
		return nil
	}
	if r.overlap != nil {
		return r.reconcile(l)
	}
	if r.held == nil {
		r.conn.deadline = time.Time{}
	}
	if l.Number < r.next {
		if l.Number+1 < r.next {
			return nil // re-read for an overlap that this version does not need
		}
		return r.verify(l)
	}
	if r.begun {
		if err := r.match(l); err != nil {
			return r.doubt(err)
		}
		r.begun = false
	}
	return r.accept(l)
}

// accept takes in a line that was not consumed before. Up to version 26 a live stream can deliver the session's end
// before events that are stored before it (contract O4): what still comes on the connection is handed out first.
func (r *Reader) accept(l *Line) error {
	switch {
	case r.held != nil && l.Terminal:
		return nil
	case r.held != nil:
		l.Number = r.next
	case l.Terminal && r.conn.version < 27 && int64(l.Number) > r.conn.tail:
		r.held = l
		r.conn.deadline, r.conn.linger = time.Now().Add(lateWait), true
		return nil
	}
	return r.consume(l)
}

// reread looks for what the session's end has overtaken, in the stored order: no silence on a live connection tells that
// nothing is late. The end itself is not given up for that: history can vanish right behind it (contract O14).
func (r *Reader) reread() error {
	end := r.held
	r.held, r.tailFirst = nil, true
	r.failures++
	err := r.reopen()
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Reason {
	case Expired, NotFound, Unavailable:
		r.held = end
		return r.takeEnd()
	default:
		return err
	}
}

// takeEnd consumes the session's end that was held back.
func (r *Reader) takeEnd() error {
	l := r.held
	r.held, l.Number = nil, r.next
	return r.consume(l)
}

// consume queues a line that was not consumed before.
func (r *Reader) consume(l *Line) error {
	if l.Flaw == TooLarge && !r.req.SkipOversize {
		return tooLarge(l, r.c.cfg.MaxLineBytes)
	}
	r.trail.add(l.Identity, l.Version < 27 || l.Kind == Event)
	l.Place, l.Anchor = r.next, r.trail.anchor()
	r.next++
	r.failures, r.emptyLeases = 0, 0
	r.queue = append(r.queue, Step{Kind: StepLine, Line: l, Next: r.next})
	r.arrived()
	if l.Terminal {
		r.end(SessionEnded)
	}
	return nil
}

// reconcile takes in a line while the connection is compared with the trail.
func (r *Reader) reconcile(l *Line) error {
	done, err := r.overlap.take(l)
	if err != nil {
		return r.doubt(err)
	}
	if !done {
		r.conn.deadline = time.Now().Add(anchorWait) // for the next of them
		return nil
	}
	o := r.overlap
	r.overlap, r.conn.deadline, r.unmatchedAt = nil, time.Time{}, time.Time{}
	for _, l := range o.late {
		if err := r.consume(l); err != nil || r.ended {
			return err
		}
	}
	for _, l := range o.fresh {
		if r.lingering { // behind the bound
			break
		}
		if err := r.accept(l); err != nil || r.ended {
			return err
		}
	}
	r.arrived()
	if o.ended {
		r.end(SessionEnded)
	}
	return nil
}

// verify takes in the line before the position, which every connection re-reads.
func (r *Reader) verify(l *Line) error {
	if !r.begun {
		if err := r.match(l); err != nil {
			return r.doubt(err)
		}
		r.trail.last = l.Identity
		r.before = Before{Identity: l.Identity, At: l.At, Terminal: l.Terminal}
	}
	r.arrived()
	if l.Terminal {
		r.end(SessionEnded)
	}
	return nil
}

func (r *Reader) match(l *Line) error {
	if r.trail.last == "" || l.Identity == "" || l.Identity == r.trail.last {
		return nil
	}
	e := failf(Diverged, "line %d is not the one that was read: the history behind the position has changed", l.Number)
	e.Meta = map[string]string{"line": strconv.FormatUint(l.Number, 10)}
	return e
}

// doubt decides what a line that is not the expected one means. A live server whose storage lags sends from its tail
// on, whatever it was asked for (contract O3): only a body whose tail was checked can tell that the history is another.
func (r *Reader) doubt(diverged error) error {
	if r.bounded {
		return diverged
	}
	r.Release()
	r.tailFirst = true
	r.failures++
	return nil
}

func tooLarge(l *Line, limit int) error {
	e := failf(LineTooLarge, "line %d has %d bytes, the limit is %d", l.Number, l.Size, limit)
	e.Meta = map[string]string{
		"line": strconv.FormatUint(l.Number, 10), "size": strconv.FormatInt(l.Size, 10), "limit": strconv.Itoa(limit),
	}
	return e
}

// jumped takes in a position record that raised the numbering: reported coverage.
func (r *Reader) jumped() {
	to := uint64(r.conn.num)
	r.overlap = nil // part of it was skipped: the rest cannot be reconciled
	if !r.lingering {
		r.conn.deadline = time.Time{}
	}
	if to < r.next {
		return
	}
	r.arrived() // the line before the position was skipped: go on, unverified
	if to == r.next {
		return
	}
	r.queue = append(r.queue, Step{Kind: StepSkipped, From: r.next, Next: to, Version: r.conn.version})
	r.next, r.begun, r.trail, r.failures = to, false, trail{}, 0
	r.arrived()
}

// arrived queues what is due once the line before the position has been passed.
func (r *Reader) arrived() {
	if !r.positioned {
		r.positioned = true
		r.queue = append(r.queue, Step{Kind: StepPositioned, Next: r.next, Version: r.version, Before: r.before})
	}
	if r.caughtUp || int64(r.next) <= r.tail {
		return
	}
	r.caughtUp = true
	r.queue = append(r.queue, Step{Kind: StepCaughtUp, Next: r.next, Tail: r.tail})
	if r.req.Bounded {
		// Read on to the body's end: coverage reported behind the last line counts, and the connection can be reused.
		r.lingering = true
		if r.conn != nil {
			r.conn.deadline, r.conn.linger = time.Now().Add(linger), true
		}
	}
}

func (r *Reader) end(why End) {
	if r.ended {
		return
	}
	r.queue = append(r.queue, Step{Kind: StepEnded, Next: r.next, End: why})
	r.ended, r.err = true, io.EOF
	r.Release()
}

// bodyEnded decides what the end of a body means (contract 2.7).
func (r *Reader) bodyEnded(ev event, err error) error {
	c := r.conn
	r.Release()
	if ctxErr := r.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if r.held != nil {
		return nil
	}
	if r.lingering {
		r.end(BoundReached)
		return nil
	}
	if ev.line != nil && ev.line.Number >= r.next && !r.req.SkipOversize { // too large, and cut: no retry makes it smaller
		return tooLarge(ev.line, r.c.cfg.MaxLineBytes)
	}
	clean := errors.Is(err, io.EOF)
	reached := uint64(c.num) >= r.next && r.overlap == nil // the line before the position was passed
	switch {
	case (clean || errors.Is(err, errNoAnchor)) && r.bounded && r.overlap != nil && c.num > c.tail: // it need not end there
		return r.unmatched()
	case clean && c.closed && (reached || r.trail.last == "") && (r.caughtUp || r.trail.last == ""):
		// Nothing will ever follow. A position that only a jump reached has no line before it to wait for.
		r.end(StreamClosed)
		return nil
	case clean && c.leased:
		if time.Since(r.opened) >= time.Second {
			r.failures, r.emptyLeases = 0, 0
		} else if r.emptyLeases++; r.emptyLeases > 3 {
			r.failures++ // leases that end at once with nothing in them, again and again, are a fault
		}
		return nil
	case clean && r.bounded && reached && int64(r.next) > c.tail && !r.req.Bounded: // a pinned tail is still to come
		r.safeAt = r.next
		r.drained, r.stranded = true, false
		return nil
	}
	r.tailFirst = r.tailFirst || errors.Is(err, errNoAnchor) || (clean && (c.closed || r.overlap != nil))
	r.failures++
	if (r.req.Bounded || c.closed) && r.failures >= r.c.cfg.OpenAttempts {
		return &Error{Reason: Unavailable, Message: "the agent keeps ending the stream before its tail",
			RetryAfter: r.c.cfg.BackoffCap, Err: unexpected(err)}
	}
	return nil
}

// unexpected is err, but for io.EOF, which says of a read that it is complete: the end of a body or of a connection
// must not be taken for it.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// unmatched: the stored stream ended before all remembered events were found. Storage may lag, so it is asked again
// for a while.
func (r *Reader) unmatched() error {
	if r.unmatchedAt.IsZero() {
		r.unmatchedAt = time.Now()
	} else if time.Since(r.unmatchedAt) >= r.c.cfg.Settle {
		return r.overlap.diverged()
	}
	r.tailFirst = true
	r.failures++
	return nil
}
