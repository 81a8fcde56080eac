package ingress_test

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/authtest"
	"github.com/evegateway/evegateway/auth/ingress"
)

func identities() ingress.Identities {
	return ingress.Identities{TrustDomains: []string{"mesh.test", "other.test"}, DNSNames: []string{"*.looms.test", "desk.test"}}
}

// identityCases are names in a certificate, and whom they stand for.
func identityCases() []struct {
	name       string
	leaf       authtest.Leaf
	id, issuer string // empty: nobody
} {
	return []struct {
		name       string
		leaf       authtest.Leaf
		id, issuer string
	}{
		{"a SPIFFE id", authtest.Leaf{URIs: []string{"spiffe://mesh.test/ns/a/sa/loom"}}, "spiffe://mesh.test/ns/a/sa/loom", "spiffe://mesh.test"},
		{"of the other domain", authtest.Leaf{URIs: []string{"spiffe://other.test/x"}}, "spiffe://other.test/x", "spiffe://other.test"},
		{"with DNS names besides", authtest.Leaf{URIs: []string{"spiffe://mesh.test/x"}, DNS: []string{"a.looms.test"}}, "spiffe://mesh.test/x", "spiffe://mesh.test"},
		{"of a domain that is not listed", authtest.Leaf{URIs: []string{"spiffe://evil.test/x"}}, "", ""},
		{"of such a domain, with a DNS name that is", authtest.Leaf{URIs: []string{"spiffe://evil.test/x"}, DNS: []string{"a.looms.test"}}, "", ""},
		{"of a domain below", authtest.Leaf{URIs: []string{"spiffe://a.mesh.test/x"}}, "", ""},
		{"a domain alone", authtest.Leaf{URIs: []string{"spiffe://mesh.test"}}, "", ""},
		{"a domain and a slash", authtest.Leaf{URIs: []string{"spiffe://mesh.test/"}}, "", ""},
		{"an empty part", authtest.Leaf{URIs: []string{"spiffe://mesh.test/a//b"}}, "", ""},
		{"a slash at the end", authtest.Leaf{URIs: []string{"spiffe://mesh.test/a/"}}, "", ""},
		{"dots", authtest.Leaf{URIs: []string{"spiffe://mesh.test/ns/../admin"}}, "", ""},
		{"a dot", authtest.Leaf{URIs: []string{"spiffe://mesh.test/./admin"}}, "", ""},
		{"a dot in a part", authtest.Leaf{URIs: []string{"spiffe://mesh.test/.a/b..c"}}, "spiffe://mesh.test/.a/b..c", "spiffe://mesh.test"},
		{"an escape", authtest.Leaf{URIs: []string{"spiffe://mesh.test/%61dmin"}}, "", ""},
		{"a query", authtest.Leaf{URIs: []string{"spiffe://mesh.test/a?b"}}, "", ""},
		{"a fragment", authtest.Leaf{URIs: []string{"spiffe://mesh.test/a#b"}}, "", ""},
		{"a user", authtest.Leaf{URIs: []string{"spiffe://x@mesh.test/a"}}, "", ""},
		{"a port", authtest.Leaf{URIs: []string{"spiffe://mesh.test:443/a"}}, "", ""},
		{"a domain in other letters", authtest.Leaf{URIs: []string{"spiffe://MESH.test/a"}}, "", ""},
		{"too long", authtest.Leaf{URIs: []string{"spiffe://mesh.test/" + strings.Repeat("a", 2048)}}, "", ""},
		{"two SPIFFE ids", authtest.Leaf{URIs: []string{"spiffe://mesh.test/a", "spiffe://mesh.test/b"}}, "", ""},
		{"another URI besides", authtest.Leaf{URIs: []string{"https://mesh.test/a", "spiffe://mesh.test/b"}}, "", ""},
		{"another URI alone", authtest.Leaf{URIs: []string{"https://mesh.test/a"}}, "", ""},
		{"another URI and a DNS name", authtest.Leaf{URIs: []string{"https://mesh.test/a"}, DNS: []string{"desk.test"}}, "desk.test", auth.IssuerX509},
		{"a DNS name", authtest.Leaf{DNS: []string{"desk.test"}}, "desk.test", auth.IssuerX509},
		{"a DNS name in other letters", authtest.Leaf{DNS: []string{"A.Looms.Test"}}, "a.looms.test", auth.IssuerX509},
		{"the first that is listed", authtest.Leaf{DNS: []string{"evil.test", "b.looms.test", "desk.test"}}, "b.looms.test", auth.IssuerX509},
		{"none that is listed", authtest.Leaf{DNS: []string{"evil.test", "looms.test", "desk.test.evil.test"}}, "", ""},
		{"all names of a domain", authtest.Leaf{DNS: []string{"*.looms.test"}}, "", ""},
		{"no name", authtest.Leaf{}, "", ""},
	}
}

func TestClientCert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := authtest.NewCA(t)
		a := newAuthenticator(t, ingress.Config{ClientCert: &ingress.ClientCert{Identities: identities()}})
		for _, tt := range identityCases() {
			state := ca.State(t, ca.Issue(t, tt.leaf))
			p, err := a.Authenticate(t.Context(), auth.Caller{TLS: state})
			if tt.id == "" {
				refused(t, tt.name, p, err, auth.Unauthenticated, nil, "spiffe://", "evil.test")
				continue
			}
			want := auth.Principal{ID: tt.id, Issuer: tt.issuer, Kind: auth.KindClientCert, ExpiresAt: state.PeerCertificates[0].NotAfter}
			if diff := cmp.Diff(want, p, cmp.Comparer(func(a, b auth.Secret) bool { return a.Equal(b) })); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
			}
		}

		good := authtest.Leaf{URIs: []string{"spiffe://mesh.test/loom"}}
		unverified := ca.State(t, ca.Issue(t, good))
		unverified.VerifiedChains = nil
		authority := good
		authority.IsCA = true
		for name, c := range map[string]auth.Caller{
			"no TLS":                         {},
			"no certificate":                 {TLS: &tls.ConnectionState{}},
			"one that nobody has verified":   {TLS: unverified},
			"an authority":                   {TLS: ca.State(t, ca.Issue(t, authority))},
			"a name of its own in the entry": {ForwardedCert: []string{"URI=spiffe://mesh.test/loom"}},
		} {
			p, err := a.Authenticate(t.Context(), c)
			refused(t, name, p, err, auth.Unauthenticated, nil)
		}

		gone := errors.New("the root is gone")
		again := newAuthenticator(t, ingress.Config{ClientCert: &ingress.ClientCert{Identities: identities()}, VerifyPeer: func(*tls.ConnectionState) error { return gone }})
		p, err := again.Authenticate(t.Context(), auth.Caller{TLS: ca.State(t, ca.Issue(t, good))})
		refused(t, "a root that was taken away", p, err, auth.Unauthenticated, nil)
		if !errors.Is(err, gone) {
			t.Errorf("%v does not say why", err)
		}
	})
}

func peerAt(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 40000} }

// entry is what a proxy writes for a certificate.
func entry(l authtest.Leaf) string {
	pairs := []string{"By=spiffe://mesh.test/gateway"}
	for _, u := range l.URIs {
		pairs = append(pairs, `URI="`+u+`"`)
	}
	for _, d := range l.DNS {
		pairs = append(pairs, "DNS="+d)
	}
	return strings.Join(pairs, ";")
}

func TestForwarded(t *testing.T) {
	a := newAuthenticator(t, ingress.Config{Forwarded: &ingress.Forwarded{Identities: identities(), PeerCIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}})
	for _, tt := range identityCases() {
		p, err := a.Authenticate(t.Context(), auth.Caller{Peer: peerAt("10.1.2.3"), ForwardedCert: []string{entry(tt.leaf)}})
		if tt.id == "" {
			refused(t, tt.name, p, err, auth.Unauthenticated, nil, "spiffe://", "evil.test")
			continue
		}
		want := auth.Principal{ID: tt.id, Issuer: tt.issuer, Kind: auth.KindForwarded}
		if diff := cmp.Diff(want, p, cmp.Comparer(func(a, b auth.Secret) bool { return a.Equal(b) })); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
	const loom, forged = "URI=spiffe://mesh.test/loom", "URI=spiffe://mesh.test/admin"
	for _, tt := range []struct {
		name    string
		peer    net.Addr
		entries []string
		id      string // empty: refused
	}{
		{"by the proxy, at the end", peerAt("10.1.0.1"), []string{forged + "," + loom}, "spiffe://mesh.test/loom"},
		{"by the proxy, in IPv6 clothes", peerAt("::ffff:10.1.0.1"), []string{loom}, "spiffe://mesh.test/loom"},
		{"by the proxy, for nobody", peerAt("10.1.0.1"), []string{loom + ",By=spiffe://mesh.test/gateway;Subject=\"\""}, ""},
		{"two entries", peerAt("10.1.0.1"), []string{loom, loom}, ""},
		{"an empty entry", peerAt("10.1.0.1"), []string{""}, ""},
		{"garbage", peerAt("10.1.0.1"), []string{loom + ";"}, ""},
		{"no entry", peerAt("10.1.0.1"), nil, ""},
		{"by someone else", peerAt("10.2.0.1"), []string{loom}, ""},
		{"by someone else, empty", peerAt("10.2.0.1"), []string{""}, ""},
		{"from this machine", peerAt("127.0.0.1"), []string{loom}, ""},
		{"over a Unix socket", &net.UnixAddr{Name: "10.1.0.1"}, []string{loom}, ""},
		{"from nowhere", nil, []string{loom}, ""},
	} {
		p, err := a.Authenticate(t.Context(), auth.Caller{Peer: tt.peer, ForwardedCert: tt.entries})
		if tt.id == "" {
			refused(t, tt.name, p, err, auth.Unauthenticated, nil, "spiffe://")
		} else if err != nil || p.ID != tt.id {
			t.Errorf("%s: %v, %v", tt.name, p.ID, err)
		}
	}
}

// TestProxyByIdentity: a proxy that shows a certificate may speak for others, and never counts as a caller itself.
func TestProxyByIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := authtest.NewCA(t)
		issuer := authtest.NewIssuer(t)
		var gone error
		cfg := config(issuer, &logged{})
		cfg.ClientCert = &ingress.ClientCert{Identities: identities()}
		cfg.Forwarded = &ingress.Forwarded{Identities: identities(), PeerIDs: []string{"spiffe://mesh.test/edge/*", "edge.looms.test"}}
		cfg.VerifyPeer = func(*tls.ConnectionState) error { return gone }
		a := newAuthenticator(t, cfg)
		connection := func(l authtest.Leaf) *tls.ConnectionState { return ca.State(t, ca.Issue(t, l)) }
		edge := connection(authtest.Leaf{URIs: []string{"spiffe://mesh.test/edge/1"}})
		edgeByName := connection(authtest.Leaf{DNS: []string{"edge.looms.test"}})
		loom := connection(authtest.Leaf{URIs: []string{"spiffe://mesh.test/loom"}})
		stranger := connection(authtest.Leaf{URIs: []string{"spiffe://other.test/edge/1"}})
		unverified := *edge
		unverified.VerifiedChains = nil
		const ada = "URI=spiffe://mesh.test/ada"
		token := "Bearer " + issuer.Token("bob", nil)
		for _, tt := range []struct {
			name    string
			tls     *tls.ConnectionState
			entries []string
			says    string
			id      string // empty: refused
			kind    auth.Kind
		}{
			{"the proxy for someone", edge, []string{ada}, "", "spiffe://mesh.test/ada", auth.KindForwarded},
			{"the proxy by its DNS name", edgeByName, []string{ada}, "", "spiffe://mesh.test/ada", auth.KindForwarded},
			{"the proxy for nobody", edge, nil, "", "", ""},
			{"the proxy by its DNS name, for nobody", edgeByName, nil, "", "", ""},
			{"the proxy for someone who is not listed", edge, []string{"URI=spiffe://evil.test/ada"}, "", "", ""},
			{"the proxy for someone with a token", edge, nil, token, "bob", auth.KindOIDC},
			{"the proxy for someone with a certificate and a token", edge, []string{ada}, token, "bob", auth.KindOIDC},
			{"the proxy for someone with a certificate and a bad token", edge, []string{ada}, token + "x", "", ""},
			{"the proxy for someone with a certificate and no bearer", edge, []string{ada}, "Basic YTpi", "", ""},
			{"a workload", loom, nil, "", "spiffe://mesh.test/loom", auth.KindClientCert},
			{"a workload with a token", loom, nil, token, "bob", auth.KindOIDC},
			{"a workload with a bad token", loom, nil, "Bearer sesame", "", ""},
			{"a workload that speaks for someone", loom, []string{ada}, "", "", ""},
			{"a workload that speaks for someone, with a good token", loom, []string{ada}, token, "", ""},
			{"someone else's proxy", stranger, []string{ada}, "", "", ""},
			{"a proxy that nobody has verified", &unverified, []string{ada}, "", "", ""},
			{"no certificate, but an entry", nil, []string{ada}, "", "", ""},
			{"no certificate, an entry, and a good token", nil, []string{ada}, token, "", ""},
			{"a token alone", nil, nil, token, "bob", auth.KindOIDC},
			{"nothing", nil, nil, "", "", ""},
		} {
			c := auth.Caller{TLS: tt.tls, ForwardedCert: tt.entries, Peer: peerAt("10.1.0.1")}
			if tt.says != "" {
				c.Authorization = saying(tt.says).Authorization
			}
			p, err := a.Authenticate(t.Context(), c)
			if tt.id == "" {
				refused(t, tt.name, p, err, auth.Unauthenticated, nil, "spiffe://", token)
			} else if err != nil || p.ID != tt.id || p.Kind != tt.kind {
				t.Errorf("%s: %v, %v", tt.name, p.ID, err)
			}
		}
		gone = errors.New("the root is gone")
		p, err := a.Authenticate(t.Context(), auth.Caller{TLS: edge, ForwardedCert: []string{ada}})
		refused(t, "a proxy whose root was taken away", p, err, auth.Unauthenticated, nil)
	})
}
