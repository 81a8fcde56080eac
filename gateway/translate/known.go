package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Known reports whether this build decodes records of a type: the 27 fact types and 3 progress types of contract 3.0.
func Known(typ string) bool { return factPayload(typ) != nil || progressPayload(typ) != nil }

// factPayload returns the function that sets the data of a fact from its payload, nil for an unknown type.
func factPayload(typ string) func(*object, *evev1.Fact) {
	switch typ {
	case "session.started":
		return sessionStarted
	case "session.ended":
		return sessionEnded
	case "delivery.admitted":
		return deliveryAdmitted
	case "delivery.consumed":
		return deliveryConsumed
	case "delivery.settled":
		return deliverySettled
	case "turn.started":
		return turnStarted
	case "turn.paused":
		return turnPaused
	case "turn.resumed":
		return turnResumed
	case "turn.settled":
		return turnSettled
	case "model.requested":
		return modelRequested
	case "model.started":
		return modelStarted
	case "model.settled":
		return modelSettled
	case "content.completed":
		return contentCompleted
	case "call.requested":
		return callRequested
	case "call.started":
		return callStarted
	case "call.settled":
		return callSettled
	case "task.started":
		return taskStarted
	case "task.ended":
		return taskEnded
	case "interaction.opened":
		return interactionOpened
	case "interaction.settled":
		return interactionSettled
	case "response.submitted":
		return responseSubmitted
	case "response.admitted":
		return responseAdmitted
	case "response.settled":
		return responseSettled
	case "child.opened":
		return childOpened
	case "context.started":
		return contextStarted
	case "context.settled":
		return contextSettled
	case "usage.recorded":
		return usageRecorded
	}
	return nil
}

// progressPayload is to progress records what factPayload is to facts.
func progressPayload(typ string) func(*object, *evev1.Progress) {
	switch typ {
	case "content.delta":
		return contentDelta
	case "call.input":
		return callInput
	case "call.progress":
		return callProgress
	}
	return nil
}
