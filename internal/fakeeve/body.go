package fakeeve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// body is a stream response while it is sent. Only interrupt may be called from another goroutine.
type body struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	ledger *ledger
	rec    *Request
	ctx    context.Context // done when the client goes or the body is cut from outside
	cancel context.CancelFunc
	cause  context.CancelCauseFunc
	fault  Fault

	version      int
	log          Log
	start, tail  int64
	bounded      bool
	honoursAhead bool
	lease        time.Duration // 0 or less: none
	heartbeat    time.Duration // 0 or less: none

	opened  time.Time
	last    time.Time // of the last output
	wire    *wire
	buf     *bufio.Writer // in front of wire
	lines   int64         // stored lines sent
	scratch []byte
	late    []lateLine
}

// bodyBuffer is how much is collected before it is sent, while there is more to send.
const bodyBuffer = 32 << 10

func newBody(x *exchange, fault Fault, version int) *body {
	ctx, cause := context.WithCancelCause(x.ctx)
	b := &body{
		w: x.w, rc: x.rc, ledger: &x.server.ledger, rec: x.rec, ctx: ctx, cause: cause, fault: fault, version: version,
		opened: time.Now(), last: time.Now(),
	}
	b.cancel = func() { cause(context.Canceled) }
	b.wire = &wire{body: b, cutAt: -1, stallAt: -1}
	if p := fault.CutAt; p != nil && p.line < 0 {
		b.wire.cutAt = p.offset
	}
	if p := fault.StallAt; p != nil && p.line < 0 {
		b.wire.stallAt = p.offset
	}
	b.buf = bufio.NewWriterSize(b.wire, bodyBuffer)
	return b
}

// cutError ends a body before its time.
type cutError struct{ how How }

func (e cutError) Error() string { return fmt.Sprintf("fakeeve: body cut (%d)", e.how) }

// interrupt cuts the body from outside, a write that is stuck included.
func (b *body) interrupt(how How) {
	b.cause(cutError{how})
	if how != Clean {
		_ = b.rc.SetWriteDeadline(time.Now())
	}
}

// gone is why the body cannot go on, nil when it can.
func (b *body) gone() error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	return nil
}

// check ends a body whose lease is over or that cannot go on.
func (b *body) check() error {
	if err := b.gone(); err != nil {
		return err
	}
	if b.lease <= 0 || time.Since(b.opened) < b.lease {
		return nil
	}
	record := leaseRecord
	if b.version < 27 {
		record = leaseRecord26
	}
	if err := b.control(record); err != nil {
		return err
	}
	return endError(EndLease)
}

// rest flushes and waits for a change of the log, at most for d, beating all the while. Waiting for ever, it also sends
// the late lines whose time has come.
func (b *body) rest(changed <-chan struct{}, d time.Duration) error {
	began := time.Now()
	for {
		if err := b.flush(); err != nil {
			return err
		}
		if err := b.check(); err != nil {
			return err
		}
		wait := Forever
		if d != Forever {
			wait = d - time.Since(began)
		}
		if b.lease > 0 {
			wait = min(wait, b.lease-time.Since(b.opened))
		}
		if b.heartbeat > 0 {
			wait = min(wait, b.heartbeat-time.Since(b.last))
		}
		if len(b.late) > 0 && d == Forever {
			wait = min(wait, lateAtMost-time.Since(b.late[0].since))
		}
		woken, err := b.wait(changed, wait)
		if err != nil || woken {
			return err
		}
		if err := b.check(); err != nil {
			return err
		}
		if d == Forever {
			if err := b.releaseLate(-1, false); err != nil {
				return err
			}
		}
		if b.heartbeat > 0 && time.Since(b.last) >= b.heartbeat {
			if err := b.beat(); err != nil {
				return err
			}
		}
		if d != Forever && time.Since(began) >= d {
			return nil
		}
	}
}

// wait tells whether changed came before d was over.
func (b *body) wait(changed <-chan struct{}, d time.Duration) (bool, error) {
	var due <-chan time.Time
	if d != Forever {
		t := time.NewTimer(d)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-changed:
		return true, nil
	case <-due:
		return false, nil
	case <-b.ctx.Done():
		return false, b.gone()
	}
}

// beat sends a heartbeat: what opens every body, and what fills its silences.
func (b *body) beat() error {
	if b.version < 27 {
		return b.control("")
	}
	return b.control(heartbeatRecord)
}

// control sends a line that does not count.
func (b *body) control(record string) error {
	if _, err := b.buf.WriteString(record); err != nil {
		return err
	}
	return b.lineEnd()
}

// line sends stored line i.
func (b *body) line(i int64, raw []byte) error {
	if b.fault.LineDelay > 0 {
		if err := b.rest(nil, b.fault.LineDelay); err != nil {
			return err
		}
	}
	if b.fault.Rewrite != nil {
		if raw = b.fault.Rewrite(i, raw); raw == nil {
			return nil
		}
	}
	b.mark(i)
	b.lines++
	if _, err := b.buf.Write(raw); err != nil {
		return err
	}
	return b.lineEnd()
}

func (b *body) lineEnd() error {
	end := "\n"
	if b.fault.CRLF {
		end = "\r\n"
	}
	_, err := b.buf.WriteString(end)
	return err
}

// mark finds the bytes of points that lie in line i, which comes next.
func (b *body) mark(i int64) {
	here := b.wire.sent + int64(b.buf.Buffered())
	if p := b.fault.CutAt; p != nil && p.line == i {
		b.wire.cutAt = here + p.offset
	}
	if p := b.fault.StallAt; p != nil && p.line == i && !b.wire.stalled {
		b.wire.stallAt = here + p.offset
	}
}

// flush sends all there is.
func (b *body) flush() error {
	if err := b.buf.Flush(); err != nil {
		return err
	}
	return b.wire.flush()
}

// wire is the last step before the connection: it counts, cuts and stalls.
type wire struct {
	body           *body
	sent           int64
	cutAt, stallAt int64 // -1: nowhere
	stalled        bool
}

var _ io.Writer = (*wire)(nil)

// Write sends p up to where the fault says, piece by piece.
func (w *wire) Write(p []byte) (int, error) {
	b := w.body
	written := 0
	for {
		if err := b.gone(); err != nil {
			return written, err
		}
		if err := w.at(); err != nil {
			return written, err
		}
		if len(p) == written {
			return written, nil
		}
		n := int64(len(p) - written)
		for _, stop := range []int64{w.cutAt, w.stallAt} {
			if stop > w.sent {
				n = min(n, stop-w.sent)
			}
		}
		if size := int64(b.fault.ChunkSize); size > 0 {
			n = min(n, size)
		}
		m, err := b.w.Write(p[written : written+int(n)])
		written += m
		w.sent += int64(m)
		b.last = time.Now()
		b.ledger.note(b.rec, func(rec *Request) { rec.Bytes, rec.Lines = w.sent, b.lines })
		if err != nil {
			return written, w.broken(err)
		}
		if b.fault.ChunkSize > 0 {
			if err := w.flush(); err != nil {
				return written, err
			}
		}
	}
}

// at does what is due at the byte reached.
func (w *wire) at() error {
	b := w.body
	if w.sent == w.stallAt && !w.stalled {
		w.stalled = true
		if err := w.flush(); err != nil {
			return err
		}
		if !pause(b.ctx, b.fault.Stall) {
			return b.gone()
		}
	}
	if w.sent == w.cutAt {
		if err := w.flush(); err != nil {
			return err
		}
		return cutError{b.fault.Cut}
	}
	return nil
}

// flush sends what net/http still holds.
func (w *wire) flush() error {
	if err := w.body.rc.Flush(); err != nil {
		return w.broken(err)
	}
	return nil
}

// broken is the error of a failed write: the cut from outside that made it fail, or the client's.
func (w *wire) broken(err error) error {
	if gone := w.body.gone(); gone != nil {
		return gone
	}
	return fmt.Errorf("fakeeve: sending the body: %w", err)
}
