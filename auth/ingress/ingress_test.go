package ingress_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/ingress"
)

func TestAnonymous(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}
	for _, tt := range []struct {
		name     string
		anywhere bool
		peer     net.Addr
		ok       bool
	}{
		{"loopback", false, here, true},
		{"a Unix socket", false, &net.UnixAddr{}, true},
		{"another machine", false, there, false},
		{"nobody knows where", false, nil, false},
		{"another machine, forced", true, there, true},
		{"nobody knows where, forced", true, nil, true},
	} {
		a := newAuthenticator(t, ingress.Config{Anonymous: &ingress.Anonymous{Anywhere: tt.anywhere}})
		for _, c := range []auth.Caller{{Peer: tt.peer}, {Peer: tt.peer, Authorization: saying("Bearer x").Authorization, ForwardedCert: []string{"x"}}} {
			p, err := a.Authenticate(t.Context(), c)
			if !tt.ok {
				refused(t, tt.name, p, err, auth.Unauthenticated, nil)
			} else if err != nil || p.Key() != auth.Anonymous().Key() || p.Kind != auth.KindAnonymous {
				t.Errorf("%s: %v, %v", tt.name, p, err)
			}
		}
	}
}

func TestNewRefusesBadConfigurations(t *testing.T) {
	good := ingress.OIDC{Issuer: "https://issuer.test", Audiences: []string{"gateway"}}
	oidc := func(change func(*ingress.OIDC)) ingress.Config {
		o := good
		change(&o)
		return ingress.Config{OIDC: []ingress.OIDC{o}}
	}
	mesh := ingress.Identities{TrustDomains: []string{"mesh.test"}}
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for name, cfg := range map[string]ingress.Config{
		"nothing":                  {},
		"none and tokens":          {Anonymous: &ingress.Anonymous{}, TokenFile: file(t, "")},
		"none and issuers":         {Anonymous: &ingress.Anonymous{}, OIDC: []ingress.OIDC{good}},
		"none and certificates":    {Anonymous: &ingress.Anonymous{Anywhere: true}, ClientCert: &ingress.ClientCert{Identities: mesh}},
		"none and a proxy":         {Anonymous: &ingress.Anonymous{}, Forwarded: &ingress.Forwarded{Identities: mesh, PeerCIDRs: proxies}},
		"a token file not there":   {TokenFile: "/nowhere/tokens"},
		"a bad token file":         {TokenFile: file(t, "ada sesame")},
		"an issuer twice":          {OIDC: []ingress.OIDC{good, good}},
		"no issuer":                oidc(func(o *ingress.OIDC) { o.Issuer = "" }),
		"an issuer over http":      oidc(func(o *ingress.OIDC) { o.Issuer = "http://issuer.test" }),
		"an issuer with a user":    oidc(func(o *ingress.OIDC) { o.Issuer = "https://me:sesame@issuer.test" }),
		"keys over http":           oidc(func(o *ingress.OIDC) { o.KeysURL = "http://issuer.test/keys" }),
		"keys in a file":           oidc(func(o *ingress.OIDC) { o.KeysURL = "file:///keys" }),
		"no audience":              oidc(func(o *ingress.OIDC) { o.Audiences = nil }),
		"an empty audience":        oidc(func(o *ingress.OIDC) { o.Audiences = []string{""} }),
		"algorithm none":           oidc(func(o *ingress.OIDC) { o.Algorithms = []string{"RS256", "none"} }),
		"algorithm HS256":          oidc(func(o *ingress.OIDC) { o.Algorithms = []string{"HS256"} }),
		"an algorithm that is not": oidc(func(o *ingress.OIDC) { o.Algorithms = []string{"rs256"} }),
		"a bad attribute":          oidc(func(o *ingress.OIDC) { o.Attributes = map[string]string{"a b": "c"} }),
		"a negative time":          oidc(func(o *ingress.OIDC) { o.Refetch = -1 }),
		"keys too old at once":     oidc(func(o *ingress.OIDC) { o.Refresh, o.MaxStale = time.Hour, time.Minute }),
		"nobody by certificate":    {ClientCert: &ingress.ClientCert{}},
		"a domain with a scheme":   {ClientCert: &ingress.ClientCert{Identities: ingress.Identities{TrustDomains: []string{"spiffe://mesh.test"}}}},
		"a domain pattern":         {ClientCert: &ingress.ClientCert{Identities: ingress.Identities{TrustDomains: []string{"*"}}}},
		"an empty DNS name":        {ClientCert: &ingress.ClientCert{Identities: ingress.Identities{DNSNames: []string{""}}}},
		"nobody behind a proxy":    {Forwarded: &ingress.Forwarded{PeerCIDRs: proxies}},
		"no proxy":                 {Forwarded: &ingress.Forwarded{Identities: mesh}},
		"a network that is none":   {Forwarded: &ingress.Forwarded{Identities: mesh, PeerCIDRs: []netip.Prefix{{}}}},
		"an empty proxy":           {Forwarded: &ingress.Forwarded{Identities: mesh, PeerIDs: []string{""}}},
		"a proxy of any domain":    {Forwarded: &ingress.Forwarded{Identities: mesh, PeerIDs: []string{"spiffe://*/proxy"}}},
		"a proxy without a domain": {Forwarded: &ingress.Forwarded{Identities: mesh, PeerIDs: []string{"spiffe:///proxy"}}},
	} {
		if a, err := ingress.New(t.Context(), cfg); err == nil || a != nil {
			t.Errorf("%s: taken", name)
		} else if strings.Contains(err.Error(), "sesame") && name == "a bad token file" {
			t.Errorf("%s: a token is quoted: %v", name, err)
		}
	}
}
