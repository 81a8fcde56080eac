package fakeeve

import (
	"net/http"
	"slices"
	"strings"
)

// Authenticator decides who may use the server: the caller's principal, or why not.
type Authenticator func(*http.Request) (principal string, denied *Denied)

// Denied is a refusal (contract 7.2).
type Denied struct {
	// Status is 401 or 403.
	Status int
	// Code and Text are those of the error body.
	Code, Text string
	// Challenge is the www-authenticate header; empty: none.
	Challenge string
}

// Credentials are a fixed set of credentials; its Authenticate is an [Authenticator].
type Credentials struct {
	// Bearer maps tokens to principals.
	Bearer map[string]string
	// Basic maps users, who are principals, to passwords.
	Basic map[string]string
	// Forbidden are principals that are known and refused all the same.
	Forbidden []string
	// Realm of the Basic challenge. Default "eve".
	Realm string
}

// Authenticate implements [Authenticator]. A challenge names each scheme that has credentials, Bearer when none has.
func (c Credentials) Authenticate(r *http.Request) (string, *Denied) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	principal, bearer := "", strings.EqualFold(scheme, "Bearer")
	if bearer {
		principal = c.Bearer[strings.TrimSpace(token)]
	} else if user, password, ok := r.BasicAuth(); ok {
		if want, known := c.Basic[user]; known && want == password {
			principal = user
		}
	}
	if principal == "" {
		return "", &Denied{
			Status: http.StatusUnauthorized, Code: "unauthorized", Text: "Authorization is required for this route.",
			Challenge: c.challenge(bearer),
		}
	}
	if slices.Contains(c.Forbidden, principal) {
		return "", &Denied{Status: http.StatusForbidden, Code: "forbidden", Text: "This principal may not use this agent."}
	}
	return principal, nil
}

func (c Credentials) challenge(badToken bool) string {
	var schemes []string
	if len(c.Bearer) > 0 || len(c.Basic) == 0 {
		challenge := "Bearer"
		if badToken {
			challenge = `Bearer error="invalid_token"`
		}
		schemes = append(schemes, challenge)
	}
	if len(c.Basic) > 0 {
		realm := c.Realm
		if realm == "" {
			realm = "eve"
		}
		schemes = append(schemes, `Basic realm="`+realm+`", charset="UTF-8"`)
	}
	return strings.Join(schemes, ", ")
}

// admitted authenticates the request, and answers it when it is refused.
func (x *exchange) admitted() bool {
	x.server.mu.Lock()
	auth := x.server.auth
	x.server.mu.Unlock()
	principal, denied := "local", (*Denied)(nil)
	if auth != nil {
		principal, denied = auth(x.r)
	}
	if denied == nil {
		x.server.ledger.note(x.rec, func(rec *Request) { rec.Principal = principal })
		return true
	}
	x.w.Header().Set("Cache-Control", "no-store")
	if denied.Challenge != "" {
		x.w.Header().Set("WWW-Authenticate", denied.Challenge)
	}
	x.answer(denied.Status, refusal{Code: denied.Code, Error: denied.Text})
	return false
}
