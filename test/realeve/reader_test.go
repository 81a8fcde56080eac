//go:build realeve

package realeve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/test/process"
)

// reader reads one session through the gateway, in as many subscriptions as it takes. Each resumes from the cursor of
// the last message the one before it handled.
type reader struct {
	gateway evev1.StreamServiceClient
	session string

	cursor        *evev1.Cursor
	events        []*evev1.LegacyEvent
	checkpoints   []*evev1.Checkpoint
	subscriptions int
}

// errStopped is what read returns when the caller's stop ended the subscription.
var errStopped = errors.New("stopped by the reader")

// read subscribes from where the reader stands and handles messages until stop says so, which is asked after each one,
// or until the gateway ends the stream: nil then means status OK behind an ENDED checkpoint.
//
// What every message has to hold is checked here.
func (r *reader) read(t *testing.T, stop func(*evev1.SubscribeResponse) bool, change ...func(*evev1.SubscribeRequest)) error {
	t.Helper()
	// A subscription that hangs fails the test instead.
	ctx, cancel := context.WithTimeout(t.Context(), 3*process.Patience)
	defer cancel()
	req := &evev1.SubscribeRequest{SessionId: r.session}
	if r.cursor != nil {
		req.Start = &evev1.SubscribeRequest_Cursor{Cursor: r.cursor}
	}
	for _, c := range change {
		c(req)
	}
	r.subscriptions++
	stream, err := r.gateway.Subscribe(ctx, req)
	if err != nil {
		return fmt.Errorf("subscribing: %w", err)
	}
	if header, err := stream.Header(); err == nil && header != nil {
		if got := header.Get("eve-stream-version"); len(got) > 0 && got[0] != strconv.Itoa(streamVersion) {
			t.Errorf("header eve-stream-version: %q", got)
		}
	}
	ended := false
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if !ended {
				t.Error("status OK without an ENDED checkpoint")
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("receiving: %w", err)
		}
		if ended {
			t.Errorf("a message behind the ENDED checkpoint: %v", msg)
		}
		r.handle(t, msg)
		ended = msg.GetCheckpoint().GetReason() == evev1.CheckpointReason_CHECKPOINT_REASON_ENDED
		if stop != nil && stop(msg) {
			return errStopped
		}
	}
}

// handle checks a message against the one before it and takes its cursor.
func (r *reader) handle(t *testing.T, msg *evev1.SubscribeResponse) {
	t.Helper()
	cursor := msg.GetCursor()
	if cursor.GetSessionId() != r.session || cursor.GetAgent() == "" || cursor.GetStreamEventIndex() != 0 {
		t.Errorf("cursor of another stream, or inside a line: %v", cursor)
	}
	if cursor.GetStreamIndex() < r.cursor.GetStreamIndex() {
		t.Errorf("cursor went back from %d to %d", r.cursor.GetStreamIndex(), cursor.GetStreamIndex())
	}
	before := r.cursor.GetStreamIndex()
	r.cursor = cursor
	switch item := msg.GetItem().(type) {
	case *evev1.SubscribeResponse_Event:
		source := item.Event.GetSource()
		if source.GetStreamVersion() != streamVersion || cursor.GetStreamVersion() != streamVersion {
			t.Errorf("event of stream version %d under a cursor of %d", source.GetStreamVersion(), cursor.GetStreamVersion())
		}
		if cursor.GetStreamIndex() != before+1 || !source.GetEndOfLine() || cursor.GetAnchor() == "" {
			t.Errorf("event at %v moved the cursor from %d to %v", source, before, cursor)
		}
		r.events = append(r.events, item.Event)
	case *evev1.SubscribeResponse_Checkpoint:
		r.checkpoints = append(r.checkpoints, item.Checkpoint)
	default:
		t.Errorf("a session of stream version %d has a %T", streamVersion, item)
	}
}

// checkpoint returns the latest checkpoint with a reason, or nil.
func (r *reader) checkpoint(reason evev1.CheckpointReason) *evev1.Checkpoint {
	for _, c := range slices.Backward(r.checkpoints) {
		if c.GetReason() == reason {
			return c
		}
	}
	return nil
}

// after stops behind n more events.
func after(n int) func(*evev1.SubscribeResponse) bool {
	return func(msg *evev1.SubscribeResponse) bool {
		if msg.GetEvent() != nil {
			n--
		}
		return n <= 0
	}
}

// atRest stops when the turn has ended or waits for a person.
func atRest(msg *evev1.SubscribeResponse) bool {
	switch msg.GetEvent().GetType() {
	case "session.waiting", "session.completed", "session.failed":
		return true
	case "turn.waiting":
		var event struct{ Data struct{ On string } }
		return json.Unmarshal([]byte(msg.GetEvent().GetRecordJson()), &event) == nil && event.Data.On == "input"
	default:
		return false
	}
}

func untilTail(req *evev1.SubscribeRequest) {
	req.Until = &evev1.Until{Bound: &evev1.Until_Tail_{Tail: &evev1.Until_Tail{}}}
}

func atTail(req *evev1.SubscribeRequest) {
	req.Start = &evev1.SubscribeRequest_Position{Position: evev1.Position_POSITION_TAIL}
}

func lastLines(n int) func(*evev1.SubscribeRequest) {
	return func(req *evev1.SubscribeRequest) { req.Start = &evev1.SubscribeRequest_LastLines{LastLines: uint32(n)} }
}

func heartbeatEvery(d time.Duration) func(*evev1.SubscribeRequest) {
	return func(req *evev1.SubscribeRequest) { req.HeartbeatInterval = durationpb.New(d) }
}

// differences compares what a reader received with the stored lines from one on: every one of them once, byte for
// byte. late counts events that were delivered at another place than their stored one: the server itself sometimes
// sends live events in another order than it stores them (contract O4).
func differences(events []*evev1.LegacyEvent, stored [][]byte, from int) (late int, err error) {
	place := map[string]int{}
	for i, line := range stored {
		place[string(line)] = i
	}
	var errs []error
	seen := map[int]bool{}
	for n, event := range events {
		i, ok := place[event.GetRecordJson()]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("received %d. (line %d) is not stored: %.300s", n, event.GetSource().GetLine(), event.GetRecordJson()))
			continue
		case seen[i]:
			errs = append(errs, fmt.Errorf("line %d received twice", i))
		case i < from:
			errs = append(errs, fmt.Errorf("line %d received, the reader started at %d", i, from))
		case uint64(i) != event.GetSource().GetLine() || i != from+n:
			late++
		}
		seen[i] = true
		var wire struct {
			Type string
			Meta struct{ ID string }
		}
		if err := json.Unmarshal(stored[i], &wire); err != nil {
			errs = append(errs, fmt.Errorf("line %d is no JSON: %w", i, err))
		}
		if wire.Type != event.GetType() || wire.Meta.ID != event.GetMetaId() || event.GetLossy() {
			errs = append(errs, fmt.Errorf("line %d: type %q, id %q, lossy %v; the line says %q, %q", i, event.GetType(), event.GetMetaId(), event.GetLossy(), wire.Type, wire.Meta.ID))
		}
	}
	for i := from; i < len(stored); i++ {
		if !seen[i] {
			errs = append(errs, fmt.Errorf("line %d lost: %.300s", i, stored[i]))
		}
	}
	return late, errors.Join(errs...)
}
