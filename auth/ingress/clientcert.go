package ingress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/evegateway/evegateway/auth"
)

// ClientCert takes the certificate of a caller's connection. The TLS handshake has verified it against the client
// roots, see Config.VerifyPeer.
type ClientCert struct {
	Identities
}

type clientCert struct {
	callers Identities
	verify  func(*tls.ConnectionState) error // nil: the handshake's word stands
	proxies *forwarded                       // who only speaks for others, nil: nobody
}

func newClientCert(cfg *Config, proxies *forwarded) (*clientCert, error) {
	callers := cfg.ClientCert.Identities
	if err := callers.check(); err != nil {
		return nil, fmt.Errorf("callers: client certificates: %w", err)
	}
	return &clientCert{callers: callers, verify: cfg.VerifyPeer, proxies: proxies}, nil
}

// Authenticate implements auth.Authenticator.
func (a *clientCert) Authenticate(_ context.Context, c auth.Caller) (auth.Principal, error) {
	if c.TLS == nil || len(c.TLS.PeerCertificates) == 0 {
		return auth.Principal{}, auth.ErrNoCredential
	}
	// A proxy is never a caller itself: the caller behind it that has no identity must not get the proxy's.
	if a.proxies != nil && a.proxies.trusts(c) {
		return auth.Principal{}, auth.ErrNoCredential
	}
	id, issuer, err := a.callers.identifyTLS(c.TLS, a.verify)
	if err != nil {
		return auth.Principal{}, auth.Refuse(auth.Unauthenticated,
			"the client certificate names nobody that this gateway takes: present one that it does", err)
	}
	return auth.Principal{ID: id, Issuer: issuer, Kind: auth.KindClientCert, ExpiresAt: c.TLS.PeerCertificates[0].NotAfter}, nil
}

// identifyTLS returns whom the verified certificate of a connection stands for.
func (i *Identities) identifyTLS(state *tls.ConnectionState, verify func(*tls.ConnectionState) error) (id, issuer string, err error) {
	if len(state.VerifiedChains) == 0 {
		return "", "", errors.New("the certificate was not verified")
	}
	if verify != nil {
		if err := verify(state); err != nil {
			return "", "", err
		}
	}
	leaf := state.PeerCertificates[0]
	if leaf.IsCA {
		return "", "", errors.New("the certificate of an authority, not of a caller")
	}
	uris := make([]string, len(leaf.URIs))
	for n, u := range leaf.URIs {
		uris[n] = u.String()
	}
	return i.identify(uris, leaf.DNSNames)
}
