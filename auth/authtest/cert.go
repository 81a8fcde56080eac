package authtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"
)

// CA is a certificate authority. Its certificates hold from an hour ago on.
type CA struct {
	// PEM is its own certificate, as a file of roots has it.
	PEM []byte

	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	chain []byte // goes with every certificate; empty for a root
}

// NewCA makes an authority.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{key: newKey(t)}
	ca.certify(t, "test root", nil, ca.key)
	return ca
}

// Below makes an authority that this one has certified. What it issues comes with its own certificate.
func (ca *CA) Below(t testing.TB) *CA {
	t.Helper()
	sub := &CA{key: newKey(t)}
	sub.certify(t, "test authority", ca.cert, ca.key)
	sub.chain = append(bytes.Clone(sub.PEM), ca.chain...)
	return sub
}

func (ca *CA) certify(t testing.TB, name string, parent *x509.Certificate, signer *ecdsa.PrivateKey) {
	t.Helper()
	ca.cert = sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, parent, ca.key, signer)
	ca.PEM = encode("CERTIFICATE", ca.cert.Raw)
}

// Pool is the authority as the only root.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Leaf says what a certificate is for.
type Leaf struct {
	URIs, DNS []string
	// NotAfter is when it expires. Default: in an hour.
	NotAfter time.Time
	// ServerOnly makes it one that no client may show.
	ServerOnly bool
	// IsCA makes it the certificate of an authority.
	IsCA bool
}

// Pair is a certificate and its key, in PEM.
type Pair struct {
	Cert, Key []byte
}

// Issue makes a certificate for servers and clients, and for localhost besides what it is asked for when it has no name
// of its own.
func (ca *CA) Issue(t testing.TB, l Leaf) Pair {
	t.Helper()
	if l.NotAfter.IsZero() {
		l.NotAfter = time.Now().Add(time.Hour)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "test"}, NotAfter: l.NotAfter, DNSNames: l.DNS,
		KeyUsage: x509.KeyUsageDigitalSignature, IsCA: l.IsCA, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if len(l.URIs) == 0 && len(l.DNS) == 0 {
		template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	if l.ServerOnly {
		template.ExtKeyUsage = template.ExtKeyUsage[:1]
	}
	for _, text := range l.URIs {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	key := newKey(t)
	cert := sign(t, template, ca.cert, key, ca.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Pair{Cert: append(encode("CERTIFICATE", cert.Raw), ca.chain...), Key: encode("PRIVATE KEY", der)}
}

// TLS is the pair as package tls wants it.
func (p Pair) TLS(t testing.TB) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// State is the state of a server's connection whose client has shown the pair, verified by the authority.
func (ca *CA) State(t testing.TB, p Pair) *tls.ConnectionState {
	t.Helper()
	leaf := p.TLS(t).Leaf
	return &tls.ConnectionState{
		HandshakeComplete: true, PeerCertificates: []*x509.Certificate{leaf},
		VerifiedChains: [][]*x509.Certificate{{leaf, ca.cert}},
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign completes a template. No parent: it signs itself.
func sign(t testing.TB, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore = serial, time.Now().Add(-time.Hour)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
