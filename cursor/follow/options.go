package follow

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/evegateway/evegateway/cursor"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// Option changes how a [Follower] reads.
type Option func(*options)

type options struct {
	start    cursor.Cursor
	save     SaveFunc
	manual   bool
	backoff  Backoff
	silence  time.Duration
	jitter   func(int64) int64
	retrying func(*Error, time.Duration)
}

// SaveFunc saves a cursor, in place of the one before. It is called by one goroutine at a time, once for each cursor
// that differs from the last, so for nearly every message: one that is expensive may drop what comes too soon after the
// last, at the price of being given more again. Its error ends the loop, or is that of [Follower.Ack].
//
// The context has the values of the loop's, but not its end: the last message before a program stops is saved, too.
// With Ack it is that of the call.
type SaveFunc func(ctx context.Context, c cursor.Cursor) error

// WithStart starts behind what a cursor has consumed, whatever the start of the request. The zero cursor changes
// nothing, so that what a store gives for "nothing saved yet" can be passed as it is.
func WithStart(c cursor.Cursor) Option {
	return func(o *options) { o.start = c }
}

// WithSave saves the cursor behind each acknowledged message.
func WithSave(save SaveFunc) Option {
	return func(o *options) { o.save = save }
}

// WithManualAck acknowledges nothing by itself: the program calls [Follower.Ack]. For programs whose loop hands
// messages on, and that know later, and elsewhere, when one is done with.
func WithManualAck() Option {
	return func(o *options) { o.manual = true }
}

// WithBackoff sets how long to wait between calls that gain nothing.
func WithBackoff(b Backoff) Option {
	return func(o *options) { o.backoff = b }
}

// WithSilence sets how long an open call may send nothing before it counts as broken. It must be longer than the
// heartbeat interval that the gateway makes of the one in the request. Default: three of the request's, but at least
// 90 s, since gateways send a heartbeat every minute at least.
func WithSilence(d time.Duration) Option {
	return func(o *options) { o.silence = d }
}

// WithRand takes the random part of waits from r, which only the loop may use meanwhile. Default: the shared source of
// math/rand/v2.
func WithRand(r *rand.Rand) Option {
	return func(o *options) { o.jitter = r.Int64N }
}

// WithRetryNotice has f told why a call failed and how long it will be until the next.
func WithRetryNotice(f func(failed *Error, wait time.Duration)) Option {
	return func(o *options) { o.retrying = f }
}

func defaults() options {
	return options{
		save:     func(context.Context, cursor.Cursor) error { return nil },
		jitter:   rand.Int64N,
		retrying: func(*Error, time.Duration) {},
	}
}

// leastSilence is longer than the longest heartbeat interval of a gateway with default settings, 60 s.
const leastSilence = 90 * time.Second

// complete fills in what depends on other options and on the request.
func (o *options) complete(request *evev1.SubscribeRequest) {
	o.backoff.complete()
	if o.silence <= 0 {
		o.silence = max(leastSilence, 3*min(request.GetHeartbeatInterval().AsDuration(), time.Hour))
	}
}
