package follow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evegateway/evegateway/cursor"
	"github.com/evegateway/evegateway/cursor/follow"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// store is where a program saves its cursor.
type store struct {
	saved []string // places, "+" behind one with the session's end
	fail  error
	delay time.Duration
	// contexts that had ended when they came.
	ended int
	busy  bool
	races int
}

func (s *store) save(ctx context.Context, c cursor.Cursor) error {
	if s.busy {
		s.races++
	}
	s.busy = true
	defer func() { s.busy = false }()
	if ctx.Err() != nil {
		s.ended++
	}
	time.Sleep(s.delay)
	if s.fail != nil {
		return s.fail
	}
	p := place(c.Proto())
	if c.SessionEnded {
		p += "+"
	}
	s.saved = append(s.saved, p)
	return nil
}

func (s *store) String() string { return strings.Join(s.saved, " ") }

// TestSave: each message is saved when the loop asks for the next, once for each position, over calls.
func TestSave(t *testing.T) {
	t.Parallel()
	stub := &stub{calls: []func(serverStream) error{
		sends(status.Error(codes.Unavailable, "gone"), fact(0, 1), fact(1, 0), beat(1), beat(1)),
		sends(nil, beat(1), fact(2, 0), end(2)),
	}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		var s store
		var in []string // what was saved when a message was given
		for m, err := range follow.New(client, request(), follow.WithSave(s.save)).Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			in = append(in, fmt.Sprintf("%s:%v", place(m.GetCursor()), s.saved))
		}
		if want := "0.1 1.0 2.0 2.0+"; s.String() != want {
			t.Errorf("saved %q, want %q", s.String(), want)
		}
		want := "0.1:[] 1.0:[0.1] 1.0:[0.1 1.0] 1.0:[0.1 1.0] 1.0:[0.1 1.0] 2.0:[0.1 1.0] 2.0:[0.1 1.0 2.0]"
		if got := strings.Join(in, " "); got != want {
			t.Errorf("while handling\n%s, want\n%s", got, want)
		}
	})
}

// TestSaveLeft: a message at which the loop is left is not acknowledged, except by the program; the next loop begins
// there.
func TestSaveLeft(t *testing.T) {
	t.Parallel()
	for _, ack := range []bool{false, true} {
		stub := &stub{calls: []func(serverStream) error{
			sends(nil, fact(1, 0), fact(2, 0), fact(3, 0), end(3)),
			sends(nil, fact(3, 0), end(3)),
		}}
		stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
			var s store
			f := follow.New(client, request(), follow.WithSave(s.save))
			for m, err := range f.Messages(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if place(m.GetCursor()) == "2.0" {
					if ack {
						if err := f.Ack(t.Context(), m); err != nil {
							t.Error(err)
						}
					}
					break
				}
			}
			saved, start := "1.0", "1.0"
			if ack {
				saved, start = "1.0 2.0", "2.0"
			}
			if s.String() != saved || place(f.Cursor().Proto()) != start {
				t.Errorf("saved %q, want %q", s.String(), saved)
			}
			for _, err := range f.Messages(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(stub.starts, ", "); got != "tail, "+start {
				t.Errorf("calls began at %q", got)
			}
			if want := saved + " 3.0 3.0+"; s.String() != want {
				t.Errorf("saved %q, want %q", s.String(), want)
			}
		})
	}
}

// TestSaveFails: the loop ends with the error, and what was not saved is not acknowledged.
func TestSaveFails(t *testing.T) {
	t.Parallel()
	stub := &stub{calls: []func(serverStream) error{sends(nil, fact(1, 0), fact(2, 0), end(2))}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		var s store
		full := errors.New("disk full")
		f := follow.New(client, request(), follow.WithSave(s.save))
		var failed error
		for m, err := range f.Messages(t.Context()) {
			if failed != nil {
				t.Errorf("goes on after %v", failed)
			}
			if failed = err; m != nil && place(m.GetCursor()) == "2.0" {
				s.fail = full
			}
		}
		if !errors.Is(failed, full) || f.Cursor() != at(1, 0) || s.String() != "1.0" {
			t.Errorf("%v, at %v, saved %q", failed, f.Cursor(), s.String())
		}
	})
}

// TestSaveAtTheEnd: what was handled when the program was told to stop is saved with a context that lives.
func TestSaveAtTheEnd(t *testing.T) {
	t.Parallel()
	stub := &stub{calls: []func(serverStream) error{sends(nil, fact(1, 0), fact(2, 0), end(2))}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		var s store
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, err := range follow.New(client, request(), follow.WithSave(s.save)).Messages(ctx) {
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			cancel()
		}
		if s.String() != "1.0" || s.ended != 0 {
			t.Errorf("saved %q", s.String())
		}
	})
}

// TestManualAck: a call that breaks off goes on behind what was handled; what is saved is what was acknowledged, and
// that is where the next loop begins.
func TestManualAck(t *testing.T) {
	t.Parallel()
	stub := &stub{calls: []func(serverStream) error{
		sends(status.Error(codes.Unavailable, "gone"), fact(1, 0), fact(2, 0)),
		sends(nil, fact(3, 0), end(3)),
		sends(nil, fact(3, 0), end(3)),
	}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		var s store
		f := follow.New(client, request(), follow.WithSave(s.save), follow.WithManualAck())
		for m, err := range f.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if place(m.GetCursor()) == "2.0" {
				if err := f.Ack(t.Context(), m); err != nil {
					t.Error(err)
				}
			}
		}
		for _, err := range f.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(stub.starts, ", "); got != "tail, 2.0, 2.0" {
			t.Errorf("calls began at %q", got)
		}
		if s.String() != "2.0" || f.Cursor() != at(2, 0) {
			t.Errorf("saved %q, at %v", s.String(), f.Cursor())
		}
	})
}

// TestAckOrder: acknowledging moves forward only, from any goroutine, one save at a time.
func TestAckOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store{delay: time.Second}
		f := follow.New(nil, request(), follow.WithSave(s.save), follow.WithManualAck())
		ack := func(m *evev1.SubscribeResponse) {
			t.Helper()
			if err := f.Ack(t.Context(), m); err != nil {
				t.Error(err)
			}
		}
		ack(fact(2, 1))
		ack(fact(2, 1))
		ack(fact(2, 0))
		ack(fact(1, 9))
		if s.String() != "2.1" {
			t.Errorf("saved %q", s.String())
		}
		ack(end(5))
		ack(beat(5)) // of before: it does not know of the end
		if s.String() != "2.1 5.0+" || !f.Cursor().SessionEnded {
			t.Errorf("saved %q, at %v", s.String(), f.Cursor())
		}

		done := make(chan error)
		for line := uint64(10); line > 5; line-- {
			go func() { done <- f.Ack(t.Context(), fact(line, 0)) }()
		}
		for range 5 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if last := s.saved[len(s.saved)-1]; last != "10.0" || f.Cursor() != at(10, 0) || s.races > 0 {
			t.Errorf("saved %q, at %v, %d at the same time", s.String(), f.Cursor(), s.races)
		}
	})
}

// TestAckErrors: what cannot be acknowledged is not.
func TestAckErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store{delay: time.Minute}
		f := follow.New(nil, request(), follow.WithSave(s.save))
		if err := f.Ack(t.Context(), fact(1, 0)); err != nil {
			t.Fatal(err)
		}
		other := fact(2, 0)
		other.Cursor.SessionId = "another"
		if err := f.Ack(t.Context(), other); !errors.Is(err, cursor.ErrOtherStream) {
			t.Errorf("another session: %v", err)
		}
		if err := f.Ack(t.Context(), &evev1.SubscribeResponse{}); !errors.Is(err, cursor.ErrInvalid) {
			t.Errorf("no cursor: %v", err)
		}

		slow := make(chan error)
		go func() { slow <- f.Ack(t.Context(), fact(3, 0)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Ack(ctx, fact(4, 0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for another save: %v", err)
		}
		if err := <-slow; err != nil {
			t.Error(err)
		}

		s.fail = errors.New("disk full")
		if err := f.Ack(t.Context(), fact(5, 0)); !errors.Is(err, s.fail) {
			t.Errorf("failing save: %v", err)
		}
		if s.String() != "1.0 3.0" || f.Cursor() != at(3, 0) {
			t.Errorf("saved %q, at %v", s.String(), f.Cursor())
		}
		s.fail = nil
		if err := f.Ack(t.Context(), fact(5, 0)); err != nil || f.Cursor() != at(5, 0) {
			t.Errorf("again: %v, at %v", err, f.Cursor())
		}
	})
}
