// Package dialguard refuses to dial addresses that no agent and no issuer has, but that answer with a machine's
// credentials: link-local ones and the metadata services of clouds. It judges the resolved address of every
// connection, so names that resolve to something else the second time do not help.
package dialguard

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// Guard judges addresses. The zero value refuses all that it knows.
type Guard struct {
	// Allow are networks that may be dialled although the guard would refuse them.
	Allow []netip.Prefix
}

// ErrRefused says that the address is one that must not be dialled.
var ErrRefused = errors.New("address refused")

// Control is for net.Dialer.ControlContext.
func (g Guard) Control(_ context.Context, network, address string, _ syscall.RawConn) error {
	switch network {
	case "tcp4", "tcp6", "udp4", "udp6":
		return g.Check(address)
	}
	return fmt.Errorf("%w: network %s", ErrRefused, network)
}

// Check judges an IP address with a port.
func (g Guard) Check(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: not an IP address with a port", ErrRefused)
	}
	addr := ap.Addr().WithZone("").Unmap()
	if slices.ContainsFunc(g.Allow, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return nil
	}
	for _, a := range []netip.Addr{addr, embedded(addr)} {
		if what := forbidden(a); what != "" {
			return fmt.Errorf("%w: %s is %s; if it is meant, allow its network in the configuration", ErrRefused, addr, what)
		}
	}
	return nil
}

// forbidden says what an address is that must not be dialled; empty: one that may.
func forbidden(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return ""
	case a.IsUnspecified():
		return "no address of a host"
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "not of one host"
	case a.IsLinkLocalUnicast():
		return "link-local, where clouds serve credentials"
	case slices.Contains(metadata(), a.String()):
		return "a cloud's metadata service"
	}
	return ""
}

// metadata are the metadata services with addresses that are not link-local.
func metadata() []string {
	return []string{
		"fd00:ec2::254",   // AWS, IPv6
		"fd00:ec2::23",    // AWS pod identity, IPv6
		"fd20:ce::254",    // Google Cloud, IPv6
		"100.100.100.200", // Alibaba Cloud
		"168.63.129.16",   // Azure, platform resources
		"192.0.0.192",     // Oracle Cloud, first generation
	}
}

// embedded is the IPv4 address that a translator makes of an IPv6 one: NAT64 (RFC 6052) and 6to4 (RFC 3056).
func embedded(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return netip.Addr{}
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case netip.MustParsePrefix("::/96").Contains(a) && b[12] != 0: // IPv4-compatible, obsolete; ::1 is none
		return netip.AddrFrom4([4]byte(b[12:16]))
	}
	return netip.Addr{}
}
