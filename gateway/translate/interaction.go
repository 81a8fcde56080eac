package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Payloads of the interaction family (contract 3.10).

func interactionOpened(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_InteractionOpened{InteractionOpened: &evev1.InteractionOpened{
		InteractionId: o.id("interactionId"),
		Subject:       child(o, "subject", owner),
		Request:       child(o, "request", interactionRequest),
		Origin:        child(o, "origin", interactionOrigin),
		Audience:      child(o, "audience", interactionAudience),
	}}
}

func interactionSettled(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_InteractionSettled{InteractionSettled: &evev1.InteractionSettled{
		InteractionId: o.id("interactionId"),
		Outcome:       interactionOutcome(o.text("outcome")),
		Reason:        o.optionalText("reason"),
		Cause:         child(o, "cause", cause),
		ResponseJson:  child(o, "response", (*object).json),
	}}
}

func interactionOutcome(s string) evev1.InteractionOutcome {
	switch s {
	case "accepted":
		return evev1.InteractionOutcome_INTERACTION_OUTCOME_ACCEPTED
	case "declined":
		return evev1.InteractionOutcome_INTERACTION_OUTCOME_DECLINED
	case "invalid":
		return evev1.InteractionOutcome_INTERACTION_OUTCOME_INVALID
	case "failed":
		return evev1.InteractionOutcome_INTERACTION_OUTCOME_FAILED
	case "withdrawn":
		return evev1.InteractionOutcome_INTERACTION_OUTCOME_WITHDRAWN
	case "interrupted":
		return evev1.InteractionOutcome_INTERACTION_OUTCOME_INTERRUPTED
	case "abandoned":
		return evev1.InteractionOutcome_INTERACTION_OUTCOME_ABANDONED
	case "expired":
		return evev1.InteractionOutcome_INTERACTION_OUTCOME_EXPIRED
	}
	return evev1.InteractionOutcome_INTERACTION_OUTCOME_UNSPECIFIED
}

func interactionRequest(o *object) *evev1.InteractionRequest {
	return &evev1.InteractionRequest{
		Kind:          o.text("kind"),
		Prompt:        o.text("prompt"),
		Title:         o.optionalText("title"),
		Options:       children(o, "options", interactionOption),
		AllowFreeform: o.optionalFlag("allowFreeform"),
		Display:       o.optionalText("display"),
		Link:          child(o, "link", interactionLink),
		SignIn:        child(o, "signIn", signInChallenge),
	}
}

func interactionOption(o *object) *evev1.InteractionOption {
	return &evev1.InteractionOption{
		Id:          o.text("id"),
		Label:       o.text("label"),
		Description: o.optionalText("description"),
		Style:       o.optionalText("style"),
	}
}

func interactionLink(o *object) *evev1.InteractionLink {
	return &evev1.InteractionLink{
		Url:   o.text("url"),
		Label: o.optionalText("label"),
	}
}

func signInChallenge(o *object) *evev1.SignInChallenge {
	return &evev1.SignInChallenge{
		Name:         o.text("name"),
		DisplayName:  o.optionalText("displayName"),
		Url:          o.optionalText("url"),
		UserCode:     o.optionalText("userCode"),
		ExpiresAt:    o.optionalText("expiresAt"),
		Instructions: o.optionalText("instructions"),
		CallbackUrl:  o.optionalText("callbackUrl"),
	}
}

func interactionOrigin(o *object) *evev1.InteractionOrigin {
	return &evev1.InteractionOrigin{
		SessionId:     o.text("sessionId"),
		InteractionId: o.text("interactionId"),
		Call:          child(o, "call", interactionOriginCall),
	}
}

func interactionOriginCall(o *object) *evev1.InteractionOriginCall {
	return &evev1.InteractionOriginCall{
		CallId:    o.text("callId"),
		Name:      o.text("name"),
		InputJson: o.verbatim("input"),
	}
}

func interactionAudience(o *object) *evev1.InteractionAudience {
	return &evev1.InteractionAudience{PrincipalIds: o.texts("principalIds")}
}
