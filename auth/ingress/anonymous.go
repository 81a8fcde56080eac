package ingress

import (
	"context"

	"github.com/evegateway/evegateway/auth"
)

// Anonymous takes every caller for one and the same principal.
type Anonymous struct {
	// Anywhere also takes callers of other machines. Without it, connections must be local: loopback or a Unix socket.
	Anywhere bool
}

// Authenticate implements auth.Authenticator.
func (a *Anonymous) Authenticate(_ context.Context, c auth.Caller) (auth.Principal, error) {
	if !a.Anywhere && !c.Local() {
		return auth.Principal{}, auth.Refuse(auth.Unauthenticated,
			"this gateway asks for no credential and therefore takes calls from its own machine only: configure how callers authenticate", nil)
	}
	return auth.Anonymous(), nil
}
