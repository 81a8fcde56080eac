package ingress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/internal/glob"
)

// Forwarded takes the word of mesh proxies for who is behind them: the metadata entry x-forwarded-client-cert. A proxy
// must set that entry itself and drop or extend what comes from outside (Envoy: SANITIZE_SET or APPEND_FORWARD, never
// one of the forwarding modes), because the last element is believed: it is what the proxy next to the gateway saw.
//
// The entry from anyone who is no such proxy is refused, whatever other credentials the call has. A caller known this
// way has no expiry: the entry tells none.
type Forwarded struct {
	Identities
	// PeerCIDRs are the networks of proxies. Everyone who can send from there can be anyone: prefer PeerIDs.
	PeerCIDRs []netip.Prefix
	// PeerIDs are patterns of the identities of proxies that connect with a client certificate, where * stands for any
	// characters: SPIFFE ids with their whole trust domain, such as spiffe://mesh.example.org/ns/edge/*, or DNS names.
	// A proxy itself is never a caller.
	PeerIDs []string
}

type forwarded struct {
	callers Identities
	cidrs   []netip.Prefix
	peerIDs []string
	peers   Identities                       // what peerIDs can match
	verify  func(*tls.ConnectionState) error // nil: the handshake's word stands
}

func newForwarded(cfg *Config) (*forwarded, error) {
	f := cfg.Forwarded
	a := &forwarded{callers: f.Identities, cidrs: f.PeerCIDRs, peerIDs: f.PeerIDs, verify: cfg.VerifyPeer}
	if err := a.callers.check(); err != nil {
		return nil, fmt.Errorf("callers: forwarded certificates: %w", err)
	}
	if slices.ContainsFunc(a.cidrs, func(p netip.Prefix) bool { return !p.IsValid() }) {
		return nil, errors.New("callers: forwarded certificates: a network that is none")
	}
	for _, id := range a.peerIDs {
		rest, ok := strings.CutPrefix(id, "spiffe://")
		if !ok {
			a.peers.DNSNames = append(a.peers.DNSNames, id)
			continue
		}
		domain, _, _ := strings.Cut(rest, "/")
		a.peers.TrustDomains = append(a.peers.TrustDomains, domain)
	}
	if len(a.peerIDs) > 0 || len(a.cidrs) == 0 {
		if err := a.peers.check(); err != nil {
			return nil, fmt.Errorf("callers: proxies of forwarded certificates: %w", err)
		}
	}
	return a, nil
}

// trusts says whether the peer is a proxy.
func (a *forwarded) trusts(c auth.Caller) bool {
	if addr, ok := c.Address(); ok && slices.ContainsFunc(a.cidrs, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return true
	}
	if len(a.peerIDs) == 0 || c.TLS == nil || len(c.TLS.PeerCertificates) == 0 {
		return false
	}
	id, _, err := a.peers.identifyTLS(c.TLS, a.verify)
	return err == nil && glob.Any(a.peerIDs, id)
}

// Screen implements auth.Screener: the entry from others is an attempt to be someone else.
func (a *forwarded) Screen(c auth.Caller) error {
	if len(c.ForwardedCert) > 0 && !a.trusts(c) {
		return auth.Refuse(auth.Unauthenticated,
			"the entry x-forwarded-client-cert is taken from the mesh's proxies only, and this connection is from none: leave it away", nil)
	}
	return nil
}

// Authenticate implements auth.Authenticator.
func (a *forwarded) Authenticate(_ context.Context, c auth.Caller) (auth.Principal, error) {
	if len(c.ForwardedCert) == 0 {
		return auth.Principal{}, auth.ErrNoCredential
	}
	if err := a.Screen(c); err != nil { // also where nobody has screened
		return auth.Principal{}, err
	}
	id, issuer, err := a.identity(c.ForwardedCert)
	if err != nil {
		return auth.Principal{}, auth.Refuse(auth.Unauthenticated,
			"the mesh's proxy names nobody that this gateway takes in x-forwarded-client-cert: call with a client certificate that it does", err)
	}
	return auth.Principal{ID: id, Issuer: issuer, Kind: auth.KindForwarded}, nil
}

func (a *forwarded) identity(values []string) (id, issuer string, err error) {
	if len(values) != 1 {
		return "", "", errors.New("several entries")
	}
	list, err := parseXFCC(values[0])
	if err != nil {
		return "", "", err
	}
	last := list[len(list)-1]
	return a.callers.identify(last.uris, last.dns)
}
