package servertls_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/evegateway/evegateway/auth/authtest"
	"github.com/evegateway/evegateway/auth/servertls"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files are the files of a server.
type files struct {
	t                *testing.T
	cert, key, roots string
}

func newFiles(t *testing.T, p authtest.Pair, roots ...[]byte) files {
	t.Helper()
	dir := t.TempDir()
	f := files{t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "roots.pem")}
	f.write(f.cert, p.Cert)
	f.write(f.key, p.Key)
	f.write(f.roots, roots...)
	return f
}

func (f files) write(path string, texts ...[]byte) {
	f.t.Helper()
	if err := os.WriteFile(path, bytes.Join(texts, nil), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// connect makes a connection over a pipe and returns both ends' states, and the error of whoever failed.
func connect(t *testing.T, server, client *tls.Config) (atServer, atClient tls.ConnectionState, err error) {
	t.Helper()
	a, b := net.Pipe()
	s, c := tls.Server(a, server), tls.Client(b, client)
	served := make(chan error, 1)
	go func() {
		err := s.HandshakeContext(t.Context())
		if err == nil {
			_, err = s.Write([]byte("!")) // a client learns only behind its handshake that it was refused
		}
		if err != nil {
			_ = a.Close()
		}
		served <- err
	}()
	err = c.HandshakeContext(t.Context())
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	_ = b.Close()
	if e := <-served; err == nil {
		err = e
	}
	return s.ConnectionState(), c.ConnectionState(), err
}

// trusting is a client that trusts an authority.
func trusting(ca *authtest.CA, certs ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost", Certificates: certs, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(8)}
}

func TestHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, stranger := authtest.NewCA(t), authtest.NewCA(t)
		f := newFiles(t, ca.Issue(t, authtest.Leaf{}), ca.PEM)
		loom := ca.Issue(t, authtest.Leaf{URIs: []string{"spiffe://mesh.test/loom"}}).TLS(t)
		expired := ca.Issue(t, authtest.Leaf{DNS: []string{"loom.test"}, NotAfter: time.Now().Add(-time.Minute)}).TLS(t)
		foreign := stranger.Issue(t, authtest.Leaf{DNS: []string{"loom.test"}}).TLS(t)
		servers := ca.Issue(t, authtest.Leaf{DNS: []string{"loom.test"}, ServerOnly: true}).TLS(t)
		with := func(c *tls.Config, change func(*tls.Config)) *tls.Config { change(c); return c }
		for _, tt := range []struct {
			name             string
			required, noCAs  bool
			min              uint16
			client           *tls.Config
			refused          bool
			version          uint16
			clientHasAnIdent bool
		}{
			{name: "1.3 by default", client: trusting(ca), version: tls.VersionTLS13},
			{name: "1.2 not by default", client: with(trusting(ca), func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), refused: true},
			{name: "1.2 where it is allowed", min: tls.VersionTLS12, client: with(trusting(ca), func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), version: tls.VersionTLS12},
			{name: "1.3 where 1.2 is allowed", min: tls.VersionTLS12, client: trusting(ca), version: tls.VersionTLS13},
			{name: "1.1 never", min: tls.VersionTLS12, client: with(trusting(ca), func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }), refused: true},
			{name: "another protocol", client: with(trusting(ca), func(c *tls.Config) { c.NextProtos = []string{"acme-tls/1"} }), refused: true},
			{name: "a client certificate", client: trusting(ca, loom), version: tls.VersionTLS13, clientHasAnIdent: true},
			{name: "one that is not asked for", noCAs: true, client: trusting(ca, loom), version: tls.VersionTLS13},
			{name: "one that is required", required: true, client: trusting(ca, loom), version: tls.VersionTLS13, clientHasAnIdent: true},
			{name: "none where it is required", required: true, client: trusting(ca), refused: true},
			{name: "of another authority", client: with(trusting(ca), func(c *tls.Config) {
				c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &foreign, nil }
			}), refused: true},
			{name: "expired", client: with(trusting(ca), func(c *tls.Config) {
				c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &expired, nil }
			}), refused: true},
			{name: "a server's", client: with(trusting(ca), func(c *tls.Config) {
				c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &servers, nil }
			}), refused: true},
			{name: "a client that trusts another authority", client: trusting(stranger), refused: true},
		} {
			cfg := servertls.Config{CertFile: f.cert, KeyFile: f.key, ClientRootsFile: f.roots, RequireClientCert: tt.required, MinVersion: tt.min}
			if tt.noCAs {
				cfg.ClientRootsFile = ""
			}
			s, err := servertls.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			listening := s.TLS()
			for i := range 2 { // the second time the client would resume
				server, client, err := connect(t, listening, tt.client)
				if tt.refused {
					if err == nil {
						t.Errorf("%s: connected", tt.name)
					}
					continue
				}
				if err != nil || server.Version != tt.version || client.NegotiatedProtocol != "h2" || client.DidResume {
					t.Errorf("%s, connection %d: %v, version %x, protocol %q, resumed %v", tt.name, i, err, server.Version, client.NegotiatedProtocol, client.DidResume)
				}
				if (len(server.VerifiedChains) > 0) != tt.clientHasAnIdent {
					t.Errorf("%s: %d verified chains", tt.name, len(server.VerifiedChains))
				}
				if err := s.Verify(&server); (err == nil) != tt.clientHasAnIdent {
					t.Errorf("%s: verified again: %v", tt.name, err)
				}
			}
		}
	})
}

// TestRotation: what rotates counts from the next handshake on; what becomes bad does not count at all.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := authtest.NewCA(t), authtest.NewCA(t)
		old, next := first.Issue(t, authtest.Leaf{}), second.Issue(t, authtest.Leaf{})
		f := newFiles(t, old, first.PEM)
		var log bytes.Buffer
		s, err := servertls.New(servertls.Config{CertFile: f.cert, KeyFile: f.key, ClientRootsFile: f.roots, RequireClientCert: true,
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		listening := s.TLS() // as a listener keeps it
		ofFirst := first.Issue(t, authtest.Leaf{URIs: []string{"spiffe://mesh.test/loom"}}).TLS(t)
		ofSecond := second.Issue(t, authtest.Leaf{URIs: []string{"spiffe://mesh.test/loom"}}).TLS(t)
		kept, _, err := connect(t, listening, trusting(first, ofFirst))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			name            string
			change          func()
			server          *authtest.CA // whose certificate the server shows
			first, second   bool         // whose clients are let in
			logged          string
			keptStillVerify bool
		}{
			{"as it was", func() {}, first, true, false, "", true},
			{"the certificate without its key", func() { f.write(f.cert, next.Cert) }, first, true, false, "private key does not match", true},
			{"and its key", func() { f.write(f.key, next.Key) }, second, true, false, "reloaded", true},
			{"both roots", func() { f.write(f.roots, first.PEM, second.PEM) }, second, true, true, "reloaded", true},
			{"a bundle that was cut off", func() { f.write(f.roots, first.PEM, second.PEM[:len(second.PEM)/2]) }, second, true, true, "cut off", true},
			{"no root at all", func() { f.write(f.roots) }, second, true, true, "no certificate", true},
			{"a key among the roots", func() { f.write(f.roots, second.PEM, old.Key) }, second, true, true, "no certificate", true},
			{"a root that is garbled", func() { f.write(f.roots, bytes.Replace(second.PEM, []byte("M"), []byte("N"), 1)) }, second, true, true, "certificate 1", true},
			{"the new root alone", func() { f.write(f.roots, []byte("# the new one\n"), second.PEM) }, second, false, true, "reloaded", false},
			{"the key is gone", func() { _ = os.Remove(f.key) }, second, false, true, "no such file", false},
		} {
			log.Reset()
			step.change()
			time.Sleep(time.Second) // virtual
			_, _, err := connect(t, listening, trusting(step.server, ofFirst))
			if (err == nil) != step.first {
				t.Errorf("%s: the first authority's client: %v", step.name, err)
			}
			_, _, err = connect(t, listening, trusting(step.server, ofSecond))
			if (err == nil) != step.second {
				t.Errorf("%s: the second authority's client: %v", step.name, err)
			}
			if err := s.Verify(&kept); (err == nil) != step.keptStillVerify {
				t.Errorf("%s: a connection of before verifies again: %v", step.name, err)
			}
			if (step.logged == "") != (log.Len() == 0) || !strings.Contains(log.String(), step.logged) {
				t.Errorf("%s: logged %q, want %q", step.name, log.String(), step.logged)
			}
			if strings.Contains(log.String(), "PRIVATE KEY") {
				t.Errorf("%s: a key is logged", step.name)
			}
		}
	})
}

// TestVerify: time alone ends what a handshake has granted.
func TestVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := authtest.NewCA(t)
		f := newFiles(t, ca.Issue(t, authtest.Leaf{}), ca.PEM)
		s, err := servertls.New(servertls.Config{CertFile: f.cert, KeyFile: f.key, ClientRootsFile: f.roots})
		if err != nil {
			t.Fatal(err)
		}
		state := ca.State(t, ca.Issue(t, authtest.Leaf{DNS: []string{"loom.test"}, NotAfter: time.Now().Add(time.Hour)}))
		if err := s.Verify(state); err != nil {
			t.Errorf("at first: %v", err)
		}
		if err := s.Verify(ca.State(t, ca.Issue(t, authtest.Leaf{DNS: []string{"loom.test"}, ServerOnly: true}))); err == nil {
			t.Error("a server's certificate: verified")
		}
		time.Sleep(time.Hour + time.Second) // virtual
		if err := s.Verify(state); err == nil {
			t.Error("after it has expired: verified")
		}
		if err := s.Verify(&tls.ConnectionState{PeerCertificates: []*x509.Certificate{}}); err == nil {
			t.Error("without a certificate: verified")
		}
	})
}

// TestAuthorityBelow: certificates that come with a chain are verified, then and later.
func TestAuthorityBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := authtest.NewCA(t)
		below := root.Below(t)
		f := newFiles(t, below.Issue(t, authtest.Leaf{}), root.PEM)
		s, err := servertls.New(servertls.Config{CertFile: f.cert, KeyFile: f.key, ClientRootsFile: f.roots, RequireClientCert: true})
		if err != nil {
			t.Fatal(err)
		}
		state, _, err := connect(t, s.TLS(), trusting(root, below.Issue(t, authtest.Leaf{DNS: []string{"loom.test"}}).TLS(t)))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(&state); err != nil {
			t.Errorf("verified again: %v", err)
		}
	})
}

func TestNewRefusesBadConfigurations(t *testing.T) {
	ca := authtest.NewCA(t)
	pair, other := ca.Issue(t, authtest.Leaf{}), ca.Issue(t, authtest.Leaf{})
	good := newFiles(t, pair, ca.PEM)
	mixed := newFiles(t, authtest.Pair{Cert: pair.Cert, Key: other.Key}, []byte("no roots here"))
	ok := servertls.Config{CertFile: good.cert, KeyFile: good.key, ClientRootsFile: good.roots}
	for name, change := range map[string]func(*servertls.Config){
		"no certificate":                    func(c *servertls.Config) { c.CertFile = "" },
		"no key":                            func(c *servertls.Config) { c.KeyFile = "" },
		"the key of another certificate":    func(c *servertls.Config) { c.KeyFile = mixed.key },
		"roots without a certificate":       func(c *servertls.Config) { c.ClientRootsFile = mixed.roots },
		"roots that are not there":          func(c *servertls.Config) { c.ClientRootsFile += ".not" },
		"client certificates without roots": func(c *servertls.Config) { c.ClientRootsFile, c.RequireClientCert = "", true },
		"TLS 1.1":                           func(c *servertls.Config) { c.MinVersion = tls.VersionTLS11 },
	} {
		cfg := ok
		change(&cfg)
		if _, err := servertls.New(cfg); err == nil || !strings.Contains(err.Error(), "TLS: ") || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := servertls.New(ok); err != nil {
		t.Errorf("%v", err)
	}
}
