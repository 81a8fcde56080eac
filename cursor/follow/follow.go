package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/evegateway/evegateway/cursor"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// Follower reads one session, in as many calls as it takes. Its methods may be called by several goroutines, but only
// one loop over Messages may run at a time.
type Follower struct {
	client  evev1.StreamServiceClient
	request *evev1.SubscribeRequest
	options options
	acks    acks
	looping atomic.Bool
}

// New makes a follower for what a request asks for. The request is copied. Its start, unless [WithStart] says otherwise,
// is where the first call starts.
func New(client evev1.StreamServiceClient, request *evev1.SubscribeRequest, opts ...Option) *Follower {
	f := &Follower{client: client, request: proto.CloneOf(request), options: defaults()}
	for _, opt := range opts {
		opt(&f.options)
	}
	if f.request == nil {
		f.request = &evev1.SubscribeRequest{}
	}
	if start := f.options.start; start != (cursor.Cursor{}) {
		f.request.Start = &evev1.SubscribeRequest_Cursor{Cursor: start.Proto()}
	}
	f.options.complete(f.request)
	f.acks.init(f.options.save)
	return f
}

// Messages is the loop over the messages of the session, each with a nil error; after an error, which comes with a nil
// message, there is none. The error is that of ctx when it has ended, an [*Error] when a call has failed for good, and
// otherwise the one of the save function.
//
// The loop's body runs between two receives. One that takes long holds the gateway back, never loses anything.
func (f *Follower) Messages(ctx context.Context) iter.Seq2[*evev1.SubscribeResponse, error] {
	return func(yield func(*evev1.SubscribeResponse, error) bool) {
		if !f.looping.CompareAndSwap(false, true) {
			yield(nil, errors.New("follow: another loop of this follower is running"))
			return
		}
		defer f.looping.Store(false)
		l := &loop{f: f, yield: yield, request: proto.CloneOf(f.request)}
		if c, ok := f.acks.last(); ok {
			l.resumeAt(c.Proto())
		}
		if err := l.run(ctx); err != nil && !errors.Is(err, errLeft) {
			yield(nil, err)
		}
	}
}

// errLeft: the loop's body has left it.
var errLeft = errors.New("left")

// loop is one loop over Messages.
type loop struct {
	f     *Follower
	yield func(*evev1.SubscribeResponse, error) bool
	// request is the next call's: it starts behind the last message handled.
	request *evev1.SubscribeRequest
	// at is the cursor of that message; begun: there was one.
	at    cursor.Cursor
	begun bool
	// gained: the present call has moved the cursor, or was open for long.
	gained bool
}

func (l *loop) resumeAt(c *evev1.Cursor) {
	l.request.Start = &evev1.SubscribeRequest_Cursor{Cursor: c}
}

// run calls until the reading is complete (nil), left (errLeft), or has failed for good.
func (l *loop) run(ctx context.Context) error {
	var row int         // failures in a row that gained nothing
	var since time.Time // the first of them
	for {
		l.gained = false
		err := l.call(ctx)
		failed, ok := errors.AsType[*Error](err)
		if !ok {
			return err
		}
		if err := ended(ctx); err != nil {
			return err
		}
		if v := verdictOf(failed); v == final || v == onceMore && !l.gained {
			return failed
		}
		if l.gained || since.IsZero() {
			row, since = 0, time.Now()
		}
		b := &l.f.options.backoff
		wait := b.wait(row, failed.RetryAfter, l.f.options.jitter)
		if b.GiveUp > 0 && time.Since(since)+wait > b.GiveUp {
			return failed
		}
		l.f.options.retrying(failed, wait)
		row++
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// call makes one call and yields its messages. Failures of the call are *Error.
func (l *loop) call(ctx context.Context) error {
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := l.f.client.Subscribe(call, l.request)
	if err != nil {
		return newError(err, nil)
	}
	// Opening a long session takes its time; the headers say that it is done.
	if _, err := stream.Header(); err == nil {
		defer func(opened time.Time) {
			l.gained = l.gained || time.Since(opened) > l.f.options.backoff.Max
		}(time.Now())
	}
	silence := time.AfterFunc(l.f.options.silence, func() { cancel(errSilent) })
	defer silence.Stop()
	for complete := false; ; {
		m, err := stream.Recv()
		silence.Stop()
		switch {
		case complete:
			return nil // however the call ended, the reading is complete
		case errors.Is(err, io.EOF):
			return newError(status.Error(codes.Internal, "the stream ended without an ENDED checkpoint"), nil)
		case err != nil && errors.Is(context.Cause(call), errSilent):
			return newError(status.Errorf(codes.Unavailable, "the gateway sent nothing for %v", l.f.options.silence), nil)
		case err != nil:
			return newError(err, stream.Trailer())
		}
		if err := l.message(ctx, m); err != nil {
			return err
		}
		// Received to the end, so that the gateway does not take it for a caller who left.
		complete = m.GetCheckpoint().GetReason() == evev1.CheckpointReason_CHECKPOINT_REASON_ENDED
		silence.Reset(l.f.options.silence)
	}
}

// errSilent ends a call in which nothing comes.
var errSilent = errors.New("silent")

// message has a message handled.
func (l *loop) message(ctx context.Context, m *evev1.SubscribeResponse) error {
	if err := ctx.Err(); err != nil {
		return err // what had been received before the end is not handled any more
	}
	at, moved, err := l.move(m)
	if err != nil {
		return newError(status.Errorf(codes.Internal, "the gateway broke the rules: %v", err), nil)
	}
	if !l.yield(m, nil) {
		return errLeft
	}
	l.resumeAt(m.GetCursor())
	l.at, l.begun = at, true
	l.gained = l.gained || moved
	if l.f.options.manual {
		return nil
	}
	// What was handled is saved even when ctx ended meanwhile.
	return l.f.acks.acknowledge(context.WithoutCancel(ctx), at)
}

// move reads the cursor of a message and checks it with the one before, so that no fault of a server makes a reader
// resume at a place that is not behind what it was given.
func (l *loop) move(m *evev1.SubscribeResponse) (to cursor.Cursor, moved bool, err error) {
	if to, err = cursor.FromProto(m.GetCursor()); err != nil {
		return to, false, err
	}
	from := l.at
	if !l.begun {
		start := l.request.GetCursor()
		if start == nil {
			return to, true, nil
		}
		// The program's own may leave names to the request, and is the gateway's to refuse.
		from = to
		from.StreamIndex, from.StreamEventIndex = start.GetStreamIndex(), start.GetStreamEventIndex()
	}
	order, err := to.Compare(from)
	if err == nil && order < 0 {
		err = fmt.Errorf("it went from %v back to %v", from, to)
	}
	return to, order > 0, err
}

// ended is the error of a context that has ended, or whose deadline is here: a gateway that was told of it may answer
// before the context does.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
