package ingress_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/authtest"
	"github.com/evegateway/evegateway/auth/ingress"
)

// config takes the tokens of an issuer, reached without a network.
func config(i *authtest.Issuer, log *logged, change ...func(*ingress.OIDC)) ingress.Config {
	o := ingress.OIDC{Issuer: i.URL, Audiences: []string{authtest.Audience, "gateway-2"}, Skew: 10 * time.Second, Attributes: map[string]string{
		"team": "https://example.org/team", "role": "/realm_access/roles", "odd": "/a~1b/~0c", auth.AttributeSessions: "sessions",
	}}
	for _, c := range change {
		c(&o)
	}
	return ingress.Config{OIDC: []ingress.OIDC{o}, Transport: i.Transport(), Logger: log.logger()}
}

func payload(t *testing.T, claims map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// claimsOf is a claim set in which text stands behind what is usual.
func claimsOf(t *testing.T, i *authtest.Issuer, text string) []byte {
	t.Helper()
	p := payload(t, i.Claims("ada", nil))
	return append(p[:len(p)-1], text...)
}

// TestClaims: whom a token that is signed as it should be stands for, or why for nobody.
func TestClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := authtest.NewIssuer(t)
		var log logged
		a := newAuthenticator(t, config(issuer, &log))
		now := time.Now()
		in := func(d time.Duration) int64 { return now.Add(d).Unix() }
		type M = map[string]any
		for _, tt := range []struct {
			name    string
			token   string
			refuse  auth.Reason // zero: taken
			id      string      // default ada
			attrs   map[string][]string
			expires time.Duration // default one hour, plus the skew
			aud     []string      // default authtest.Audience
		}{
			{name: "plain", token: issuer.Token("ada", nil)},
			{name: "another subject", token: issuer.Token("https://idp/ada|7", nil), id: "https://idp/ada|7"},
			{name: "attributes", token: issuer.Token("ada", M{"https://example.org/team": "looms", "realm_access": M{"roles": []any{"a", "b", 7, true, false}},
				"a/b": M{"~c": 1.5}, "sessions": []string{"wrun_1", "wrun_2"}, "other": M{"x": 1}}),
				attrs: map[string][]string{"team": {"looms"}, "role": {"a", "b", "7", "true", "false"}, "odd": {"1.5"}, "sessions": {"wrun_1", "wrun_2"}}},
			{name: "no attributes", token: issuer.Token("ada", M{"https://example.org/team": json.RawMessage("null"), "realm_access": "x", "a/b": M{}, "sessions": []string{}})},
			{name: "an attribute that is an object", token: issuer.Token("ada", M{"sessions": M{"wrun_1": true}}), refuse: auth.Unauthenticated},
			{name: "an attribute with an object", token: issuer.Token("ada", M{"sessions": []any{"wrun_1", M{}}}), refuse: auth.Unauthenticated},
			{name: "an attribute with nothing", token: issuer.Token("ada", M{"sessions": []any{json.RawMessage("null")}}), refuse: auth.Unauthenticated},

			{name: "audiences", token: issuer.Token("ada", M{"aud": []string{"x", "gateway-2"}}), aud: []string{"x", "gateway-2"}},
			{name: "another audience", token: issuer.Token("ada", M{"aud": "gateway-3"}), refuse: auth.Unauthenticated},
			{name: "other audiences", token: issuer.Token("ada", M{"aud": []string{"x", "Gateway"}}), refuse: auth.Unauthenticated},
			{name: "no audience", token: issuer.Token("ada", M{"aud": nil}), refuse: auth.Unauthenticated},
			{name: "an empty list of audiences", token: issuer.Token("ada", M{"aud": []string{}}), refuse: auth.Unauthenticated},
			{name: "an audience in an audience", token: issuer.Token("ada", M{"aud": "gateway gateway-2"}), refuse: auth.Unauthenticated},
			{name: "an audience that is none", token: issuer.Token("ada", M{"aud": M{"gateway": 1}}), refuse: auth.Unauthenticated},

			{name: "about to expire", token: issuer.Token("ada", M{"exp": in(time.Second)}), expires: time.Second},
			{name: "expired within the skew", token: issuer.Token("ada", M{"exp": in(-9 * time.Second)}), expires: -9 * time.Second},
			{name: "expired", token: issuer.Token("ada", M{"exp": in(-10 * time.Second)}), refuse: auth.Expired},
			{name: "expired long ago", token: issuer.Token("ada", M{"exp": 0}), refuse: auth.Expired},
			{name: "a fraction of a second", token: issuer.Token("ada", M{"exp": float64(in(5*time.Second)) + 0.9}), expires: 5 * time.Second},
			{name: "no expiry", token: issuer.Token("ada", M{"exp": nil}), refuse: auth.Unauthenticated},
			{name: "an expiry in words", token: issuer.Token("ada", M{"exp": fmt.Sprint(in(time.Hour))}), refuse: auth.Unauthenticated},
			{name: "no end of time", token: issuer.Token("ada", M{"exp": json.RawMessage("1e300")}), refuse: auth.Unauthenticated},
			{name: "before all time", token: issuer.Token("ada", M{"exp": -1}), refuse: auth.Unauthenticated},
			{name: "an expiry of null", token: issuer.Token("ada", M{"exp": json.RawMessage("null")}), refuse: auth.Unauthenticated},
			{name: "valid soon, within the skew", token: issuer.Token("ada", M{"nbf": in(10 * time.Second), "iat": in(10 * time.Second)})},
			{name: "not valid yet", token: issuer.Token("ada", M{"nbf": in(11 * time.Second)}), refuse: auth.Unauthenticated},
			{name: "issued in the future", token: issuer.Token("ada", M{"iat": in(11 * time.Second)}), refuse: auth.Unauthenticated},
			{name: "a beginning in words", token: issuer.Token("ada", M{"nbf": "now"}), refuse: auth.Unauthenticated},
			{name: "never said when issued", token: issuer.Token("ada", M{"iat": nil})},

			{name: "another issuer", token: issuer.Token("ada", M{"iss": "https://other.test"}), refuse: auth.Unauthenticated},
			{name: "nearly the issuer", token: issuer.Token("ada", M{"iss": issuer.URL + "/"}), refuse: auth.Unauthenticated},
			{name: "no issuer", token: issuer.Token("ada", M{"iss": nil}), refuse: auth.Unauthenticated},
			{name: "issuers", token: issuer.Token("ada", M{"iss": []string{issuer.URL}}), refuse: auth.Unauthenticated},

			{name: "no subject", token: issuer.Token("ada", M{"sub": nil}), refuse: auth.Unauthenticated},
			{name: "an empty subject", token: issuer.Token("", nil), refuse: auth.Unauthenticated},
			{name: "a subject that is a number", token: issuer.Token("ada", M{"sub": 7}), refuse: auth.Unauthenticated},
			// Two readers must not see two tokens.
			{name: "two subjects", token: issuer.Sign(claimsOf(t, issuer, `,"sub":"root"}`), nil), refuse: auth.Unauthenticated},
			{name: "a subject in other letters", token: issuer.Sign(claimsOf(t, issuer, `,"Sub":"root","SUB":"root"}`), nil)},
			{name: "an audience in other letters", token: issuer.Sign(payload(t, issuer.Claims("ada", M{"aud": nil, "Aud": authtest.Audience})), nil), refuse: auth.Unauthenticated},
			{name: "an expiry in other letters", token: issuer.Sign(claimsOf(t, issuer, `,"EXP":99999999999}`), nil)},
			{name: "no object", token: issuer.Sign([]byte(`"ada"`), nil), refuse: auth.Unauthenticated},
			{name: "null", token: issuer.Sign([]byte(`null`), nil), refuse: auth.Unauthenticated},
			{name: "no JSON", token: issuer.Sign([]byte(`{"sub":`), nil), refuse: auth.Unauthenticated},
			{name: "more behind the claims", token: issuer.Sign(append(payload(t, issuer.Claims("ada", nil)), `{}`...), nil), refuse: auth.Unauthenticated},
			{name: "bad text", token: issuer.Sign(claimsOf(t, issuer, ",\"x\":\"\xff\"}"), nil), refuse: auth.Unauthenticated},
			{name: "claims of others", token: issuer.Sign(claimsOf(t, issuer, `,"_claim_names":{"sub":"s"},"_claim_sources":{"s":{"endpoint":"https://evil.test"}}}`), nil)},

			{name: "an access token", token: issuer.Sign(payload(t, issuer.Claims("ada", nil)), M{"typ": "at+jwt"})},
			{name: "the same, long", token: issuer.Sign(payload(t, issuer.Claims("ada", nil)), M{"typ": "application/AT+JWT"})},
			{name: "no type", token: issuer.Sign(payload(t, issuer.Claims("ada", nil)), nil)},
			{name: "a logout token", token: issuer.Sign(payload(t, issuer.Claims("ada", nil)), M{"typ": "logout+jwt"}), refuse: auth.Unauthenticated},
			{name: "a type that is none", token: issuer.Sign(payload(t, issuer.Claims("ada", nil)), M{"typ": 7}), refuse: auth.Unauthenticated},
			{name: "an extension that must be understood", token: issuer.Sign(payload(t, issuer.Claims("ada", nil)), M{"crit": []string{"x"}, "x": 1}), refuse: auth.Unauthenticated},
		} {
			p, err := a.Authenticate(t.Context(), bearer(tt.token))
			if tt.refuse != 0 {
				refused(t, tt.name, p, err, tt.refuse, &log, append(strings.Split(tt.token, "."), tt.token)...)
				continue
			}
			want := auth.Principal{ID: "ada", Issuer: issuer.URL, Kind: auth.KindOIDC, Attributes: map[string][]string{},
				ExpiresAt: time.Unix(now.Add(time.Hour+10*time.Second).Unix(), 0),
				Bearer:    auth.Bearer{Token: auth.NewSecret(tt.token), Audiences: []string{authtest.Audience}}}
			if tt.id != "" {
				want.ID = tt.id
			}
			if tt.attrs != nil {
				want.Attributes = tt.attrs
			}
			if tt.aud != nil {
				want.Bearer.Audiences = tt.aud
			}
			if tt.expires != 0 {
				want.ExpiresAt = time.Unix(now.Add(tt.expires+10*time.Second).Unix(), 0)
			}
			if diff := cmp.Diff(want, p, cmp.Comparer(func(a, b auth.Secret) bool { return a.Equal(b) })); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
			}
		}
		if keys, discovery := issuer.Fetches(); keys != 1 || discovery != 1 {
			t.Errorf("asked %d times for keys and %d times where they are", keys, discovery)
		}
	})
}

// TestForgeries: nothing but the issuer's own signature in an allowed algorithm makes a token.
func TestForgeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := authtest.NewIssuer(t)
		kid := issuer.Rotate(jose.RS256)
		public, ok := issuer.PublicKey().(*rsa.PublicKey)
		if !ok {
			t.Fatal("no RSA key")
		}
		claims := payload(t, issuer.Claims("ada", nil))
		good := issuer.Token("ada", nil)
		parts := strings.Split(good, ".")
		mine, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		pkix, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		h := map[string]any{"kid": kid, "typ": "JWT"}
		with := func(name string, value any) map[string]any { return map[string]any{"kid": kid, name: value} }
		header := func(alg string) string { return fmt.Sprintf(`{"alg":%q,"kid":%q,"typ":"JWT"}`, alg, kid) }
		forged := map[string]string{
			"none":                       authtest.Unsigned(header("none"), string(claims), nil),
			"None":                       authtest.Unsigned(header("None"), string(claims), nil),
			"NONE, with a signature":     authtest.Unsigned(header("NONE"), string(claims), []byte("signature")),
			"none, without a key":        authtest.Unsigned(`{"alg":"none"}`, string(claims), nil),
			"no algorithm":               authtest.Unsigned(`{"typ":"JWT"}`, string(claims), nil),
			"an empty algorithm":         authtest.Unsigned(header(""), string(claims), nil),
			"RS256 without a signature":  authtest.Unsigned(header("RS256"), string(claims), nil),
			"the signature taken away":   parts[0] + "." + parts[1] + ".",
			"two parts":                  parts[0] + "." + parts[1],
			"four parts":                 good + "." + parts[2],
			"five parts":                 strings.Join([]string{parts[0], "", "", parts[1], parts[2]}, "."),
			"other claims":               parts[0] + "." + strings.Split(issuer.Token("root", nil), ".")[1] + "." + parts[2],
			"another header":             strings.Split(authtest.Unsigned(header("PS256"), "", nil), ".")[0] + "." + parts[1] + "." + parts[2],
			"a signature that is longer": good + "AA",
			"another one's key":          authtest.Sign(t, jose.RS256, mine, claims, h),
			"another one's key, unnamed": authtest.Sign(t, jose.RS256, mine, claims, nil),
			"another kind of key":        authtest.Sign(t, jose.ES256, curve, claims, h),
			"a key of its own":           authtest.Sign(t, jose.RS256, mine, claims, with("jwk", jose.JSONWebKey{Key: &mine.PublicKey})),
			"keys of its own":            authtest.Sign(t, jose.RS256, mine, claims, with("jku", "https://evil.test/keys")),
			"HMAC with the key as PEM":   authtest.Sign(t, jose.HS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix}), claims, h),
			"HMAC with the key as DER":   authtest.Sign(t, jose.HS256, pkix, claims, h),
			"HMAC with the old form":     authtest.Sign(t, jose.HS512, x509.MarshalPKCS1PublicKey(public), claims, h),
			"HMAC with the modulus":      authtest.Sign(t, jose.HS384, public.N.Bytes(), claims, h),
			"HMAC with the key's name":   authtest.Sign(t, jose.HS256, []byte(strings.Repeat(kid, 8)), claims, h),
			"not a token":                "sesame",
			"nothing in three parts":     "..",
			"JSON":                       "e30.e30.e30",
		}
		var log logged
		a := newAuthenticator(t, config(issuer, &log))
		for name, token := range forged {
			p, err := a.Authenticate(t.Context(), bearer(token))
			refused(t, name, p, err, auth.Unauthenticated, &log, append(strings.Split(token, "."), token)...)
		}
		if p, err := a.Authenticate(t.Context(), bearer(good)); err != nil || p.ID != "ada" {
			t.Errorf("the real one: %v, %v", p, err)
		}
		// The same algorithms, but only one is wanted.
		narrow := newAuthenticator(t, config(issuer, &log, func(o *ingress.OIDC) { o.Algorithms = []string{"ES256"} }))
		p, err := narrow.Authenticate(t.Context(), bearer(good))
		refused(t, "not wanted", p, err, auth.Unauthenticated, &log, good)
	})
}

// TestIssuers: each issuer vouches for its own only, with its own rules.
func TestIssuers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := authtest.NewIssuer(t), authtest.NewIssuer(t)
		b.URL = "https://other.test"
		var log logged
		cfg := config(a, &log)
		cfg.OIDC = append(cfg.OIDC, ingress.OIDC{Issuer: b.URL, Audiences: []string{"desk"}, IDClaim: "email", Algorithms: []string{"EdDSA"}, Skew: -1})
		cfg.Transport = byHost{"issuer.test": a, "other.test": b}
		authn := newAuthenticator(t, cfg)
		b.Rotate(jose.EdDSA)
		type M = map[string]any
		for _, tt := range []struct {
			name, token string
			id          string // empty: refused
		}{
			{"of the one", a.Token("ada", nil), "ada"},
			{"of the other", b.Token("7", M{"aud": "desk", "email": "ada@example.org"}), "ada@example.org"},
			{"of the other, without its id", b.Token("7", M{"aud": "desk"}), ""},
			{"of the other, for the one's audience", b.Token("7", M{"email": "ada@example.org"}), ""},
			{"of the one, in the other's name", a.Token("7", M{"iss": b.URL, "aud": "desk", "email": "ada@example.org"}), ""},
			{"of the other, in the one's name", b.Token("ada", M{"iss": a.URL}), ""},
			{"of the other, without skew", b.Token("7", M{"aud": "desk", "email": "a@example.org", "nbf": time.Now().Add(time.Second).Unix()}), ""},
		} {
			p, err := authn.Authenticate(t.Context(), bearer(tt.token))
			if tt.id == "" {
				refused(t, tt.name, p, err, auth.Unauthenticated, &log, tt.token)
			} else if err != nil || p.ID != tt.id {
				t.Errorf("%s: %v, %v", tt.name, p.ID, err)
			}
		}
		b.Rotate(jose.ES256)
		p, err := authn.Authenticate(t.Context(), bearer(b.Token("7", M{"aud": "desk", "email": "ada@example.org"})))
		refused(t, "not wanted", p, err, auth.Unauthenticated, &log)
	})
}

// byHost reaches several issuers.
type byHost map[string]*authtest.Issuer

func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if i := b[r.URL.Host]; i != nil {
		return i.Transport().RoundTrip(r)
	}
	return nil, fmt.Errorf("nothing is at %s", r.URL.Host)
}

// TestKeyRotation: new keys count at once, withdrawn ones no longer when the keys have been fetched again.
func TestKeyRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := authtest.NewIssuer(t)
		var log logged
		a := newAuthenticator(t, config(issuer, &log))
		try := func(token string) error {
			t.Helper()
			_, err := a.Authenticate(t.Context(), bearer(token))
			synctest.Wait() // what goes on in the background
			return err
		}
		fetched := func(want int) {
			t.Helper()
			if keys, discovery := issuer.Fetches(); keys != want || discovery != 1 {
				t.Errorf("keys were fetched %d times, want %d; discovered %d times", keys, want, discovery)
			}
		}
		first := issuer.Token("ada", nil)
		if err := try(first); err != nil {
			t.Fatal(err)
		}
		fetched(1)
		for _, alg := range []jose.SignatureAlgorithm{jose.RS256, jose.EdDSA, jose.ES256} {
			issuer.Rotate(alg)
			time.Sleep(10 * time.Second) // virtual
			if err := try(issuer.Token("ada", nil)); err != nil {
				t.Errorf("signed with a new key, %s: %v", alg, err)
			}
			if err := try(first); err != nil {
				t.Errorf("signed with the key before: %v", err)
			}
		}
		fetched(4)
		issuer.Withdraw()
		if err := try(first); err != nil {
			t.Errorf("nobody knows yet that the key is withdrawn: %v", err)
		}
		time.Sleep(15 * time.Minute) // virtual
		fetched(4)
		if err := try(first); err != nil {
			t.Errorf("the keys are old; they are renewed behind this call: %v", err)
		}
		fetched(5)
		if err := try(first); auth.ReasonOf(err) != auth.Unauthenticated {
			t.Errorf("the key is withdrawn: %v", err)
		}
		fetched(6) // it could have been a new one
		if log.String() != "" {
			t.Errorf("logged %s", log.String())
		}
	})
}

// TestUnknownKeys: tokens with unknown keys, which anyone can make, cause one fetch in a while.
func TestUnknownKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := authtest.NewIssuer(t)
		var log logged
		a := newAuthenticator(t, config(issuer, &log))
		stranger := authtest.NewIssuer(t)
		storm := func(n int) {
			t.Helper()
			var wg sync.WaitGroup
			for i := range n {
				token := stranger.Sign(payload(t, issuer.Claims("ada", nil)), map[string]any{"kid": fmt.Sprintf("unknown-%d", i)})
				wg.Go(func() {
					p, err := a.Authenticate(t.Context(), bearer(token))
					refused(t, "in the storm", p, err, auth.Unauthenticated, nil, token)
				})
			}
			wg.Wait()
		}
		fetched := func(want int) {
			t.Helper()
			if keys, _ := issuer.Fetches(); keys != want {
				t.Errorf("keys were fetched %d times, want %d", keys, want)
			}
		}
		issuer.Delay(100 * time.Millisecond)
		storm(100) // the keys are not there yet: one fetch for all
		fetched(1)
		storm(100)
		fetched(2)
		storm(100)
		if _, err := a.Authenticate(t.Context(), bearer(issuer.Token("ada", nil))); err != nil {
			t.Errorf("an honest caller in the storm: %v", err)
		}
		time.Sleep(9 * time.Second) // virtual
		storm(100)
		fetched(2)
		time.Sleep(time.Second)
		storm(100)
		fetched(3)
		// A token without a key's name, that no key has signed.
		time.Sleep(10 * time.Second)
		unnamed := stranger.Sign(payload(t, issuer.Claims("ada", nil)), map[string]any{"kid": nil})
		for range 10 {
			p, err := a.Authenticate(t.Context(), bearer(unnamed))
			refused(t, "unnamed", p, err, auth.Unauthenticated, nil, unnamed)
		}
		fetched(4)
		// One with a known name and a bad signature says nothing about new keys.
		time.Sleep(10 * time.Second)
		p, err := a.Authenticate(t.Context(), bearer(stranger.Sign(payload(t, issuer.Claims("ada", nil)), map[string]any{"kid": "key-1"})))
		refused(t, "a bad signature", p, err, auth.Unauthenticated, nil)
		fetched(4)
		// An issuer that names no keys rotates.
		if _, err := a.Authenticate(t.Context(), bearer(issuer.Sign(payload(t, issuer.Claims("ada", nil)), map[string]any{"kid": nil}))); err != nil {
			t.Errorf("the key that the token does not name: %v", err)
		}
		issuer.Rotate(jose.ES256)
		if _, err := a.Authenticate(t.Context(), bearer(issuer.Sign(payload(t, issuer.Claims("ada", nil)), map[string]any{"kid": nil}))); err != nil {
			t.Errorf("a new key that the token does not name: %v", err)
		}
		fetched(5)
	})
}

// TestIssuerOutOfReach: what cannot be verified is refused as such, for no longer than it must; what is known goes on.
func TestIssuerOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := authtest.NewIssuer(t)
		var log logged
		a := newAuthenticator(t, config(issuer, &log, func(o *ingress.OIDC) { o.MaxStale = 2 * time.Hour }))
		old := issuer.Token("ada", map[string]any{"exp": time.Now().Add(1000 * time.Hour).Unix()})
		try := func(name, token string, want auth.Reason) {
			t.Helper()
			p, err := a.Authenticate(t.Context(), bearer(token))
			synctest.Wait()
			if want != 0 {
				refused(t, name, p, err, want, &log, token)
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		issuer.Fail(http.StatusServiceUnavailable)
		for range 10 {
			try("down from the beginning", old, auth.Unavailable)
		}
		if _, discovery := issuer.Fetches(); discovery != 1 {
			t.Errorf("asked %d times at once", discovery)
		}
		issuer.Fail(0)
		try("it is not asked again at once", old, auth.Unavailable)
		time.Sleep(time.Second) // virtual
		try("it is back", old, 0)

		issuer.Fail(http.StatusInternalServerError)
		time.Sleep(time.Hour)
		keys, discovery := issuer.Fetches()
		for range 10 {
			try("down, but its keys are known", old, 0)
			time.Sleep(900 * time.Millisecond)
		}
		if k, d := issuer.Fetches(); k+d != keys+discovery+1 {
			t.Errorf("asked %d times in ten seconds, although there is no hurry", k+d-keys-discovery)
		}
		issuer.Rotate(jose.ES256)
		try("down, and a key that is not known", issuer.Token("ada", nil), auth.Unavailable)
		time.Sleep(time.Hour)
		try("down for too long", old, auth.Unavailable)
		issuer.Fail(0)
		time.Sleep(10 * time.Second)
		try("it is back", old, 0)
		try("with its new key", issuer.Token("ada", nil), 0)
		// Each outage once: at the beginning, and after an hour.
		if n := strings.Count(log.String(), "level=ERROR"); n != 2 || !strings.Contains(log.String(), "503") || !strings.Contains(log.String(), issuer.URL) {
			t.Errorf("logged:\n%s", log.String())
		}
	})
}

// TestIssuerHangs: nobody waits longer than the fetch may take, or than the call.
func TestIssuerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := authtest.NewIssuer(t)
		issuer.Delay(time.Hour)
		a := newAuthenticator(t, config(issuer, &logged{}))
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Authenticate(ctx, bearer(issuer.Token("ada", nil))); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		p, err := a.Authenticate(t.Context(), bearer(issuer.Token("ada", nil)))
		refused(t, "hanging", p, err, auth.Unavailable, nil)
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("waited %v", took)
		}
	})
}

// TestIssuerAnswersNonsense: what an issuer answers makes no keys unless it is right.
func TestIssuerAnswersNonsense(t *testing.T) {
	for name, change := range map[string]func(*authtest.Issuer){
		"another issuer": func(i *authtest.Issuer) { i.Document(map[string]any{"issuer": "https://other.test"}) },
		"keys over http": func(i *authtest.Issuer) { i.Document(map[string]any{"jwks_uri": "http://127.0.0.1/keys"}) },
		"keys nowhere":   func(i *authtest.Issuer) { i.Document(map[string]any{"jwks_uri": ""}) },
		"keys not there": func(i *authtest.Issuer) { i.Document(map[string]any{"jwks_uri": i.URL + "/none"}) },
		"keys that are none": func(i *authtest.Issuer) {
			i.Document(map[string]any{"jwks_uri": i.URL + "/.well-known/openid-configuration"})
		},
		"a redirect":           func(i *authtest.Issuer) { i.Fail(http.StatusFound) },
		"a document too large": func(i *authtest.Issuer) { i.Document(map[string]any{"x": strings.Repeat("x", 2<<20)}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			issuer := authtest.NewIssuer(t)
			change(issuer)
			var log logged
			a := newAuthenticator(t, config(issuer, &log))
			token := issuer.Token("ada", nil)
			p, err := a.Authenticate(t.Context(), bearer(token))
			refused(t, name, p, err, auth.Unavailable, &log, token)
			if len(log.String()) > 2000 || !strings.Contains(log.String(), "keys of an issuer cannot be fetched") {
				t.Errorf("%s: logged %d bytes: %.2000s", name, len(log.String()), log.String())
			}
		})
	}
}

// TestRealIssuer runs the whole flow over a network: discovery, keys, a rotation, and a storm of unknown keys.
func TestRealIssuer(t *testing.T) {
	issuer := authtest.StartIssuer(t)
	stranger := authtest.NewIssuer(t)
	var log logged
	a := newAuthenticator(t, ingress.Config{OIDC: []ingress.OIDC{{Issuer: issuer.URL, Audiences: []string{authtest.Audience}, Refetch: time.Hour}}, Logger: log.logger()})
	if p, err := a.Authenticate(t.Context(), bearer(issuer.Token("ada", nil))); err != nil || p.ID != "ada" || p.Issuer != issuer.URL {
		t.Fatalf("%v, %v; log: %s", p.ID, err, log.String())
	}
	issuer.Rotate(jose.RS256)
	if _, err := a.Authenticate(t.Context(), bearer(issuer.Token("ada", nil))); err != nil {
		t.Errorf("after a rotation: %v", err)
	}
	if keys, discovery := issuer.Fetches(); keys != 2 || discovery != 1 {
		t.Errorf("keys were fetched %d times, discovered %d times", keys, discovery)
	}

	fresh := newAuthenticator(t, ingress.Config{OIDC: []ingress.OIDC{{Issuer: issuer.URL, Audiences: []string{authtest.Audience}, Refetch: time.Hour}}, Logger: log.logger()})
	if _, err := fresh.Authenticate(t.Context(), bearer(issuer.Token("ada", nil))); err != nil {
		t.Fatal(err)
	}
	before, _ := issuer.Fetches()
	var wg sync.WaitGroup
	for i := range 200 {
		token := stranger.Sign(payload(t, issuer.Claims("ada", nil)), map[string]any{"kid": fmt.Sprintf("unknown-%d", i)})
		wg.Go(func() {
			p, err := fresh.Authenticate(t.Context(), bearer(token))
			refused(t, "a token", p, err, auth.Unauthenticated, nil, token)
		})
	}
	wg.Wait()
	if after, _ := issuer.Fetches(); after != before+1 {
		t.Errorf("a storm of unknown keys caused %d fetches", after-before)
	}
}

// TestMetadataIsNoIssuer: keys are never fetched from where clouds serve credentials.
func TestMetadataIsNoIssuer(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	var log logged
	a := newAuthenticator(t, ingress.Config{OIDC: []ingress.OIDC{{Issuer: issuer.URL, KeysURL: "https://169.254.169.254/keys", Audiences: []string{authtest.Audience}}}, Logger: log.logger()})
	p, err := a.Authenticate(t.Context(), bearer(issuer.Token("ada", nil)))
	refused(t, "a token", p, err, auth.Unavailable, &log)
	if !strings.Contains(log.String(), "address refused") {
		t.Errorf("logged %s", log.String())
	}
}

// TestTokensBesideIssuers: a call has one bearer token; it is a static one or a signed one, or it is bad.
func TestTokensBesideIssuers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := authtest.NewIssuer(t)
		signed := issuer.Token("ada", nil)
		cfg := config(issuer, &logged{})
		cfg.TokenFile = file(t, line("bob", "token-of-bob", ""))
		a := newAuthenticator(t, cfg)
		for token, want := range map[string]string{"token-of-bob": "tokens", signed: issuer.URL, "token-of-eve": "", signed + "x": ""} {
			p, err := a.Authenticate(t.Context(), bearer(token))
			if want == "" {
				refused(t, token, p, err, auth.Unauthenticated, nil, token)
			} else if err != nil || p.Issuer != want {
				t.Errorf("%v, %v", p.Issuer, err)
			}
		}
	})
}
