package follow

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/evegateway/evegateway/cursor"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// Ack acknowledges a message and with it all before it: the cursor behind it is saved. Acknowledging what is
// acknowledged already changes nothing, so messages that are done with out of order are acknowledged one by one only
// when those before them are. On error, of the save function, of ctx, or of a message of another session, nothing is
// acknowledged.
//
// Without [WithManualAck] there is no need for it, except to keep the message at which the loop is about to be left.
func (f *Follower) Ack(ctx context.Context, m *evev1.SubscribeResponse) error {
	c, err := cursor.FromProto(m.GetCursor())
	if err != nil {
		return fmt.Errorf("follow: acknowledging: %w", err)
	}
	return f.acks.acknowledge(ctx, c)
}

// Cursor is the one behind the last acknowledged message, or, before there is one, that of the start. It is zero when
// the start has no cursor either.
func (f *Follower) Cursor() cursor.Cursor {
	if c, ok := f.acks.last(); ok {
		return c
	}
	c, err := cursor.FromProto(f.request.GetCursor())
	if err != nil {
		return cursor.Cursor{} // none, or one that the gateway will refuse
	}
	return c
}

// acks is how far a follower has been acknowledged. It only moves forward.
type acks struct {
	save SaveFunc
	at   atomic.Pointer[cursor.Cursor] // nil: nothing yet
	turn chan struct{}                 // held while at is moved; a channel, so that waiting for it can end
}

func (a *acks) init(save SaveFunc) {
	a.save, a.turn = save, make(chan struct{}, 1)
}

func (a *acks) last() (cursor.Cursor, bool) {
	if c := a.at.Load(); c != nil {
		return *c, true
	}
	return cursor.Cursor{}, false
}

// acknowledge saves a cursor and remembers it, unless it stands before the last.
func (a *acks) acknowledge(ctx context.Context, c cursor.Cursor) error {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.turn }()
	if last, ok := a.last(); ok {
		order, err := c.Compare(last)
		if err != nil {
			return fmt.Errorf("follow: acknowledging: %w", err)
		}
		if order < 0 || c == last || order == 0 && last.SessionEnded {
			return nil
		}
	}
	if err := a.save(ctx, c); err != nil {
		return fmt.Errorf("follow: saving the cursor: %w", err)
	}
	a.at.Store(&c)
	return nil
}
