package rpc

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/evegateway/evegateway/cursor"
	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/gateway/translate"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// sender makes messages of steps and sends them. The cursor moves with what is sent, never before.
type sender struct {
	p      *plan
	stream grpc.ServerStreamingServer[evev1.SubscribeResponse]
	cursor cursor.Cursor
	// starting: a relative start is not resolved yet, so that there is no cursor to send.
	starting bool

	// silent: no goodbye when told to stop.
	silent atomic.Bool

	// For the log: read by another goroutine when this one is stuck.
	messages atomic.Int64
	line     atomic.Uint64
}

func newSender(p *plan, stream grpc.ServerStreamingServer[evev1.SubscribeResponse]) *sender {
	return &sender{p: p, stream: stream, cursor: p.cursor, starting: p.relative}
}

// errStopped: told to stop, and the client was told.
var errStopped = errors.New("stopped")

// run sends until the read is complete, the client is gone, or stop is closed.
func (s *sender) run(h *handoff, stop <-chan struct{}) error {
	beat := time.NewTimer(s.p.beat)
	defer beat.Stop()
	ready := make(chan struct{})
	close(ready)
	var batch []source.Step
	var sent int64
	for {
		var done bool
		var err error
		batch, done, err = h.take(batch)
		for i := range batch {
			if err := s.step(&batch[i]); err != nil {
				return err
			}
			select {
			case <-stop:
				return s.goodbye()
			default:
			}
		}
		if done {
			return err
		}
		if n := s.messages.Load(); n != sent { // what is read is not always sent: silence is what the client hears
			sent = n
			beat.Reset(s.p.beat)
		}
		filled := h.filled
		if len(batch) > 0 { // there may be more, or the end
			filled = ready
		}
		select {
		case <-beat.C:
			if s.starting {
				beat.Reset(s.p.beat)
				continue
			}
			err = s.checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_HEARTBEAT})
		case <-stop:
			return s.goodbye()
		case <-filled:
		}
		if err != nil {
			return err
		}
	}
}

func (s *sender) goodbye() error {
	if s.silent.Load() || s.starting {
		return errStopped
	}
	if err := s.checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_DRAINING}); err != nil {
		return err
	}
	return errStopped
}

// step sends what a step of the read means.
func (s *sender) step(st *source.Step) error {
	switch st.Kind {
	case source.StepLine:
		return s.sendLine(st.Line)
	case source.StepPositioned:
		b := st.Before
		s.starting = false
		s.cursor = s.cursor.PositionedAt(st.Next, st.Version, b.Identity, b.At, b.Terminal)
		return s.checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_POSITIONED})
	case source.StepSkipped:
		to, unread, moved := s.cursor.SkipTo(st.Next, st.Version)
		if !moved {
			return nil
		}
		s.cursor = to
		return s.checkpoint(&evev1.Checkpoint{
			Reason:  evev1.CheckpointReason_CHECKPOINT_REASON_SOURCE_SKIPPED,
			Skipped: &evev1.SourceRange{FromLine: unread.FromLine, FromRecordIndex: unread.FromRecordIndex, ToLine: unread.ToLine},
		})
	case source.StepCaughtUp:
		c := &evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_CAUGHT_UP}
		if st.Tail >= 0 {
			c.CaughtUpLine = new(uint64(st.Tail))
		}
		return s.checkpoint(c)
	case source.StepVersionChanged:
		return s.checkpoint(&evev1.Checkpoint{
			Reason:        evev1.CheckpointReason_CHECKPOINT_REASON_VERSION_CHANGED,
			StreamVersion: st.Version,
		})
	case source.StepEnded:
		if st.End == source.SessionEnded {
			s.cursor.SessionEnded = true
		}
		return s.checkpoint(&evev1.Checkpoint{Reason: evev1.CheckpointReason_CHECKPOINT_REASON_ENDED, End: endReason(st.End)})
	}
	return nil
}

func endReason(e source.End) evev1.EndReason {
	switch e {
	case source.SessionEnded:
		return evev1.EndReason_END_REASON_SESSION_ENDED
	case source.BoundReached:
		return evev1.EndReason_END_REASON_BOUND_REACHED
	case source.StreamClosed:
		return evev1.EndReason_END_REASON_STREAM_CLOSED
	}
	return evev1.EndReason_END_REASON_UNSPECIFIED
}

// sendLine sends the records of a line that are still to come, one message each.
func (s *sender) sendLine(l *source.Line) error {
	at := coordinates(l)
	slot, whole, err := s.cursor.Begin(at)
	if err != nil {
		return err
	}
	last := -1
	if !whole {
		last = s.p.filter.lastPassing(l, int(slot), int(at.Slots))
	}
	if last < 0 { // nothing of it is delivered: the next message shows the move
		s.cursor = s.cursor.AfterLine(at)
		return nil
	}
	for slot := int(slot); slot <= last; slot++ {
		if slot < last && !s.p.filter.passes(l, slot) {
			continue
		}
		latest := s.cursor.LastCommitTime
		if slot < last {
			s.cursor = s.cursor.After(at, uint32(slot)) //nolint:gosec // below at.Slots
		} else {
			s.cursor = s.cursor.AfterLine(at) // what the filter leaves out behind it is consumed too
		}
		m := &evev1.SubscribeResponse{Cursor: s.cursor.Proto()}
		translate.Item(m, l, slot, slot == last, latest, s.p.form)
		if s.tooLarge(m, l, slot) {
			translate.Omit(m, l, slot)
		}
		if err := s.send(m); err != nil {
			return err
		}
	}
	return nil
}

// coordinates is what the cursor must know of a line.
func coordinates(l *source.Line) cursor.Line {
	at := cursor.Line{Number: l.Place, Version: l.Version, Slots: 1, Anchor: l.Anchor, Terminal: l.Terminal}
	if l.Kind == source.Commit {
		at.At, at.Version = l.At, cursor.MaxVersion
		at.Slots = uint32(len(l.Records)) //nolint:gosec // a line of 4 Gi records is over any limit
	}
	return at
}

// tooLarge says whether a message is larger than the client can receive. Only a record that could be is measured:
// no form makes more than nine bytes of one, raw, as JSON and as text three each where it is no UTF-8, and what
// surrounds it fits the allowance.
func (s *sender) tooLarge(m *evev1.SubscribeResponse, l *source.Line, slot int) bool {
	const allowance = 2 << 10
	size := int(l.Size)
	if slot < len(l.Records) {
		size = len(l.Records[slot].Raw) + len(l.AtText) // of a commit, which stands outside of its facts
	}
	return 9*size+allowance > s.p.maxBytes && proto.Size(m) > s.p.maxBytes
}

func (s *sender) checkpoint(c *evev1.Checkpoint) error {
	return s.send(&evev1.SubscribeResponse{
		Cursor: s.cursor.Proto(),
		Item:   &evev1.SubscribeResponse_Checkpoint{Checkpoint: c},
	})
}

func (s *sender) send(m *evev1.SubscribeResponse) error {
	if err := s.stream.Send(m); err != nil {
		if errors.Is(err, io.EOF) {
			return s.stream.Context().Err()
		}
		return err
	}
	s.messages.Add(1)
	s.line.Store(s.cursor.StreamIndex)
	return nil
}
