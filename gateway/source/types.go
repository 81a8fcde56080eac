package source

// knownType returns the shared copy of a type name that Eve is known to write, so that the name costs no memory per
// record. It is no judgement: other names are carried all the same.
func knownType(name string) (string, bool) {
	switch name {
	// Protocol 27: facts and progress (contract 3.0).
	case "session.started":
		return "session.started", true
	case "session.ended":
		return "session.ended", true
	case "delivery.admitted":
		return "delivery.admitted", true
	case "delivery.consumed":
		return "delivery.consumed", true
	case "delivery.settled":
		return "delivery.settled", true
	case "turn.started":
		return "turn.started", true
	case "turn.paused":
		return "turn.paused", true
	case "turn.resumed":
		return "turn.resumed", true
	case "turn.settled":
		return "turn.settled", true
	case "model.requested":
		return "model.requested", true
	case "model.started":
		return "model.started", true
	case "model.settled":
		return "model.settled", true
	case "content.completed":
		return "content.completed", true
	case "call.requested":
		return "call.requested", true
	case "call.started":
		return "call.started", true
	case "call.settled":
		return "call.settled", true
	case "task.started":
		return "task.started", true
	case "task.ended":
		return "task.ended", true
	case "interaction.opened":
		return "interaction.opened", true
	case "interaction.settled":
		return "interaction.settled", true
	case "response.submitted":
		return "response.submitted", true
	case "response.admitted":
		return "response.admitted", true
	case "response.settled":
		return "response.settled", true
	case "child.opened":
		return "child.opened", true
	case "context.started":
		return "context.started", true
	case "context.settled":
		return "context.settled", true
	case "usage.recorded":
		return "usage.recorded", true
	case "content.delta":
		return "content.delta", true
	case "call.input":
		return "call.input", true
	case "call.progress":
		return "call.progress", true
	// Protocol 21 to 26 (contract 5.5), names that 27 kept left out.
	case "message.received":
		return "message.received", true
	case "step.started":
		return "step.started", true
	case "reasoning.appended":
		return "reasoning.appended", true
	case "reasoning.completed":
		return "reasoning.completed", true
	case "message.appended":
		return "message.appended", true
	case "message.completed":
		return "message.completed", true
	case "action.input.appended":
		return "action.input.appended", true
	case "actions.requested":
		return "actions.requested", true
	case "action.partial":
		return "action.partial", true
	case "action.result":
		return "action.result", true
	case "task.settled":
		return "task.settled", true
	case "agent.started":
		return "agent.started", true
	case "input.requested":
		return "input.requested", true
	case "input.resolved":
		return "input.resolved", true
	case "approval.candidate":
		return "approval.candidate", true
	case "approval.settled":
		return "approval.settled", true
	case "authorization.required":
		return "authorization.required", true
	case "authorization.completed":
		return "authorization.completed", true
	case "result.completed":
		return "result.completed", true
	case "compaction.requested":
		return "compaction.requested", true
	case "compaction.completed":
		return "compaction.completed", true
	case "context.cleared":
		return "context.cleared", true
	case "step.completed":
		return "step.completed", true
	case "step.failed":
		return "step.failed", true
	case "turn.waiting":
		return "turn.waiting", true
	case "turn.completed":
		return "turn.completed", true
	case "turn.cancelled":
		return "turn.cancelled", true
	case "turn.failed":
		return "turn.failed", true
	case "session.waiting":
		return "session.waiting", true
	case "session.completed":
		return "session.completed", true
	case "session.failed":
		return "session.failed", true
	}
	return "", false
}
