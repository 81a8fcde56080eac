package dialguard_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/evegateway/evegateway/auth/dialguard"
)

func TestCheck(t *testing.T) {
	allow := []netip.Prefix{netip.MustParsePrefix("169.254.10.0/24"), netip.MustParsePrefix("fd00:ec2::/32")}
	for _, tt := range []struct {
		address          string
		refused, allowed bool // without and with the networks above
	}{
		{"127.0.0.1:2000", false, true},
		{"[::1]:2000", false, true},
		{"10.0.0.1:80", false, true},
		{"192.168.1.1:80", false, true},
		{"93.184.216.34:443", false, true},
		{"[2001:db8::1]:443", false, true},
		{"[fd12::1]:443", false, true},
		{"100.100.100.201:80", false, true},

		{"169.254.169.254:80", true, false},
		{"169.254.170.2:80", true, false},
		{"169.254.0.1:80", true, false},
		{"169.254.10.7:80", true, true},
		{"[fe80::1]:80", true, false},
		{"[fe80::1%eth0]:80", true, false},
		{"[febf:ffff::1]:80", true, false},
		{"[fd00:ec2::254]:80", true, true},
		{"[fd20:ce::254]:80", true, false},
		{"100.100.100.200:80", true, false},
		{"168.63.129.16:80", true, false},
		{"192.0.0.192:80", true, false},
		{"0.0.0.0:80", true, false},
		{"[::]:80", true, false},
		{"224.0.0.1:80", true, false},
		{"255.255.255.255:80", true, false},
		{"[ff02::1]:80", true, false},
		// The same in other clothes.
		{"[::ffff:169.254.169.254]:80", true, false},
		{"[::ffff:a9fe:a9fe]:80", true, false},
		{"[64:ff9b::a9fe:a9fe]:80", true, false},
		{"[64:ff9b::6464:64c8]:80", true, false},
		{"[64:ff9b::a00:1]:80", false, true},
		{"[2002:a9fe:a9fe::1]:80", true, false},
		{"[2002:a00:1::1]:80", false, true},
		{"[::169.254.169.254]:80", true, false},
		// No addresses at all.
		{"metadata.google.internal:80", true, false},
		{"169.254.169.254", true, false},
		{"0xa9fea9fe:80", true, false},
		{"", true, false},
	} {
		for _, g := range []struct {
			guard dialguard.Guard
			want  bool
		}{{dialguard.Guard{}, !tt.refused}, {dialguard.Guard{Allow: allow}, tt.allowed}} {
			err := g.guard.Check(tt.address)
			if (err == nil) != g.want || err != nil && !errors.Is(err, dialguard.ErrRefused) {
				t.Errorf("%s, allowed %v: %v", tt.address, g.guard.Allow, err)
			}
			if control := g.guard.Control(t.Context(), "tcp4", tt.address, nil); (control == nil) != g.want {
				t.Errorf("%s: the dialer is told %v", tt.address, control)
			}
		}
	}
	if err := (dialguard.Guard{}).Check("169.254.169.254:80"); !strings.Contains(err.Error(), "allow its network") {
		t.Errorf("%v does not say what to do", err)
	}
}

// TestDialer: a dialer with the guard reaches what it may, and sends nothing to what it may not, by name neither.
func TestDialer(t *testing.T) {
	lis, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lis.Close() }()
	guard := dialguard.Guard{}
	dialer := net.Dialer{Timeout: 10 * time.Second, ControlContext: guard.Control}
	conn, err := dialer.DialContext(t.Context(), "tcp", lis.Addr().String())
	if err != nil {
		t.Fatalf("loopback: %v", err)
	}
	_ = conn.Close()
	for _, address := range []string{"169.254.169.254:80", "[fe80::1%1]:80", "[::ffff:169.254.169.254]:80"} {
		if _, err := dialer.DialContext(t.Context(), "tcp", address); !errors.Is(err, dialguard.ErrRefused) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, network := range []string{"unix", "ip4:icmp", "unixgram"} {
		if err := guard.Control(context.Background(), network, "169.254.169.254:80", nil); !errors.Is(err, dialguard.ErrRefused) {
			t.Errorf("network %s: %v", network, err)
		}
	}
}
