package ingress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/dialguard"
)

// OIDC takes the signed tokens of one issuer: ID tokens and JWT access tokens alike.
type OIDC struct {
	// Issuer is its URL, exactly as tokens name it: https, or http on loopback.
	Issuer string
	// KeysURL is where its keys are. Empty: asked of the issuer (OpenID Connect Discovery).
	KeysURL string
	// Audiences are who tokens must be for, one of them at least. Required: without, a token for anyone would do.
	Audiences []string
	// Algorithms that tokens may be signed with. Default: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512,
	// EdDSA. There is no way to allow none, nor the symmetric ones: a key that everyone can fetch verifies nothing there.
	Algorithms []string
	// Skew is how far the clocks may be apart. Default 30 s; negative: not at all. Tokens are taken so much before they
	// are valid and so much after they have expired.
	Skew time.Duration
	// IDClaim is the claim that is the principal's id. Default sub, the only one that issuers promise never to reuse.
	IDClaim string
	// Attributes maps names of attributes to claims: a string, number or truth value, or a list of these. A claim that
	// is missing makes no attribute, one of another form makes the token bad. A claim that begins with / is a JSON
	// pointer (RFC 6901). The sessions a token is for go to auth.AttributeSessions.
	Attributes map[string]string

	// Refetch is the least time between two fetches of keys because of tokens with unknown keys. Default 10 s.
	Refetch time.Duration
	// Refresh is the age from which keys are fetched anew, in the background. So long a withdrawn key is taken, at most.
	// Default 15 min.
	Refresh time.Duration
	// MaxStale is the age from which keys are not used any more, if the issuer cannot be reached. Default 24 h.
	MaxStale time.Duration
}

// supported are the algorithms that a published key can verify.
func supported() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}
}

func (o *OIDC) complete() error {
	if err := checkOrigin(o.Issuer, nil); err != nil {
		return fmt.Errorf("issuer %q: %w", o.Issuer, err)
	}
	if o.KeysURL != "" {
		if err := checkOrigin(o.KeysURL, nil); err != nil {
			return fmt.Errorf("keys of issuer %q: %w", o.Issuer, err)
		}
	}
	if len(o.Audiences) == 0 || slices.Contains(o.Audiences, "") {
		return fmt.Errorf("issuer %q: no audience, or an empty one: name what its tokens for this gateway have in aud", o.Issuer)
	}
	if len(o.Algorithms) == 0 {
		o.Algorithms = supported()
	}
	for _, alg := range o.Algorithms {
		if !slices.Contains(supported(), alg) {
			return fmt.Errorf("issuer %q: algorithm %q cannot be allowed, only: %s", o.Issuer, alg, strings.Join(supported(), ", "))
		}
	}
	for name := range o.Attributes {
		if !attributePattern.MatchString(name) {
			return fmt.Errorf("issuer %q: %q is no name for an attribute", o.Issuer, name)
		}
	}
	if o.IDClaim == "" {
		o.IDClaim = "sub"
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&o.Skew, 30 * time.Second}, {&o.Refetch, 10 * time.Second}, {&o.Refresh, 15 * time.Minute}, {&o.MaxStale, 24 * time.Hour}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	o.Skew = max(o.Skew, 0)
	if o.Refetch < 0 || o.Refresh < 0 || o.MaxStale < o.Refresh {
		return fmt.Errorf("issuer %q: a negative time, or keys that are too old before they are renewed", o.Issuer)
	}
	return nil
}

// checkOrigin says whether keys may be fetched from a URL: https, or plain http on this machine, where it is also
// plain for who names the URL.
func checkOrigin(text string, from *url.URL) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return errors.New("not a URL of a host, without credentials and fragment")
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http" || !isLoopback(u.Hostname()) || from != nil && from.Scheme != "http":
		return errors.New("must be https: whoever can change the keys can be anyone")
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// oidcVerifier verifies the tokens of all issuers.
type oidcVerifier struct {
	algorithms []jose.SignatureAlgorithm // of all issuers
	issuers    map[string]*issuer
}

// issuer is one of them.
type issuer struct {
	OIDC
	keys *keySet
}

func newOIDC(ctx context.Context, cfg *Config) (*oidcVerifier, error) {
	transport := cfg.Transport
	if transport == nil {
		transport = defaultTransport()
	}
	client := &http.Client{
		Transport:     limited{transport},
		Timeout:       fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	v := &oidcVerifier{issuers: map[string]*issuer{}}
	for _, o := range cfg.OIDC {
		if err := o.complete(); err != nil {
			return nil, fmt.Errorf("callers: %w", err)
		}
		if v.issuers[o.Issuer] != nil {
			return nil, fmt.Errorf("callers: issuer %q twice", o.Issuer)
		}
		v.issuers[o.Issuer] = &issuer{OIDC: o, keys: &keySet{
			ctx: ctx, client: client, log: cfg.Logger, issuer: o.Issuer, fixed: o.KeysURL,
			refetch: o.Refetch, refresh: o.Refresh, maxStale: o.MaxStale,
		}}
		for _, alg := range o.Algorithms {
			v.algorithms = append(v.algorithms, jose.SignatureAlgorithm(alg))
		}
	}
	return v, nil
}

func defaultTransport() http.RoundTripper {
	dialer := &net.Dialer{Timeout: fetchTimeout, ControlContext: dialguard.Guard{}.Control}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: fetchTimeout,
		IdleConnTimeout:     time.Second, // asked so rarely that nothing is worth keeping
		MaxIdleConns:        1,
	}
}

// verify returns who a token stands for. What it does not take it refuses: there is nobody behind it to ask.
func (v *oidcVerifier) verify(ctx context.Context, token string) (auth.Principal, error) {
	// The algorithm is checked before anything else is believed.
	signed, err := jose.ParseSignedCompact(token, v.algorithms)
	if err != nil || len(signed.Signatures) != 1 {
		return auth.Principal{}, invalidToken(errors.New("not a signed token, or signed in a way that is not allowed"))
	}
	claims, err := parseClaims(signed.UnsafePayloadWithoutVerification())
	if err != nil {
		return auth.Principal{}, invalidToken(err)
	}
	name, _ := claims.text("iss")
	iss := v.issuers[name] // whoever it names must have signed it
	if iss == nil {
		return auth.Principal{}, invalidToken(errors.New("the issuer is none that is configured"))
	}
	header := signed.Signatures[0].Header
	if !acceptedType(header) {
		return auth.Principal{}, invalidToken(errors.New("the type says that it is a token for something else"))
	}
	if err := iss.verifySignature(ctx, token, header); err != nil {
		return auth.Principal{}, err
	}
	p, err := iss.principal(claims, time.Now())
	if err != nil {
		return auth.Principal{}, err
	}
	p.Bearer.Token = auth.NewSecret(token)
	return p, nil
}

// acceptedType says whether a token's type is one of ID and access tokens, or missing (RFC 8725 section 3.11): issuers
// sign other things with the same keys.
func acceptedType(h jose.Header) bool {
	if _, there := h.ExtraHeaders[jose.HeaderType]; !there {
		return true
	}
	text, _ := h.ExtraHeaders[jose.HeaderType].(string)
	switch strings.TrimPrefix(strings.ToLower(text), "application/") {
	case "jwt", "at+jwt":
		return true
	}
	return false
}

// verifySignature verifies that the issuer has signed the token, which says so.
func (i *issuer) verifySignature(ctx context.Context, token string, h jose.Header) error {
	// Audience and times are checked with this package's own reading of the claims.
	cfg := &oidc.Config{SupportedSigningAlgs: i.Algorithms, SkipClientIDCheck: true, SkipExpiryCheck: true}
	for _, fresh := range []bool{false, true} {
		keys, err := i.keys.find(ctx, h.KeyID, h.Algorithm, fresh)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return invalidToken(errors.New("signed with a key that the issuer does not publish"))
		}
		_, err = oidc.NewVerifier(i.Issuer, &oidc.StaticKeySet{PublicKeys: keys}, cfg).Verify(ctx, token)
		if err == nil {
			return nil
		}
		if h.KeyID != "" { // that very key has not signed it
			break
		}
	}
	return invalidToken(errors.New("the signature does not verify"))
}

// principal makes a principal of verified claims.
func (i *issuer) principal(c claims, now time.Time) (auth.Principal, error) {
	audiences, err := c.list("aud")
	if err != nil {
		return auth.Principal{}, invalidToken(err)
	}
	if !slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(i.Audiences, a) }) {
		return auth.Principal{}, auth.Refuse(auth.Unauthenticated,
			"the token is not meant for this gateway: ask its issuer for one with an audience that the gateway takes",
			errors.New("the audience is none that is configured"))
	}
	expires, ok, err := c.time("exp")
	if err != nil || !ok {
		return auth.Principal{}, invalidToken(errors.New("no expiry, or one that is no time"))
	}
	expires = expires.Add(i.Skew)
	if !now.Before(expires) {
		return auth.Principal{}, auth.Refuse(auth.Expired, "the token has expired: get a new one", nil)
	}
	for _, name := range []string{"nbf", "iat"} {
		t, ok, err := c.time(name)
		if err != nil {
			return auth.Principal{}, invalidToken(err)
		}
		if ok && t.After(now.Add(i.Skew)) {
			return auth.Principal{}, auth.Refuse(auth.Unauthenticated,
				"the token is not valid yet: wait, or set the clocks of its issuer and of this gateway", nil)
		}
	}
	id, ok := c.text(i.IDClaim)
	if !ok || id == "" {
		return auth.Principal{}, invalidToken(fmt.Errorf("the claim %s, which is the id, is no string or empty", i.IDClaim))
	}
	p := auth.Principal{ID: id, Issuer: i.Issuer, Kind: auth.KindOIDC, ExpiresAt: expires,
		Attributes: map[string][]string{}, Bearer: auth.Bearer{Audiences: audiences}}
	for name, claim := range i.Attributes {
		values, err := c.list(claim)
		if err != nil {
			return auth.Principal{}, invalidToken(err)
		}
		if len(values) > 0 {
			p.Attributes[name] = values
		}
	}
	return p, nil
}
