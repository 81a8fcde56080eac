package rpc

import (
	"context"
	"sync"
	"time"

	"github.com/evegateway/evegateway/gateway/source"
)

// handoff passes steps from the goroutine that reads a session to the one that sends, in batches, bounded in number
// and bytes: memory does not depend on how slow the client is. A single line may exceed the bound in bytes, alone.
type handoff struct {
	mu    sync.Mutex
	steps []source.Step
	bytes int64
	done  bool
	err   error

	filled  chan struct{} // signalled when there is something to take
	drained chan struct{} // signalled when there is room again
}

const (
	maxHandoffSteps = 256
	maxHandoffBytes = 1 << 20
)

func newHandoff() *handoff {
	return &handoff{filled: make(chan struct{}, 1), drained: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put adds a step, waiting for room. busy is called once when the wait has lasted the given time. The error is the
// context's.
func (h *handoff) put(ctx context.Context, s source.Step, after time.Duration, busy func()) error {
	var size int64
	if s.Line != nil {
		const perRecord = 160 // what is kept of one besides its bytes
		size = s.Line.Size + perRecord*int64(len(s.Line.Records))
	}
	if h.tryPut(s, size) {
		return nil
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			busy()
		case <-h.drained:
			if h.tryPut(s, size) {
				return nil
			}
		}
	}
}

func (h *handoff) tryPut(s source.Step, size int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.steps) > 0 && (len(h.steps) >= maxHandoffSteps || h.bytes+size > maxHandoffBytes) {
		return false
	}
	h.steps = append(h.steps, s)
	h.bytes += size
	if len(h.steps) == 1 {
		signal(h.filled)
	}
	return true
}

// finish says that no step follows, and why.
func (h *handoff) finish(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done, h.err = true, err
	signal(h.filled)
}

// take returns all steps at hand, into the space of the batch taken before. With none, done tells whether any can
// follow, and err why not.
func (h *handoff) take(space []source.Step) (batch []source.Step, done bool, err error) {
	clear(space)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.steps) == 0 {
		return space[:0], h.done, h.err
	}
	batch, h.steps, h.bytes = h.steps, space[:0], 0
	signal(h.drained)
	return batch, false, nil
}
