package ingress

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"

	"github.com/evegateway/evegateway/auth"
)

// Config says which callers are recognised. At least one way must be configured.
type Config struct {
	// TokenFile names the file of static tokens, see ParseTokens. Empty: none.
	TokenFile string
	// OIDC are the issuers whose tokens are taken.
	OIDC []OIDC
	// Transport fetches the issuers' documents and keys. Nil: TLS 1.2 or newer, no proxy, and no address that
	// dialguard refuses.
	Transport http.RoundTripper
	// Forwarded takes a mesh proxy's word. Nil: the entry x-forwarded-client-cert is ignored.
	Forwarded *Forwarded
	// ClientCert takes the certificates of connections. Nil: not.
	ClientCert *ClientCert
	// VerifyPeer verifies the certificate of a connection once more, against the roots of now (servertls.Server.Verify):
	// a root that was taken away ends streams when they are authorised again. Nil: the handshake's word stands.
	VerifyPeer func(*tls.ConnectionState) error
	// Anonymous takes everyone without a credential. Nil: not. It excludes all others, so that nobody gets in by
	// leaving a credential away.
	Anonymous *Anonymous
	// Logger is told of files and issuers that are bad. Nil: nobody is.
	Logger *slog.Logger
}

// New makes the authenticator that a configuration describes. It reads files, and asks no issuer anything before the
// first token. What it fetches in the background ends with ctx: let that be the context of the gateway's life.
func New(ctx context.Context, cfg Config) (auth.Authenticator, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Anonymous != nil {
		if cfg.TokenFile != "" || len(cfg.OIDC) > 0 || cfg.Forwarded != nil || cfg.ClientCert != nil {
			return nil, errors.New("callers: none excludes every other mode: whoever has a bad credential could leave it away")
		}
		return auth.Chain(cfg.Anonymous), nil
	}
	var list []auth.Authenticator
	if cfg.TokenFile != "" || len(cfg.OIDC) > 0 {
		b, err := newBearer(ctx, &cfg)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	var proxies *forwarded
	if cfg.Forwarded != nil {
		f, err := newForwarded(&cfg)
		if err != nil {
			return nil, err
		}
		proxies, list = f, append(list, f)
	}
	if cfg.ClientCert != nil {
		c, err := newClientCert(&cfg, proxies)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("callers: no mode is configured: name one, or say explicitly that callers need no credential")
	}
	return auth.Chain(list...), nil
}
