package rpc

import (
	"maps"
	"slices"

	"github.com/evegateway/evegateway/gateway/source"
)

// legacyBoundary is what must be remembered to find where a turn rests up to version 26 (contract 5.6): at an event
// that says so, and nowhere else. A question tells that the turn waits for tasks, then the request, then that it waits
// for input (contract O11): a read that ended at the request would leave the last for the next one, which would take it
// for its own end.
type legacyBoundary struct {
	requests map[text]bool   // open requests to people
	signIns  map[signIn]bool // sign-ins that a callback will complete
}

// signIn is one attempt to sign in; the attempt has no id everywhere.
type signIn struct{ name, attempt text }

// event looks at one event and says whether the read ends behind it.
func (b *boundary) event(r *source.Record, version uint32) bool {
	rests := b.legacy.rests(r, version)
	if b.delivery == "" {
		return rests
	}
	// Own-delivery correlation: nothing counts before the first event of the delivery, then events of other
	// deliveries do not; those without attribution do.
	var ids []string
	if r.Meta != nil {
		ids = r.Meta.DeliveryIDs
	}
	own := slices.Contains(ids, b.delivery)
	b.seen = b.seen || own
	return rests && b.seen && (own || len(ids) == 0)
}

// legacyData are the members of event payloads that matter here.
type legacyData struct {
	On         text                   `json:"on"`
	Requests   objects[legacyRequest] `json:"requests"`
	Resolved   objects[legacyRequest] `json:"resolutions"`
	RequestID  text                   `json:"requestId"`
	AttemptID  text                   `json:"attemptId"`
	Name       text                   `json:"name"`
	WebhookURL text                   `json:"webhookUrl"`
}

type legacyRequest struct {
	ID text `json:"requestId"`
}

func (l *legacyBoundary) rests(r *source.Record, version uint32) bool {
	switch r.Type {
	case "session.completed", "session.failed":
		return true
	case "session.waiting":
		// Up to 25 an interim one is told while a sign-in is pending.
		return len(l.signIns) == 0
	case "turn.waiting":
		return len(l.requests) > 0 || readPayload[legacyData](r.Data).On == "input" && len(l.signIns) == 0
	case "input.requested":
		for _, q := range readPayload[legacyData](r.Data).Requests {
			l.requests = with(l.requests, q.members.ID)
		}
	case "input.resolved":
		for _, q := range readPayload[legacyData](r.Data).Resolved {
			delete(l.requests, q.members.ID)
		}
	case "approval.settled":
		delete(l.requests, readPayload[legacyData](r.Data).RequestID)
	case "authorization.required":
		if d := readPayload[legacyData](r.Data); d.WebhookURL != "" {
			l.signIns = with(l.signIns, signIn{d.Name, d.AttemptID})
		}
	case "authorization.completed":
		d := readPayload[legacyData](r.Data)
		maps.DeleteFunc(l.signIns, func(s signIn, _ bool) bool {
			return s.name == d.Name && (s.attempt == d.AttemptID || s.attempt == "" || d.AttemptID == "")
		})
	case "turn.completed":
		// What a turn asked for ends with it, but up to 25 a sign-in ends its turn and goes on.
		l.requests = nil
		if version >= 26 {
			l.signIns = nil
		}
	case "turn.started", "turn.failed", "turn.cancelled":
		l.requests, l.signIns = nil, nil
	}
	return false
}

func with[K comparable](m map[K]bool, key K) map[K]bool {
	if m == nil {
		m = map[K]bool{}
	}
	m[key] = true
	return m
}
