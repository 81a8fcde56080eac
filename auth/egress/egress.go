package egress

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/evegateway/evegateway/auth"
)

// Config says how the gateway authenticates itself to one agent: at most one of Bearer, Basic, VercelOIDC and
// PassThrough, and any Headers besides.
type Config struct {
	// Bearer is a token for authorization.
	Bearer Value
	// Basic are a user and a password for authorization. Nil: none.
	Basic *Basic
	// VercelOIDC is a token for authorization and for x-vercel-trusted-oidc-idp-token.
	VercelOIDC Value
	// PassThrough sends the caller's own token. Nil: never.
	PassThrough *PassThrough
	// Headers go with every request. The ones above win over a header of the same name (contract 7.1).
	Headers []Header
}

// Basic are a user and a password. Both empty send nothing.
type Basic struct {
	User, Password Value
}

// Header is a header of its own.
type Header struct {
	// Name is any header that is neither the connection's nor the protocol's.
	Name  string
	Value Value
}

// PassThrough hands the caller's own token on to the agent: only one that an OIDC issuer has signed, for an audience
// that is listed, and only over https. A caller with another credential, or none, is refused: the gateway's own would
// make it a confused deputy.
type PassThrough struct {
	// Audiences are what the agent is called in aud. Required.
	Audiences []string
	// URL is the agent's base URL, to see that it is https. Required.
	URL string
}

// HeaderVercelToken is the second header of Vercel OIDC.
const HeaderVercelToken = "X-Vercel-Trusted-Oidc-Idp-Token" //nolint:gosec // the name of a header

const authorization = "Authorization"

// Source gives the headers of a configuration. Safe for concurrent use.
type Source struct {
	cfg Config
}

// New checks a configuration, and that everything it names can be read now.
func New(cfg Config) (*Source, error) {
	modes := 0
	for _, on := range []bool{!cfg.Bearer.isZero(), cfg.Basic != nil, !cfg.VercelOIDC.isZero(), cfg.PassThrough != nil} {
		if on {
			modes++
		}
	}
	if modes > 1 {
		return nil, errors.New("credentials for the agent: more than one of bearer, basic, Vercel OIDC and pass-through")
	}
	if p := cfg.PassThrough; p != nil {
		if len(p.Audiences) == 0 || slices.Contains(p.Audiences, "") {
			return nil, errors.New("credentials for the agent: pass-through needs the audiences whose tokens the agent may see")
		}
		if u, err := url.Parse(p.URL); err != nil || u.Scheme != "https" {
			return nil, errors.New("credentials for the agent: a caller's token is passed through over https only")
		}
	}
	names := map[string]bool{}
	for _, h := range cfg.Headers {
		if err := checkName(h.Name); err != nil {
			return nil, err
		}
		name := http.CanonicalHeaderKey(h.Name)
		if names[name] {
			return nil, fmt.Errorf("credentials for the agent: header %s twice", name)
		}
		names[name] = true
	}
	s := &Source{cfg: cfg}
	s.cfg.Headers = slices.Clone(cfg.Headers)
	if _, err := s.own(); err != nil {
		return nil, err
	}
	return s, nil
}

var namePattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// checkName refuses headers that belong to the connection or to the protocol with Eve.
func checkName(name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("credentials for the agent: %q is no name of a header", name)
	}
	switch lower := strings.ToLower(name); {
	case slices.Contains([]string{
		"accept", "accept-encoding", "cache-control", "connection", "content-encoding", "content-length", "content-type",
		"expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
	}, lower), strings.HasPrefix(lower, "proxy-"), strings.HasPrefix(lower, "x-eve-"):
		return fmt.Errorf("credentials for the agent: header %s is the gateway's own to set", lower)
	}
	return nil
}

// PassesThrough says whether requests carry the caller's own token. Then nothing that one caller has read may be shared
// with another one.
func (s *Source) PassesThrough() bool { return s.cfg.PassThrough != nil }

// Headers returns the headers of one attempt, for the caller to keep. Nothing is cached, so refresh changes nothing.
// With pass-through the error is an *auth.Error where the caller's token, which ctx must carry (auth.WithPrincipal),
// cannot be used.
func (s *Source) Headers(ctx context.Context, _ bool) (http.Header, error) {
	h, err := s.own()
	if err != nil || s.cfg.PassThrough == nil {
		return h, err
	}
	token, err := s.callers(ctx)
	if err != nil {
		return nil, err
	}
	h.Set(authorization, "Bearer "+token)
	return h, nil
}

// own are the gateway's own headers: the custom ones, then over them those that authenticate.
func (s *Source) own() (http.Header, error) {
	custom, err := s.custom()
	if err != nil {
		return nil, err
	}
	h, err := s.authenticating()
	if err != nil {
		return nil, err
	}
	maps.Copy(custom, h)
	return custom, nil
}

func (s *Source) custom() (http.Header, error) {
	h := http.Header{}
	for _, c := range s.cfg.Headers {
		text, err := c.Value.header()
		if err != nil {
			return nil, fmt.Errorf("reading the header %s: %w", c.Name, err)
		}
		if text != "" {
			h.Set(c.Name, text)
		}
	}
	return h, nil
}

func (s *Source) authenticating() (http.Header, error) {
	h := http.Header{}
	switch c := s.cfg; {
	case !c.Bearer.isZero():
		token, err := c.Bearer.token()
		if err != nil {
			return nil, fmt.Errorf("reading the bearer token: %w", err)
		}
		if token != "" {
			h.Set(authorization, "Bearer "+token)
		}
	case !c.VercelOIDC.isZero():
		token, err := c.VercelOIDC.token()
		if err != nil {
			return nil, fmt.Errorf("reading the token of Vercel OIDC: %w", err)
		}
		if token != "" {
			h.Set(authorization, "Bearer "+token)
			h.Set(HeaderVercelToken, token)
		}
	case c.Basic != nil:
		pair, err := c.Basic.pair()
		if err != nil {
			return nil, fmt.Errorf("reading the basic credentials: %w", err)
		}
		if pair != "" {
			h.Set(authorization, "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
		}
	}
	return h, nil
}

func (b *Basic) pair() (string, error) {
	user, err := b.User.line()
	if err != nil {
		return "", fmt.Errorf("user: %w", err)
	}
	password, err := b.Password.line()
	if err != nil {
		return "", fmt.Errorf("password: %w", err)
	}
	switch {
	case user == "" && password == "":
		return "", nil
	case user == "":
		return "", errors.New("a password without a user")
	case strings.Contains(user, ":"):
		return "", errors.New("the user's name has a colon")
	}
	return user + ":" + password, nil
}

// callers returns the caller's own token, if the agent may see it.
func (s *Source) callers(ctx context.Context) (string, error) {
	p, ok := auth.PrincipalFrom(ctx)
	switch {
	case !ok || p.Bearer.Token.IsZero():
		return "", auth.Refuse(auth.Unauthenticated,
			"this agent is called with the caller's own token, and this call has none that can be passed on: send a token of an OpenID Connect issuer", nil)
	case p.Expired(time.Now()):
		return "", auth.Refuse(auth.Expired, "the token that is passed on to the agent has expired: get a new one", nil)
	case !slices.ContainsFunc(p.Bearer.Audiences, func(a string) bool { return slices.Contains(s.cfg.PassThrough.Audiences, a) }):
		return "", auth.Refuse(auth.Unauthenticated,
			"this agent is called with the caller's own token, and this one is not for it: get one with the agent's audience too", nil)
	}
	return p.Bearer.Token.Reveal(), nil
}
