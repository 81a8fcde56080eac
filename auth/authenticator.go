package auth

import (
	"context"
	"errors"
)

// Authenticator recognises callers by one kind of credential.
type Authenticator interface {
	// Authenticate returns who calls. Where the call carries no credential of this kind, the error is ErrNoCredential.
	// Any other error is final: a credential that does not hold is never passed on to a weaker authenticator.
	Authenticate(ctx context.Context, c Caller) (Principal, error)
}

// Screener is an Authenticator that sees every call before anyone decides it, and can refuse it: for credentials whose
// mere presence is an attempt to be someone else.
type Screener interface {
	Authenticator
	Screen(c Caller) error
}

// ErrNoCredential says that the call carries no credential of the authenticator's kind.
var ErrNoCredential = errors.New("no credential of this kind")

type chain []Authenticator

// Chain asks authenticators in their order; the first that recognises its kind of credential decides. Nothing
// recognised: Unauthenticated.
func Chain(authenticators ...Authenticator) Authenticator { return chain(authenticators) }

// Authenticate implements Authenticator. The error is an *Error or ctx's.
func (list chain) Authenticate(ctx context.Context, c Caller) (Principal, error) {
	if err := list.Screen(c); err != nil {
		return Principal{}, err
	}
	for _, a := range list {
		p, err := a.Authenticate(ctx, c)
		if !errors.Is(err, ErrNoCredential) {
			return p, err
		}
	}
	return Principal{}, Refuse(Unauthenticated,
		"the call carries no credential that this gateway takes: send one, for example in the metadata entry authorization", nil)
}

// Screen implements Screener, so that chains can be links of chains.
func (list chain) Screen(c Caller) error {
	for _, a := range list {
		if s, ok := a.(Screener); ok {
			if err := s.Screen(c); err != nil {
				return err
			}
		}
	}
	return nil
}
