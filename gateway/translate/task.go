package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Payloads of the task family (contract 3.9).

// taskStarted leaves the data unset, as for an unknown type, when nothing says which call started the task: the fact
// is then of the older shape that shares the name (contract 3.16).
func taskStarted(o *object, f *evev1.Fact) {
	startedBy := child(o, "startedBy", idOf("callId"))
	if startedBy == nil || *startedBy == "" {
		return
	}
	f.Data = &evev1.Fact_TaskStarted{TaskStarted: &evev1.TaskStarted{
		TaskId:          o.id("taskId"),
		StartedByCallId: *startedBy,
		Kind:            o.text("kind"),
		Name:            o.text("name"),
	}}
}

func taskEnded(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_TaskEnded{TaskEnded: &evev1.TaskEnded{
		TaskId:  o.id("taskId"),
		Outcome: taskOutcome(o.text("outcome")),
		Reason:  o.optionalText("reason"),
		Error:   child(o, "error", eveError),
	}}
}

func taskOutcome(s string) evev1.TaskOutcome {
	switch s {
	case "completed":
		return evev1.TaskOutcome_TASK_OUTCOME_COMPLETED
	case "failed":
		return evev1.TaskOutcome_TASK_OUTCOME_FAILED
	case "cancelled":
		return evev1.TaskOutcome_TASK_OUTCOME_CANCELLED
	}
	return evev1.TaskOutcome_TASK_OUTCOME_UNSPECIFIED
}
