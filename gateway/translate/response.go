package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Payloads of the response family (contract 3.11).

func responseSubmitted(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_ResponseSubmitted{ResponseSubmitted: &evev1.ResponseSubmitted{
		ResponseId:    o.id("responseId"),
		InteractionId: o.text("interactionId"),
		DeliveryId:    o.text("deliveryId"),
		Value:         child(o, "value", responseValue),
	}}
}

func responseAdmitted(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_ResponseAdmitted{ResponseAdmitted: &evev1.ResponseAdmitted{
		ResponseId: o.id("responseId"),
	}}
}

func responseSettled(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_ResponseSettled{ResponseSettled: &evev1.ResponseSettled{
		ResponseId: o.id("responseId"),
		Outcome:    responseOutcome(o.text("outcome")),
		Reason:     o.optionalText("reason"),
	}}
}

func responseOutcome(s string) evev1.ResponseOutcome {
	switch s {
	case "applied":
		return evev1.ResponseOutcome_RESPONSE_OUTCOME_APPLIED
	case "refused":
		return evev1.ResponseOutcome_RESPONSE_OUTCOME_REFUSED
	case "failed":
		return evev1.ResponseOutcome_RESPONSE_OUTCOME_FAILED
	case "withdrawn":
		return evev1.ResponseOutcome_RESPONSE_OUTCOME_WITHDRAWN
	case "abandoned":
		return evev1.ResponseOutcome_RESPONSE_OUTCOME_ABANDONED
	case "expired":
		return evev1.ResponseOutcome_RESPONSE_OUTCOME_EXPIRED
	}
	return evev1.ResponseOutcome_RESPONSE_OUTCOME_UNSPECIFIED
}

func responseValue(o *object) *evev1.ResponseValue {
	return &evev1.ResponseValue{
		OptionId: o.optionalText("optionId"),
		Text:     o.optionalText("text"),
	}
}
