package guarantee

import (
	"encoding/json"
	"fmt"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// end checks an ENDED checkpoint: the reason is true, and everything up to there came.
func (w *walk) end(why evev1.EndReason, c *evev1.Cursor) {
	w.ended = true
	if w.c.Request.GetCursor().GetSessionEnded() {
		if why != evev1.EndReason_END_REASON_SESSION_ENDED {
			w.violate(ErrAtomicEnd, "ended as %v behind the end of the session", why)
		}
		return
	}
	at := positionOf(c)
	if w.late != nil {
		w.lateEnd(why, at)
	} else {
		// What lies before the line that ended the response is a matter of the cursor, that line one of the end.
		last := position{max(at.line-1, w.at.line), 0}
		if last.line > w.at.line && !at.before(last) {
			w.claim(last, ErrBookmarkable, "the end")
		}
		w.claim(at, ErrAtomicEnd, "the end")
		w.whole(at)
	}
	w.reached(why, at, c.GetSessionEnded())
}

// whole checks that an end is not inside a line of which something is wanted.
func (w *walk) whole(at position) {
	h := w.history()
	if at.slot == 0 || at.line >= h.Len() {
		return
	}
	e := h.Entry(at.line)
	for slot := at.slot; slot < slots(e); slot++ {
		if passes(w.c.Request.GetFilter(), e, slot) {
			w.violate(ErrAtomicEnd, "the end is at %v, inside a commit that has more", at)
			return
		}
	}
}

// reached checks that the reason of an end is true at a position.
func (w *walk) reached(why evev1.EndReason, at position, sessionEnded bool) {
	problem := w.agreeing(func(h *history) string {
		switch why {
		case evev1.EndReason_END_REASON_SESSION_ENDED:
			if h.terminal < 0 || !sessionEnded || at.line != h.terminal+1 && w.late == nil {
				return fmt.Sprintf("the session is said to have ended before %v, its last line is %d", at, h.terminal)
			}
		case evev1.EndReason_END_REASON_STREAM_CLOSED:
			if !w.session.Closed || at.line != h.Len() {
				return fmt.Sprintf("the stored stream is said to be closed before %v, it has %d lines", at, h.Len())
			}
		case evev1.EndReason_END_REASON_BOUND_REACHED:
			if problem := w.bound(h, at); problem != "" {
				return fmt.Sprintf("the bound is said to be reached before %v: %s", at, problem)
			}
		default:
			return "the end has no reason"
		}
		return ""
	})
	if problem != "" {
		w.violate(ErrAtomicEnd, "%s", problem)
	}
}

// bound says why the bound of the request is not reached at a position; empty when it is.
func (w *walk) bound(h *history, at position) string {
	last := at.line - 1 // the line that reached it
	switch b := w.c.Request.GetUntil().GetBound().(type) {
	case *evev1.Until_Tail_:
		if w.c.Known && last < w.c.Tail && (h.terminal < 0 || last < h.terminal) {
			return "the tail is further"
		}
		return ""
	case *evev1.Until_DeliveryId:
		for i := range min(at.line, h.Len()) {
			if h.Entry(i).Kind == fakeeve.Event || settles(h.Entry(i), b.DeliveryId) {
				return "" // events are attributed in ways that are not judged here
			}
		}
		return "the delivery is not settled"
	case *evev1.Until_TurnEnd_:
		if w.late != nil {
			return ""
		}
		if last < 0 || last >= h.Len() || !rests(h.Entry(last)) {
			return "no turn ends there"
		}
		for i := w.begin.line; i < last; i++ {
			e, seen := h.Entry(i), w.session.Trimmed == nil || !w.session.Trimmed(i)
			if e.Kind == fakeeve.Commit && rests(e) && seen && (i > w.begin.line || w.begin.slot == 0) {
				return "a turn ended before"
			}
		}
		return ""
	default:
		return "there was none"
	}
}

// rests tells whether a turn may come to rest with a line (contract 4.4, 5.6). Of an event it is told by the type alone.
func rests(e fakeeve.Entry) bool {
	for _, r := range e.Records {
		switch r.Type {
		case "turn.settled":
			return r.Kind == fakeeve.Commit
		case "turn.paused":
			var f struct {
				Data struct {
					Awaiting []struct {
						InteractionID string `json:"interactionId"`
					} `json:"awaiting"`
				} `json:"data"`
			}
			if r.Kind != fakeeve.Commit || json.Unmarshal(r.Raw, &f) != nil {
				continue
			}
			for _, a := range f.Data.Awaiting {
				if a.InteractionID != "" {
					return true
				}
			}
		case "session.waiting", "turn.waiting", "input.requested", "session.completed", "session.failed":
			return r.Kind == fakeeve.Event
		}
	}
	return false
}

// settles tells whether a line settles a delivery.
func settles(e fakeeve.Entry, delivery string) bool {
	for _, r := range e.Records {
		var f struct {
			Data struct {
				DeliveryID string `json:"deliveryId"`
			} `json:"data"`
		}
		if r.Type == "delivery.settled" && json.Unmarshal(r.Raw, &f) == nil && f.Data.DeliveryID == delivery {
			return true
		}
	}
	return false
}
