package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Payloads of the delivery family (contract 3.4).

func deliveryAdmitted(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_DeliveryAdmitted{DeliveryAdmitted: &evev1.DeliveryAdmitted{
		DeliveryId:        o.id("deliveryId"),
		Principal:         child(o, "principal", principal),
		Source:            child(o, "source", deliverySource),
		ClientContextJson: o.verbatim("clientContext"),
	}}
}

func deliveryConsumed(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_DeliveryConsumed{DeliveryConsumed: &evev1.DeliveryConsumed{
		DeliveryId: o.id("deliveryId"),
		TurnId:     o.text("turnId"),
		Parts:      children(o, "parts", userPart),
	}}
}

func deliverySettled(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_DeliverySettled{DeliverySettled: &evev1.DeliverySettled{
		DeliveryId: o.id("deliveryId"),
		Outcome:    deliveryOutcome(o.text("outcome")),
		TurnId:     o.optionalText("turnId"),
		Reason:     o.optionalText("reason"),
	}}
}

func deliveryOutcome(s string) evev1.DeliveryOutcome {
	switch s {
	case "handled":
		return evev1.DeliveryOutcome_DELIVERY_OUTCOME_HANDLED
	case "awaiting-input":
		return evev1.DeliveryOutcome_DELIVERY_OUTCOME_AWAITING_INPUT
	case "applied":
		return evev1.DeliveryOutcome_DELIVERY_OUTCOME_APPLIED
	case "ignored":
		return evev1.DeliveryOutcome_DELIVERY_OUTCOME_IGNORED
	case "refused":
		return evev1.DeliveryOutcome_DELIVERY_OUTCOME_REFUSED
	case "failed":
		return evev1.DeliveryOutcome_DELIVERY_OUTCOME_FAILED
	}
	return evev1.DeliveryOutcome_DELIVERY_OUTCOME_UNSPECIFIED
}

func principal(o *object) *evev1.Principal {
	return &evev1.Principal{
		Id:     o.text("id"),
		Type:   o.text("type"),
		Issuer: o.optionalText("issuer"),
	}
}

// deliverySource is an open union whose keys may come together, as a channel and a hook do.
func deliverySource(o *object) *evev1.DeliverySource {
	return &evev1.DeliverySource{
		Channel:    o.optionalText("channel"),
		ScheduleId: o.optionalText("scheduleId"),
		Caller:     child(o, "caller", deliveryCaller),
		Control:    o.optionalText("control"),
		Callback:   o.optionalText("callback"),
		Hook:       o.optionalText("hook"),
	}
}

func deliveryCaller(o *object) *evev1.DeliveryCaller {
	return &evev1.DeliveryCaller{
		SessionId: o.text("sessionId"),
		CallId:    o.optionalText("callId"),
	}
}

// userPart decodes what belongs to the part's kind alone: members of a kind this build does not know may have any
// type, so such a part is kept whole.
func userPart(o *object) *evev1.UserPart {
	m := &evev1.UserPart{Kind: o.text("kind")}
	switch m.Kind {
	case "text":
		m.Text = o.optionalText("text")
	case "file":
		m.MediaType = o.optionalText("mediaType")
		m.Filename = o.optionalText("filename")
		m.Size = o.optionalInteger("size")
		m.Ref = o.optionalText("ref")
		m.Url = o.optionalText("url")
		m.Unavailable = o.flag("unavailable")
	default:
		m.PartJson = o.json()
	}
	return m
}
