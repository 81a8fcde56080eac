package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Payloads of the session family (contract 3.3).

func sessionStarted(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_SessionStarted{SessionStarted: &evev1.SessionStarted{
		Parent:               child(o, "parent", sessionParent),
		PredecessorSessionId: child(o, "predecessor", idOf("sessionId")),
		Runtime:              child(o, "runtime", runtimeIdentity),
		Trace:                child(o, "trace", traceContext),
	}}
}

func sessionEnded(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_SessionEnded{SessionEnded: &evev1.SessionEnded{
		Outcome: sessionOutcome(o.text("outcome")),
		Cause:   child(o, "cause", cause),
		Error:   child(o, "error", eveError),
	}}
}

func sessionOutcome(s string) evev1.SessionOutcome {
	switch s {
	case "completed":
		return evev1.SessionOutcome_SESSION_OUTCOME_COMPLETED
	case "failed":
		return evev1.SessionOutcome_SESSION_OUTCOME_FAILED
	}
	return evev1.SessionOutcome_SESSION_OUTCOME_UNSPECIFIED
}

func sessionParent(o *object) *evev1.SessionParent {
	return &evev1.SessionParent{
		SessionId: o.text("sessionId"),
		CallId:    o.text("callId"),
	}
}

func runtimeIdentity(o *object) *evev1.RuntimeIdentity {
	return &evev1.RuntimeIdentity{
		AgentId:    o.text("agentId"),
		AgentName:  o.optionalText("agentName"),
		EveVersion: o.text("eveVersion"),
		Build:      child(o, "build", runtimeBuild),
	}
}

func runtimeBuild(o *object) *evev1.RuntimeBuild {
	return &evev1.RuntimeBuild{
		DeployedAt: o.optionalText("deployedAt"),
		GitBranch:  o.optionalText("gitBranch"),
		GitSha:     o.optionalText("gitSha"),
	}
}
