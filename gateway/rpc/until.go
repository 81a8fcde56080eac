package rpc

import (
	"context"
	"errors"
	"io"

	"github.com/evegateway/evegateway/gateway/source"
)

// boundary finds the line that ends a read: until.delivery_id with a delivery, until.turn_end without one. The rules
// are contract 4.3 and 4.4 for version 27 and 5.6 for the versions before; what a line is decides, not the version.
type boundary struct {
	delivery string
	// seen: the delivery was met since the read began, so that it cannot have been settled before.
	seen   bool
	legacy legacyBoundary
}

// reached looks at a whole line and says whether the read ends behind it.
func (b *boundary) reached(l *source.Line) bool {
	switch l.Kind {
	case source.Commit:
		ends := false
		for slot := range l.Records {
			ends = b.fact(&l.Records[slot]) || ends // a line is never left in the middle
		}
		return ends
	case source.Event:
		return b.event(&l.Records[0], l.Version)
	case source.Progress, source.Unreadable:
	}
	return false
}

// boundaryData are the members of fact payloads that matter here.
type boundaryData struct {
	DeliveryID text `json:"deliveryId"`
	Awaiting   objects[struct {
		InteractionID text `json:"interactionId"`
	}] `json:"awaiting"`
}

func (b *boundary) fact(r *source.Record) bool {
	switch r.Type {
	case "delivery.admitted", "delivery.consumed":
		b.seen = b.seen || b.own(r)
	case "delivery.settled":
		return b.own(r)
	case "turn.settled":
		return b.delivery == ""
	case "turn.paused":
		if b.delivery != "" {
			return false
		}
		for _, a := range readPayload[boundaryData](r.Data).Awaiting {
			if a.members.InteractionID != "" {
				return true
			}
		}
	}
	return false
}

// own says whether a fact is about the delivery that is waited for.
func (b *boundary) own(r *source.Record) bool {
	return b.delivery != "" && string(readPayload[boundaryData](r.Data).DeliveryID) == b.delivery
}

// untilReader ends a read behind the line at which its boundary is reached.
type untilReader struct {
	Reader
	ctx      context.Context
	log      Log
	req      source.Request
	boundary *boundary
	start    source.Place
	terminal bool // the last line was the session's end
	reached  bool
	ended    bool
}

func newUntilReader(ctx context.Context, inner Reader, log Log, req source.Request, b *boundary) *untilReader {
	return &untilReader{Reader: inner, ctx: ctx, log: log, req: req, boundary: b, start: req.Start}
}

// Next implements Reader.
func (r *untilReader) Next() (source.Step, error) {
	if r.ended {
		return source.Step{}, io.EOF
	}
	if r.reached {
		r.ended = true
		r.Close()
		return source.Step{Kind: source.StepEnded, End: source.BoundReached}, nil
	}
	step, err := r.Reader.Next()
	if err != nil {
		return step, err
	}
	switch step.Kind {
	case source.StepLine:
		// A terminal line ends the read by itself, and says more about why.
		r.terminal = step.Line.Terminal
		r.reached = r.boundary.reached(step.Line) && !r.terminal
	case source.StepPositioned:
		r.start = source.Place{Line: step.Next}
	case source.StepCaughtUp:
		if r.terminal {
			break
		}
		if r.reached, err = r.settledBefore(step.Next); err != nil {
			return source.Step{}, err
		}
	case source.StepSkipped, source.StepVersionChanged, source.StepEnded:
	}
	return step, nil
}

// settledBefore looks for the settlement of a delivery that was not met since the read began: in the history up to
// next, where the read stands. What was read since the start is looked at again, because up to version 26 it means more
// to who knows what was before.
func (r *untilReader) settledBefore(next uint64) (bool, error) {
	if r.boundary.delivery == "" || r.boundary.seen || r.start.Line == 0 && !r.start.Begun {
		return false, nil
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	req := source.Request{Session: r.req.Session, Via: r.req.Via, Bounded: true, SkipOversize: true}
	history, err := r.log.Open(ctx, req)
	if err != nil {
		return false, err
	}
	defer history.Close()
	whole := &boundary{delivery: r.boundary.delivery}
	for {
		step, err := history.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		switch {
		case err != nil, step.Kind == source.StepLine && step.Line.Number >= next:
			r.boundary = whole // what follows decides, by what was learned here
			return false, nil
		case step.Kind == source.StepLine && whole.reached(step.Line):
			return true, nil
		}
	}
}
