package rpc

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/gateway/translate"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
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
			ends = b.fact(l, slot) || ends // a line is never left in the middle
		}
		return ends
	case source.Event:
		return b.event(&l.Records[0])
	case source.Progress, source.Unreadable:
	}
	return false
}

func (b *boundary) fact(l *source.Line, slot int) bool {
	switch l.Records[slot].Type {
	case "delivery.admitted", "delivery.consumed", "delivery.settled", "turn.settled", "turn.paused":
	default:
		return false
	}
	var m evev1.SubscribeResponse
	translate.Item(&m, l, slot, false, time.Time{}, translate.Form{Typed: true})
	switch d := m.GetFact().GetData().(type) {
	case *evev1.Fact_DeliveryAdmitted:
		b.seen = b.seen || d.DeliveryAdmitted.GetDeliveryId() == b.delivery
	case *evev1.Fact_DeliveryConsumed:
		b.seen = b.seen || d.DeliveryConsumed.GetDeliveryId() == b.delivery
	case *evev1.Fact_DeliverySettled:
		return b.delivery != "" && d.DeliverySettled.GetDeliveryId() == b.delivery
	case *evev1.Fact_TurnSettled:
		return b.delivery == ""
	case *evev1.Fact_TurnPaused:
		if b.delivery != "" {
			return false
		}
		for _, a := range d.TurnPaused.GetAwaiting() {
			if a.GetInteractionId() != "" {
				return true
			}
		}
	}
	return false
}

// untilReader ends a read behind the line at which its boundary is reached.
type untilReader struct {
	Reader
	ctx      context.Context
	log      Log
	req      source.Request
	boundary *boundary
	start    source.Place
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
		r.reached = r.boundary.reached(step.Line) && !step.Line.Terminal
	case source.StepPositioned:
		r.start = source.Place{Line: step.Next}
	case source.StepCaughtUp:
		if r.reached, err = r.settledBefore(); err != nil {
			return source.Step{}, err
		}
	case source.StepSkipped, source.StepVersionChanged, source.StepEnded:
	}
	return step, nil
}

// settledBefore looks for the settlement of a delivery that was not met since the read began: in the history before
// its start.
func (r *untilReader) settledBefore() (bool, error) {
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
	before := &boundary{delivery: r.boundary.delivery}
	for {
		step, err := history.Next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if step.Kind != source.StepLine {
			continue
		}
		if step.Line.Number > r.start.Line || step.Line.Number == r.start.Line && !r.start.Begun {
			// Met before the start, but not settled: what follows the start decides, by what was learned here.
			r.boundary.seen, r.boundary.legacy = before.seen, before.legacy
			return false, nil
		}
		if before.reached(step.Line) {
			return true, nil
		}
	}
}
