package rpc

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/evegateway/evegateway/gateway/source"
)

// legacyBoundary is what must be remembered to find where a turn rests up to version 26 (contract 5.6). It does not
// rely on the order in which a turn's waiting and its requests are told (contract O11).
type legacyBoundary struct {
	requests map[string]bool // open requests to people
	signIns  map[string]bool // sign-ins that a callback will complete
	waiting  bool            // the turn rests, as far as was told
}

// event looks at one event and says whether the read ends behind it.
func (b *boundary) event(r *source.Record) bool {
	rests := b.legacy.rests(r)
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
	On       string `json:"on"`
	Requests []struct {
		RequestID string `json:"requestId"`
	} `json:"requests"`
	Resolutions []struct {
		RequestID string `json:"requestId"`
	} `json:"resolutions"`
	RequestID  string `json:"requestId"`
	AttemptID  string `json:"attemptId"`
	Name       string `json:"name"`
	WebhookURL string `json:"webhookUrl"`
}

func decodeLegacy(data []byte) legacyData {
	var d legacyData
	// Members of unexpected types are as good as missing: nothing is derived from them.
	_ = json.Unmarshal(data, &d, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return d
}

func (l *legacyBoundary) rests(r *source.Record) bool {
	switch r.Type {
	case "session.completed", "session.failed":
		return true
	case "session.waiting":
		// Up to 25 an interim one is told while a sign-in is pending.
		return len(l.signIns) == 0
	case "turn.waiting":
		l.waiting = true
		return len(l.requests) > 0 || decodeLegacy(r.Data).On == "input" && len(l.signIns) == 0
	case "input.requested":
		for _, q := range decodeLegacy(r.Data).Requests {
			set(&l.requests, q.RequestID)
		}
		return l.waiting && len(l.requests) > 0
	case "input.resolved":
		for _, q := range decodeLegacy(r.Data).Resolutions {
			delete(l.requests, q.RequestID)
		}
		l.waiting = false
	case "approval.settled":
		delete(l.requests, decodeLegacy(r.Data).RequestID)
	case "authorization.required":
		if d := decodeLegacy(r.Data); d.WebhookURL != "" {
			set(&l.signIns, d.AttemptID+"/"+d.Name)
		}
	case "authorization.completed":
		d := decodeLegacy(r.Data)
		delete(l.signIns, d.AttemptID+"/"+d.Name)
		l.waiting = false
	case "turn.started", "step.started":
		l.waiting = false
	case "turn.completed", "turn.failed", "turn.cancelled":
		// What a turn asked for ends with it.
		l.waiting, l.requests, l.signIns = false, nil, nil
	}
	return false
}

func set(m *map[string]bool, key string) {
	if *m == nil {
		*m = map[string]bool{}
	}
	(*m)[key] = true
}
