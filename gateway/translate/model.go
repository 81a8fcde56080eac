package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Payloads of the model family (contract 3.6).

func modelRequested(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_ModelRequested{ModelRequested: &evev1.ModelRequested{
		RunId: o.id("runId"),
		Owner: child(o, "owner", owner),
	}}
}

func modelStarted(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_ModelStarted{ModelStarted: &evev1.ModelStarted{
		RunId:   o.id("runId"),
		ModelId: o.text("modelId"),
	}}
}

func modelSettled(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_ModelSettled{ModelSettled: &evev1.ModelSettled{
		RunId:        o.id("runId"),
		Outcome:      modelOutcome(o.text("outcome")),
		FinishReason: o.optionalText("finishReason"),
		GenerationId: o.optionalText("generationId"),
		Error:        child(o, "error", eveError),
	}}
}

func modelOutcome(s string) evev1.ModelOutcome {
	switch s {
	case "completed":
		return evev1.ModelOutcome_MODEL_OUTCOME_COMPLETED
	case "failed":
		return evev1.ModelOutcome_MODEL_OUTCOME_FAILED
	case "interrupted":
		return evev1.ModelOutcome_MODEL_OUTCOME_INTERRUPTED
	case "abandoned":
		return evev1.ModelOutcome_MODEL_OUTCOME_ABANDONED
	}
	return evev1.ModelOutcome_MODEL_OUTCOME_UNSPECIFIED
}
