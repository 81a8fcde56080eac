package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Payloads of the call family (contract 3.8).

func callInput(o *object, p *evev1.Progress) {
	p.Data = &evev1.Progress_CallInput{CallInput: &evev1.CallInput{
		CallId: o.id("callId"),
		Name:   o.optionalText("name"),
		Delta:  o.text("delta"),
	}}
}

func callRequested(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_CallRequested{CallRequested: &evev1.CallRequested{
		CallId:     o.id("callId"),
		Owner:      child(o, "owner", owner),
		Capability: child(o, "capability", capability),
		InputJson:  o.verbatim("input"),
		InputRef:   child(o, "inputRef", valueReference),
		InputError: child(o, "inputError", eveError),
	}}
}

func callStarted(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_CallStarted{CallStarted: &evev1.CallStarted{
		CallId:    o.id("callId"),
		ClearedBy: child(o, "clearedBy", callClearance),
		TaskId:    o.optionalText("taskId"),
	}}
}

func callProgress(o *object, p *evev1.Progress) {
	p.Data = &evev1.Progress_CallProgress{CallProgress: &evev1.CallProgress{
		CallId:     o.id("callId"),
		OutputJson: o.verbatim("output"),
		Title:      o.optionalText("title"),
	}}
}

func callSettled(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_CallSettled{CallSettled: &evev1.CallSettled{
		CallId:         o.id("callId"),
		Outcome:        callOutcome(o.text("outcome")),
		OutputJson:     o.verbatim("output"),
		OutputRef:      child(o, "outputRef", valueReference),
		OutputOfCallId: child(o, "outputOf", idOf("callId")),
		Error:          child(o, "error", eveError),
		Reason:         o.optionalText("reason"),
		Cause:          child(o, "cause", cause),
		Title:          o.optionalText("title"),
	}}
}

func callOutcome(s string) evev1.CallOutcome {
	switch s {
	case "completed":
		return evev1.CallOutcome_CALL_OUTCOME_COMPLETED
	case "failed":
		return evev1.CallOutcome_CALL_OUTCOME_FAILED
	case "rejected":
		return evev1.CallOutcome_CALL_OUTCOME_REJECTED
	case "interrupted":
		return evev1.CallOutcome_CALL_OUTCOME_INTERRUPTED
	case "abandoned":
		return evev1.CallOutcome_CALL_OUTCOME_ABANDONED
	}
	return evev1.CallOutcome_CALL_OUTCOME_UNSPECIFIED
}

func capability(o *object) *evev1.Capability {
	return &evev1.Capability{
		Kind:  o.text("kind"),
		Name:  o.text("name"),
		Title: o.optionalText("title"),
	}
}

func callClearance(o *object) *evev1.CallClearance {
	m := new(evev1.CallClearance)
	switch {
	case o.present("policy") != nil:
		m.Clearance = &evev1.CallClearance_Policy{Policy: o.text("policy")}
	case o.present("grant") != nil:
		if id := child(o, "grant", idOf("interactionId")); id != nil {
			m.Clearance = &evev1.CallClearance_GrantInteractionId{GrantInteractionId: *id}
		}
	case o.present("interactionId") != nil:
		m.Clearance = &evev1.CallClearance_InteractionId{InteractionId: o.text("interactionId")}
	}
	return m
}
