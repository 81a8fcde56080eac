// Package servertls configures the gateway's own TLS from files that are reloaded in place: a rotated certificate, key
// or set of client roots counts from the next handshake on, within a second, and open connections live on. Files that
// become bad, such as a key that does not fit the certificate while both are being replaced, change nothing until they
// are good again.
package servertls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"

	"github.com/evegateway/evegateway/auth/internal/reload"
)

// Config says which files.
type Config struct {
	// CertFile and KeyFile are the server's certificate chain and its key, in PEM. Required.
	CertFile, KeyFile string
	// ClientRootsFile are the authorities of client certificates, in PEM. Empty: clients are not asked for one.
	ClientRootsFile string
	// RequireClientCert refuses connections without a client certificate. Otherwise one is verified if given.
	RequireClientCert bool
	// MinVersion is the oldest TLS version, tls.VersionTLS12 or newer. Default tls.VersionTLS13.
	MinVersion uint16
	// Logger is told of files that are bad. Nil: nobody is.
	Logger *slog.Logger
}

// Server is the TLS of a server. Safe for concurrent use.
type Server struct {
	base  *tls.Config
	pair  *reload.Files[tls.Certificate]
	roots *reload.Files[*x509.CertPool] // nil: no client certificates
}

// New reads the files; it fails when they are bad now.
func New(cfg Config) (*Server, error) {
	if cfg.MinVersion == 0 {
		cfg.MinVersion = tls.VersionTLS13
	}
	if cfg.MinVersion < tls.VersionTLS12 {
		return nil, errors.New("TLS: the oldest version that can be allowed is 1.2")
	}
	if cfg.RequireClientCert && cfg.ClientRootsFile == "" {
		return nil, errors.New("TLS: client certificates are required, but there is no file with their roots")
	}
	s := &Server{base: &tls.Config{
		MinVersion: cfg.MinVersion,
		NextProtos: []string{"h2"},
		// A resumed session would keep a client whose root is gone, and long connections have no use for it.
		SessionTicketsDisabled: true,
	}}
	var err error
	s.pair, err = reload.New("server certificate", []string{cfg.CertFile, cfg.KeyFile}, func(texts [][]byte) (tls.Certificate, error) {
		return tls.X509KeyPair(texts[0], texts[1])
	}, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	if cfg.ClientRootsFile != "" {
		s.roots, err = reload.New("client roots", []string{cfg.ClientRootsFile}, func(texts [][]byte) (*x509.CertPool, error) {
			return parseRoots(texts[0])
		}, cfg.Logger)
		if err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		s.base.ClientAuth = tls.VerifyClientCertIfGiven
		if cfg.RequireClientCert {
			s.base.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	return s, nil
}

// TLS returns the configuration to listen with.
func (s *Server) TLS() *tls.Config {
	c := s.base.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.current(), nil }
	return c
}

func (s *Server) current() *tls.Config {
	c := s.base.Clone()
	c.Certificates = []tls.Certificate{s.pair.Get()}
	if s.roots != nil {
		c.ClientCAs = s.roots.Get()
	}
	return c
}

// Verify verifies a connection's client certificate against the roots and the time of now, for rights that outlive the
// handshake.
func (s *Server) Verify(state *tls.ConnectionState) error {
	if s.roots == nil || len(state.PeerCertificates) == 0 {
		return errors.New("no client certificate")
	}
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: s.roots.Get(), Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return fmt.Errorf("verifying the client certificate again: %w", err)
	}
	return nil
}

// parseRoots reads certificates. Unlike the library's reader it fails at one that is bad: a bundle that was cut off
// must not count as a smaller one.
func parseRoots(text []byte) (*x509.CertPool, error) {
	pool, n := x509.NewCertPool(), 0
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		n++
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("block %d is no certificate", n)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", n, err)
		}
		pool.AddCert(cert)
	}
	if bytes.Contains(text, []byte("-----BEGIN")) {
		return nil, fmt.Errorf("certificate %d is cut off or garbled", n+1)
	}
	if n == 0 {
		return nil, errors.New("no certificate")
	}
	return pool, nil
}
