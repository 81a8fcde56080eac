package rpc

import (
	"context"
	"time"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/ingress"
	"github.com/evegateway/evegateway/auth/policy"
)

// Policy says who may do what.
type Policy interface {
	Check(ctx context.Context, p auth.Principal, agent string, action policy.Action, session string) error
}

// Access decides who gets in, and for how long.
type Access struct {
	// Authenticator recognises callers.
	Authenticator auth.Authenticator
	// Policy decides what they may do.
	Policy Policy
	// Recheck is the time between two looks at the rights of an open stream; zero: only the end of its credential
	// counts. Grace is how long it goes on while the question cannot be answered.
	Recheck, Grace time.Duration
	// HideFor is how long a refusal that must look like an unknown session takes: as long as the gateway takes to find
	// a session unknown.
	HideFor time.Duration
}

// principal is who calls, as the interceptor found out.
func principal(ctx context.Context) (auth.Principal, error) {
	p, ok := auth.PrincipalFrom(ctx)
	if !ok {
		return p, auth.Refuse(auth.Unauthenticated, "nobody was authenticated", nil)
	}
	return p, nil
}

// check authorises a call of a principal that ctx carries.
func (a *Access) check(ctx context.Context, agent string, action policy.Action, session string) error {
	p, err := principal(ctx)
	if err != nil {
		return err
	}
	return a.hide(ctx, a.Policy.Check(ctx, p, agent, action, session))
}

// hide passes err on; one that must look like an unknown session takes its time.
func (a *Access) hide(ctx context.Context, err error) error {
	if err == nil || auth.ReasonOf(err) != auth.Hidden {
		return err
	}
	if left := sleep(ctx, a.HideFor); left != nil {
		return left
	}
	return err
}

// watch returns when the caller's right to a stream has ended, with the reason; nil when ctx has ended first.
func (a *Access) watch(ctx context.Context, agent string, action policy.Action, session string) error {
	p, err := principal(ctx)
	if err != nil {
		return err
	}
	caller := ingress.CallerOf(ctx)
	w := auth.Watch{Every: a.Recheck, Grace: a.Grace, Ask: func(ctx context.Context) (auth.Principal, error) {
		again, err := a.Authenticator.Authenticate(ctx, caller)
		if err != nil {
			return again, err
		}
		return again, a.Policy.Check(ctx, again, agent, action, session)
	}}
	return w.Wait(ctx, p)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// authenticate returns a context that carries who calls.
func (a *Access) authenticate(ctx context.Context) (context.Context, error) {
	p, err := a.Authenticator.Authenticate(ctx, ingress.CallerOf(ctx))
	if err != nil {
		return nil, toError(err)
	}
	return auth.WithPrincipal(ctx, p), nil
}
