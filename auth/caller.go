package auth

import (
	"crypto/tls"
	"net"
	"net/netip"
)

// Caller is what is known of a call before anyone has judged it. All of it but the peer and the verified chains is the
// caller's own word.
type Caller struct {
	// Authorization are the values of the metadata entry authorization.
	Authorization []Secret
	// ForwardedCert are the values of the metadata entry x-forwarded-client-cert.
	ForwardedCert []string
	// Peer is the other end of the connection. Nil: unknown.
	Peer net.Addr
	// TLS is the state of the connection. Nil: no TLS.
	TLS *tls.ConnectionState
}

// Address is the peer's IP address, an IPv4 one in its own form and without a zone. False: the peer has none.
func (c Caller) Address() (netip.Addr, bool) {
	if tcp, ok := c.Peer.(*net.TCPAddr); ok {
		addr := tcp.AddrPort().Addr().Unmap().WithZone("")
		return addr, addr.IsValid()
	}
	return netip.Addr{}, false
}

// Local says whether the connection cannot have left the machine: loopback, or a Unix socket.
func (c Caller) Local() bool {
	if _, ok := c.Peer.(*net.UnixAddr); ok {
		return true
	}
	addr, ok := c.Address()
	return ok && addr.IsLoopback()
}
