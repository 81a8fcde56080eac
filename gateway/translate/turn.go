package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Payloads of the turn family (contract 3.5).

func turnStarted(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_TurnStarted{TurnStarted: &evev1.TurnStarted{
		TurnId:        o.id("turnId"),
		Cause:         child(o, "cause", cause),
		FollowsTurnId: o.optionalText("follows"),
		Trace:         child(o, "trace", traceContext),
	}}
}

func turnPaused(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_TurnPaused{TurnPaused: &evev1.TurnPaused{
		TurnId:   o.id("turnId"),
		Awaiting: children(o, "awaiting", awaited),
	}}
}

func turnResumed(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_TurnResumed{TurnResumed: &evev1.TurnResumed{
		TurnId: o.id("turnId"),
		Cause:  child(o, "cause", cause),
	}}
}

func turnSettled(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_TurnSettled{TurnSettled: &evev1.TurnSettled{
		TurnId:       o.id("turnId"),
		Outcome:      turnOutcome(o.text("outcome")),
		ReplyPartIds: o.texts("reply"),
		Cause:        child(o, "cause", cause),
		Error:        child(o, "error", eveError),
	}}
}

func turnOutcome(s string) evev1.TurnOutcome {
	switch s {
	case "completed":
		return evev1.TurnOutcome_TURN_OUTCOME_COMPLETED
	case "failed":
		return evev1.TurnOutcome_TURN_OUTCOME_FAILED
	case "cancelled":
		return evev1.TurnOutcome_TURN_OUTCOME_CANCELLED
	}
	return evev1.TurnOutcome_TURN_OUTCOME_UNSPECIFIED
}

func awaited(o *object) *evev1.Awaited {
	m := new(evev1.Awaited)
	switch {
	case o.present("interactionId") != nil:
		m.Awaited = &evev1.Awaited_InteractionId{InteractionId: o.text("interactionId")}
	case o.present("callId") != nil:
		m.Awaited = &evev1.Awaited_CallId{CallId: o.text("callId")}
	case o.present("taskId") != nil:
		m.Awaited = &evev1.Awaited_TaskId{TaskId: o.text("taskId")}
	}
	return m
}
