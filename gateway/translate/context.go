package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Payloads of the context family (contract 3.13).

func contextStarted(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_ContextStarted{ContextStarted: &evev1.ContextStarted{
		ChangeId: o.id("changeId"),
		Kind:     o.text("kind"),
		TurnId:   o.optionalText("turnId"),
		Cause:    child(o, "cause", cause),
		Trigger:  child(o, "trigger", contextTrigger),
	}}
}

func contextSettled(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_ContextSettled{ContextSettled: &evev1.ContextSettled{
		ChangeId: o.id("changeId"),
		Kind:     o.text("kind"),
		Outcome:  contextOutcome(o.text("outcome")),
		Selects:  contextSelection(o),
		Error:    child(o, "error", eveError),
	}}
}

func contextOutcome(s string) evev1.ContextOutcome {
	switch s {
	case "completed":
		return evev1.ContextOutcome_CONTEXT_OUTCOME_COMPLETED
	case "failed":
		return evev1.ContextOutcome_CONTEXT_OUTCOME_FAILED
	case "cancelled":
		return evev1.ContextOutcome_CONTEXT_OUTCOME_CANCELLED
	case "interrupted":
		return evev1.ContextOutcome_CONTEXT_OUTCOME_INTERRUPTED
	}
	return evev1.ContextOutcome_CONTEXT_OUTCOME_UNSPECIFIED
}

// contextSelection tells the three states of selects apart: absent leaves the conversation unchanged, null empties it,
// an object names the turn that is current now.
func contextSelection(o *object) *evev1.ContextSelection {
	if o.find("selects").Kind() == 'n' {
		return &evev1.ContextSelection{Selection: &evev1.ContextSelection_Emptied{Emptied: true}}
	}
	return child(o, "selects", func(o *object) *evev1.ContextSelection {
		m := new(evev1.ContextSelection)
		if o.present("turnId") != nil {
			m.Selection = &evev1.ContextSelection_TurnId{TurnId: o.text("turnId")}
		}
		return m
	})
}

func contextTrigger(o *object) *evev1.ContextTrigger {
	return &evev1.ContextTrigger{InputTokens: o.integer("inputTokens", 64)}
}
