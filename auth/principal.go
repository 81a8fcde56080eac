package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strconv"
	"time"
)

// Kind is how a principal was recognised.
type Kind string

// The kinds of principals.
const (
	// KindAnonymous: the gateway asks for no credential.
	KindAnonymous Kind = "anonymous"
	// KindToken: a static token.
	KindToken Kind = "token"
	// KindOIDC: a signed token of an OpenID Connect issuer.
	KindOIDC Kind = "oidc"
	// KindClientCert: the certificate of the connection.
	KindClientCert Kind = "mtls"
	// KindForwarded: the certificate of a connection to a trusted mesh proxy, as the proxy tells it.
	KindForwarded Kind = "xfcc"
)

// Principal is who calls. It is shared between goroutines: nobody changes it.
type Principal struct {
	// ID names the principal within its issuer. Never empty.
	ID string
	// Issuer is who vouches for the ID: an OIDC issuer's URL, the trust domain as spiffe://domain, or one of the
	// Issuer constants.
	Issuer string
	// Kind is how it was recognised.
	Kind Kind
	// ExpiresAt is from when on the credential is not accepted any more. Zero: it does not run out by itself.
	ExpiresAt time.Time
	// Attributes are further facts that the issuer vouches for, by name.
	Attributes map[string][]string
	// Bearer is the caller's own token, where its audience was verified. Else zero.
	Bearer Bearer
}

// Issuers of principals that have none of their own.
const (
	// IssuerNone is the issuer of the anonymous principal.
	IssuerNone = "none"
	// IssuerTokens is the issuer of the names in the token file.
	IssuerTokens = "tokens"
	// IssuerX509 is the issuer of DNS names in client certificates.
	IssuerX509 = "x509"
)

// AttributeSessions is the attribute that lists the ids of the sessions a principal may use, where policy asks for it.
const AttributeSessions = "sessions"

// Bearer is a token that may be handed on to the audiences it was issued for.
type Bearer struct {
	Token     Secret
	Audiences []string
}

// Anonymous is the principal of callers who need no credential.
func Anonymous() Principal {
	return Principal{ID: "anonymous", Issuer: IssuerNone, Kind: KindAnonymous}
}

// Key identifies the principal among all of the gateway's, for records that outlive a call, such as who owns a session.
// How the principal was recognised is no part of it: a workload is the same one behind a proxy.
func (p Principal) Key() string {
	// The length keeps (a, bc) and (ab, c) apart.
	return strconv.Itoa(len(p.Issuer)) + ":" + p.Issuer + ":" + p.ID
}

// Hash stands for the principal in logs: 16 hexadecimal digits, the same on every replica and for every credential.
func (p Principal) Hash() string {
	sum := sha256.Sum256([]byte(p.Key()))
	return hex.EncodeToString(sum[:8])
}

// Expired says whether the credential has run out.
func (p Principal) Expired(now time.Time) bool {
	return !p.ExpiresAt.IsZero() && !now.Before(p.ExpiresAt)
}

// String implements fmt.Stringer without naming anyone.
func (p Principal) String() string { return string(p.Kind) + ":" + p.Hash() }

// GoString implements fmt.GoStringer without naming anyone.
func (p Principal) GoString() string { return "auth.Principal(" + p.String() + ")" }

// LogValue implements slog.LogValuer: logs carry the hash and the kind.
func (p Principal) LogValue() slog.Value {
	return slog.GroupValue(slog.String("hash", p.Hash()), slog.String("kind", string(p.Kind)))
}

type principalKey struct{}

// WithPrincipal returns a context that carries who calls.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalFrom returns who calls. Without one, false: whoever asks must refuse.
func PrincipalFrom(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(Principal)
	return p, ok
}
