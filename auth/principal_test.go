package auth_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/evegateway/evegateway/auth"
)

func TestPrincipalKey(t *testing.T) {
	list := []auth.Principal{
		{ID: "ada", Issuer: "https://a.example"},
		{ID: "ada", Issuer: "https://b.example"},
		{ID: ":ada", Issuer: "https://a.example"},
		{ID: "ada", Issuer: "https://a.example:"},
		{ID: "a:ada", Issuer: "https:"},
		{ID: "https://a.example:ada"},
		auth.Anonymous(),
	}
	keys, hashes := map[string]int{}, map[string]int{}
	for i, p := range list {
		if j, ok := keys[p.Key()]; ok {
			t.Errorf("%d and %d have one key", i, j)
		}
		if j, ok := hashes[p.Hash()]; ok {
			t.Errorf("%d and %d have one hash", i, j)
		}
		keys[p.Key()], hashes[p.Hash()] = i, i
		if len(p.Hash()) != 16 {
			t.Errorf("hash %q", p.Hash())
		}
	}
	direct, behind := list[0], list[0]
	direct.Kind, behind.Kind, behind.ExpiresAt = auth.KindClientCert, auth.KindForwarded, time.Now()
	if direct.Key() != behind.Key() || direct.Hash() != behind.Hash() {
		t.Error("one principal, recognised in two ways, is two")
	}
	// Owners are recorded under keys: they must not change from one build to the next.
	if got := list[0].Key() + " " + list[0].Hash(); got != "17:https://a.example:ada 65c9dc7c30ea8bd3" {
		t.Errorf("the key has changed: %s", got)
	}
}

func TestPrincipalIsLoggedByHash(t *testing.T) {
	p := auth.Principal{ID: "ada@example.org", Issuer: "https://a.example", Kind: auth.KindOIDC,
		Attributes: map[string][]string{"team": {"looms"}}, Bearer: auth.Bearer{Token: auth.NewSecret(marked), Audiences: []string{"x"}}}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "caller", p)
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "caller", p)
	text := log.String() + fmt.Sprintf("%v %+v %#v %s", p, p, p, p)
	for _, secret := range []string{"ada", "example", "looms", marked} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is printed: %s", secret, text)
		}
	}
	if strings.Count(text, p.Hash()) != 6 {
		t.Errorf("the hash is not printed everywhere: %s", text)
	}
}

func TestPrincipalExpired(t *testing.T) {
	at := time.Date(2026, 11, 18, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		expires, now time.Time
		want         bool
	}{
		{time.Time{}, at, false},
		{at, at.Add(-1), false},
		{at, at, true},
		{at, at.Add(1), true},
	} {
		if got := (auth.Principal{ExpiresAt: tt.expires}).Expired(tt.now); got != tt.want {
			t.Errorf("expires %v, at %v: %v", tt.expires, tt.now, got)
		}
	}
}

func TestPrincipalFrom(t *testing.T) {
	if _, ok := auth.PrincipalFrom(t.Context()); ok {
		t.Error("somebody calls where nobody was named")
	}
	p, ok := auth.PrincipalFrom(auth.WithPrincipal(t.Context(), auth.Anonymous()))
	if !ok || p.Key() != auth.Anonymous().Key() {
		t.Errorf("%v, %v", p, ok)
	}
}

func TestCallerAddress(t *testing.T) {
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1} }
	for _, tt := range []struct {
		peer  net.Addr
		addr  string
		local bool
	}{
		{nil, "", false},
		{tcp("127.0.0.1"), "127.0.0.1", true},
		{tcp("127.9.9.9"), "127.9.9.9", true},
		{tcp("::1"), "::1", true},
		{tcp("::ffff:127.0.0.1"), "127.0.0.1", true},
		{tcp("::ffff:10.0.0.1"), "10.0.0.1", false},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}, "fe80::1", false},
		{&net.TCPAddr{}, "", false},
		{&net.UnixAddr{Name: "/run/gateway"}, "", true},
		{&net.UDPAddr{IP: net.ParseIP("127.0.0.1")}, "", false},
	} {
		c := auth.Caller{Peer: tt.peer}
		addr, ok := c.Address()
		if ok != (tt.addr != "") || ok && addr.String() != tt.addr || c.Local() != tt.local {
			t.Errorf("%v: %v, %v, local %v", tt.peer, addr, ok, c.Local())
		}
	}
}

func TestReasonOf(t *testing.T) {
	cause := errors.New("cause")
	err := fmt.Errorf("checking: %w", auth.Refuse(auth.Hidden, "no such session", cause))
	if auth.ReasonOf(err) != auth.Hidden || !errors.Is(err, cause) || err.Error() != "checking: no such session: cause" {
		t.Errorf("%v: %v", auth.ReasonOf(err), err)
	}
	if auth.ReasonOf(cause) != auth.Unavailable {
		t.Error("what has not been decided counts as decided")
	}
}
