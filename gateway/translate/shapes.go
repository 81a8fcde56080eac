package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// The shapes that payloads of more than one family share (contract 3.2). Unions are open: a key this build does not
// know leaves the oneof unset and the message present.

// cause checks the keys in the order of contract 3.2.
func cause(o *object) *evev1.Cause {
	m := new(evev1.Cause)
	switch {
	case o.present("deliveryId") != nil:
		m.Cause = &evev1.Cause_DeliveryId{DeliveryId: o.text("deliveryId")}
	case o.present("turnId") != nil:
		m.Cause = &evev1.Cause_TurnId{TurnId: o.text("turnId")}
	case o.present("taskId") != nil:
		m.Cause = &evev1.Cause_TaskId{TaskId: o.text("taskId")}
	case o.present("callId") != nil:
		m.Cause = &evev1.Cause_CallId{CallId: o.text("callId")}
	case o.present("interactionId") != nil:
		m.Cause = &evev1.Cause_InteractionId{InteractionId: o.text("interactionId")}
	case o.present("responseId") != nil:
		m.Cause = &evev1.Cause_ResponseId{ResponseId: o.text("responseId")}
	case o.present("changeId") != nil:
		m.Cause = &evev1.Cause_ChangeId{ChangeId: o.text("changeId")}
	case o.present("policy") != nil:
		m.Cause = &evev1.Cause_Policy{Policy: o.text("policy")}
	case o.present("hook") != nil:
		m.Cause = &evev1.Cause_Hook{Hook: o.text("hook")}
	}
	return m
}

// owner serves every member that names one owner: owner of model, call, child and usage, subject of interactions.
func owner(o *object) *evev1.Owner {
	m := new(evev1.Owner)
	switch {
	case o.present("turnId") != nil:
		m.Owner = &evev1.Owner_TurnId{TurnId: o.text("turnId")}
	case o.present("runId") != nil:
		m.Owner = &evev1.Owner_RunId{RunId: o.text("runId")}
	case o.present("callId") != nil:
		m.Owner = &evev1.Owner_CallId{CallId: o.text("callId")}
	case o.present("taskId") != nil:
		m.Owner = &evev1.Owner_TaskId{TaskId: o.text("taskId")}
	case o.present("changeId") != nil:
		m.Owner = &evev1.Owner_ChangeId{ChangeId: o.text("changeId")}
	case o.present("responseId") != nil:
		m.Owner = &evev1.Owner_ResponseId{ResponseId: o.text("responseId")}
	case o.present("interactionId") != nil:
		m.Owner = &evev1.Owner_InteractionId{InteractionId: o.text("interactionId")}
	}
	return m
}

func eveError(o *object) *evev1.EveError {
	return &evev1.EveError{
		Code:    o.text("code"),
		Message: o.text("message"),
		Id:      o.optionalText("id"),
		Hint:    o.optionalText("hint"),
	}
}

func valueReference(o *object) *evev1.ValueReference {
	return &evev1.ValueReference{
		Ref:       o.optionalText("ref"),
		MediaType: o.optionalText("mediaType"),
		Size:      o.optionalInteger("size"),
		Preview:   o.optionalText("preview"),
		Withheld:  o.flag("withheld"),
	}
}

func traceContext(o *object) *evev1.TraceContext {
	return &evev1.TraceContext{
		TraceId:    o.text("traceId"),
		SpanId:     o.text("spanId"),
		TraceFlags: uint32(o.integer("traceFlags", 32)), //nolint:gosec // integer checks the size
	}
}

// idOf decodes an object of which only the id in it counts.
func idOf(name string) func(*object) *string {
	return func(o *object) *string { return o.optionalText(name) }
}
