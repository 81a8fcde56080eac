package source

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// reopen opens the next body of a read.
func (r *Reader) reopen() error {
	if r.failures > 0 {
		if err := sleep(r.ctx, r.c.backoff(r.failures-1)); err != nil {
			return err
		}
	}
	// A position whose line before is unknown must not be followed before it is known to exist (contract O3).
	unknown := r.next > 0 && r.trail.last == "" && r.safeAt != r.next
	if r.req.Bounded || r.stranded || r.tailFirst || unknown {
		return r.openTail(false)
	}
	return r.openLive()
}

// openLive opens a following body.
func (r *Reader) openLive() error {
	c, err := r.connect(false)
	var e *Error
	if errors.As(err, &e) && e.Reason == Stranded && !r.drained {
		r.stranded = true // history first, then the error
		return r.openTail(false)
	}
	if err != nil {
		return err
	}
	r.drained = false
	return r.adopt(c, false)
}

// openTail opens a bounded body and checks the position against the tail it reports, asking again for a while when
// the position lies beyond: storage may lag. The first open pins the tail.
func (r *Reader) openTail(first bool) error {
	var since time.Time
	for {
		c, err := r.connect(true)
		if err != nil {
			return err
		}
		if first && r.req.Relative {
			r.next = uint64(max(0, c.tail+1-int64(r.req.Last)))
		}
		need := int64(r.next) - 1 // the last line that must exist
		if r.begun {
			need++
		}
		if c.tail >= need {
			if first {
				r.tail = c.tail
			}
			r.tailFirst = false
			return r.adopt(c, true)
		}
		if r.trail.last == "" {
			// The server itself named this position, or names it again now: what it says of it counts.
			closed := saysClosed(c)
			if named := c.num >= int64(r.next); closed && (named || !first) {
				r.end(StreamClosed)
				return nil
			}
		}
		c.close()
		if since.IsZero() {
			since = time.Now()
		}
		left := r.c.cfg.Settle - time.Since(since)
		if left <= 0 {
			return ahead(need, c.tail)
		}
		if err := sleep(r.ctx, min(left, r.c.cfg.BackoffBase)); err != nil {
			return err
		}
	}
}

// saysClosed reads a body that has nothing for the reader to its end and says whether the stored stream is closed. A
// bounded body need not tell, and most servers' do not; one that does not end is not waited for.
func saysClosed(c *conn) bool {
	c.deadline, c.linger = time.Now().Add(linger), true
	for {
		if _, err := c.next(); err != nil {
			return errors.Is(err, io.EOF) && c.closed
		}
	}
}

func ahead(need, tail int64) error {
	e := failf(Ahead, "the position needs line %d, the session's last line is %d", need, tail)
	if tail < 0 {
		e = failf(Expired, "the session has no history any more")
	}
	e.Meta = map[string]string{"line": strconv.FormatInt(need, 10), "tail": strconv.FormatInt(tail, 10)}
	return e
}

// adopt makes an open body the one to read.
func (r *Reader) adopt(c *conn, bounded bool) error {
	if r.version != 0 && r.positioned && (r.version == 27) != (c.version == 27) {
		if r.begun {
			c.close()
			e := failf(VersionInsideLine, "the stream version changed from %d to %d inside line %d", r.version, c.version, r.next)
			e.Meta = map[string]string{"stream_version": strconv.FormatUint(uint64(c.version), 10)}
			return e
		}
		r.queue = append(r.queue, Step{Kind: StepVersionChanged, Next: r.next, Version: c.version})
	}
	r.version, r.conn, r.bounded, r.opened, r.overlap = c.version, c, bounded, time.Now(), nil
	if !r.begun && (c.version < 27 || len(r.trail.earlier) > 0) {
		r.overlap = overlapFor(&r.trail, r.next)
	}
	if uint64(c.num) < r.next {
		c.deadline = time.Now().Add(anchorWait)
	} else {
		r.arrived()
	}
	return nil
}

// startIndex is where the next connection starts: every one at a line > 0 re-reads the line before it, and as many more
// as are remembered from versions up to 26, whatever version is expected to answer.
func (r *Reader) startIndex() int64 {
	switch {
	case !r.positioned && r.conn == nil && r.version == 0:
		return -int64(r.req.Last) - 1
	case r.next > 0:
		return int64(r.next) - int64(overlapSize(&r.trail, r.next))
	}
	return 0
}

// connect opens a body, retrying what can help (contract 1.12).
func (r *Reader) connect(bounded bool) (*conn, error) {
	var missing time.Time
	refresh := false
	for attempt := 0; ; attempt++ {
		c, err := r.attempt(bounded, refresh)
		if err == nil {
			return c, nil
		}
		if ctxErr := r.ctx.Err(); ctxErr != nil {
			return nil, ctxErr
		}
		wait := r.c.backoff(attempt)
		var e *Error
		if !errors.As(err, &e) {
			e = &Error{Reason: Unavailable, Message: "the agent cannot be reached or answers nonsense", Err: unexpected(err), Cause: safeCause(err)}
		}
		switch e.Reason {
		case NotFound: // a session created a moment ago may not be readable yet
			if missing.IsZero() {
				missing = time.Now()
			}
			left := r.c.cfg.Settle - time.Since(missing)
			if left <= 0 {
				return nil, e
			}
			wait = min(wait, left)
		case Refused:
			if refresh || e.Err != nil {
				return nil, e
			}
			refresh, wait = true, 0
		case Overloaded:
			wait = max(wait, e.RetryAfter)
		case Unavailable, Conflict:
		default:
			return nil, e
		}
		if attempt+1 >= r.c.cfg.OpenAttempts || (e.Reason == Overloaded && wait > r.c.maxRetryAfter()) {
			if e.Reason != Conflict {
				e.RetryAfter = max(e.RetryAfter, r.c.cfg.BackoffCap)
			}
			return nil, e
		}
		if err := sleep(r.ctx, wait); err != nil {
			return nil, err
		}
	}
}

var errOpenTimeout = errors.New("no response headers in time")

// attempt makes one HTTP attempt.
func (r *Reader) attempt(bounded, refresh bool) (*conn, error) {
	start := r.startIndex()
	ctx, cancel := context.WithCancelCause(r.ctx)
	timer := time.AfterFunc(r.c.cfg.OpenTimeout, func() { cancel(errOpenTimeout) })
	target := r.c.endpoint.stream(r.req.Session, r.req.Via, streamParams(start, bounded))
	a, err := r.c.get(ctx, target, refresh)
	timer.Stop()
	if err == nil {
		err = a.failure()
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errOpenTimeout) {
			err = cause
		}
		cancel(errReleased)
		return nil, err
	}
	c, err := newConn(ctx, cancel, a, &r.c.cfg, r.skim, r.req.Session)
	if err == nil && bounded && c.tail == noTail {
		err = nonsense("the answer to a bounded read has no tail index")
	}
	if err != nil {
		cancel(errReleased)
		_ = a.body.Close()
		return nil, err
	}
	c.num = start
	if start < 0 {
		c.num = max(0, c.tail+1+start)
	}
	return c, nil
}

// failure maps a status that is no stream (contract 1.9, 7.2).
func (a *answer) failure() error {
	if a.status == http.StatusOK {
		return nil
	}
	var e *Error
	switch a.status {
	case http.StatusBadRequest:
		e = failf(Rejected, "the agent rejects the request")
	case http.StatusUnauthorized, http.StatusForbidden:
		e = failf(Refused, "the agent refuses the gateway's credentials")
	case http.StatusNotFound:
		e = failf(NotFound, "no such session")
	case http.StatusConflict:
		if a.code == "session_stranded" {
			e = failf(Stranded, "the session is stranded: its history can be read, but not followed")
		} else {
			e = failf(Conflict, "the agent reports a conflict")
		}
	case http.StatusGone:
		e = failf(Expired, "the session's history has expired")
	case http.StatusTooManyRequests:
		e = failf(Overloaded, "the agent asks to slow down")
		e.RetryAfter = a.retryAfter
	default:
		e = failf(Unavailable, "the agent answers with status %d", a.status)
		e.RetryAfter = a.retryAfter
	}
	e.Meta = map[string]string{"status": strconv.Itoa(a.status)}
	if codePattern.MatchString(a.code) {
		e.Meta["code"] = a.code
	}
	if codePattern.MatchString(a.eveVersion) {
		e.Meta["eve_version"] = a.eveVersion
	}
	return e
}

// backoff is the wait after the n-th failure in a row, from 0: doubling, capped, the upper half of it jitter.
func (c *Client) backoff(n int) time.Duration {
	d := c.cfg.BackoffCap
	if n < 16 {
		d = min(d, c.cfg.BackoffBase<<n)
	}
	return d/2 + time.Duration(c.cfg.Rand()*float64(d/2))
}

// maxRetryAfter is the longest wait an agent can ask for before the caller is told instead.
func (c *Client) maxRetryAfter() time.Duration { return 6 * c.cfg.BackoffCap }

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
