package ingress

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/evegateway/evegateway/auth"
)

// bearer recognises everything in the authorization entry: a static token, else a signed one, else nothing.
type bearer struct {
	tokens *tokens // nil: none
	oidc   *oidcVerifier
}

func newBearer(ctx context.Context, cfg *Config) (*bearer, error) {
	b := &bearer{}
	var err error
	if cfg.TokenFile != "" {
		if b.tokens, err = newTokens(cfg.TokenFile, cfg.Logger); err != nil {
			return nil, err
		}
	}
	if len(cfg.OIDC) > 0 {
		if b.oidc, err = newOIDC(ctx, cfg); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Authenticate implements auth.Authenticator.
func (b *bearer) Authenticate(ctx context.Context, c auth.Caller) (auth.Principal, error) {
	token, err := bearerToken(c.Authorization)
	if err != nil {
		return auth.Principal{}, err
	}
	if b.tokens != nil {
		if p, ok := b.tokens.find(token); ok {
			return p, nil
		}
	}
	if b.oidc != nil {
		return b.oidc.verify(ctx, token)
	}
	return auth.Principal{}, invalidToken(errors.New("not in the token file"))
}

// tokenPattern is token68 of RFC 9110 section 11.2.
var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// bearerToken is the only bearer token of a call, or auth.ErrNoCredential.
func bearerToken(values []auth.Secret) (string, error) {
	if len(values) == 0 {
		return "", auth.ErrNoCredential
	}
	if len(values) > 1 {
		return "", auth.Refuse(auth.Unauthenticated, "the call has several authorization entries: send one", nil)
	}
	scheme, token, _ := strings.Cut(values[0].Reveal(), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return "", auth.Refuse(auth.Unauthenticated, `the authorization entry is none of "Bearer <token>": send a bearer token`, nil)
	}
	token = strings.TrimLeft(token, " ")
	if !tokenPattern.MatchString(token) {
		return "", auth.Refuse(auth.Unauthenticated, `what follows "Bearer" in the authorization entry is no token: send one, without spaces`, nil)
	}
	return token, nil
}

func invalidToken(cause error) *auth.Error {
	return auth.Refuse(auth.Unauthenticated, "the token is none that this gateway takes: get a new one", cause)
}
