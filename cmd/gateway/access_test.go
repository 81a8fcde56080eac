package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/evegateway/evegateway/auth/authtest"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// readAs reads a session to its tail and says how that ended.
func readAs(ctx context.Context, conn *grpc.ClientConn, session string) codes.Code {
	stream, err := evev1.NewStreamServiceClient(conn).Subscribe(ctx, &evev1.SubscribeRequest{
		SessionId: session, Until: &evev1.Until{Bound: &evev1.Until_Tail_{Tail: &evev1.Until_Tail{}}},
	})
	for err == nil {
		_, err = stream.Recv()
	}
	if strings.Contains(err.Error(), "EOF") && status.Code(err) == codes.Unknown {
		return codes.OK
	}
	return status.Code(err)
}

// TestServeAccess: over TLS, each of the three ways to be recognised lets in whom it should and nobody else, and the
// gateway listens on all addresses without being told that it is insecure.
func TestServeAccess(t *testing.T) {
	t.Parallel()
	const token = "a-long-random-token-of-ada"
	sum := sha256.Sum256([]byte(token))
	issuer := authtest.StartIssuer(t)
	ca, other := authtest.NewCA(t), authtest.NewCA(t)
	pair := ca.Issue(t, authtest.Leaf{})
	eve, url := newEve(t)
	for _, id := range []string{"one", "two"} {
		eve.AddSession(id, fakeeve.SessionSpec{Log: openLog()})
	}
	p := start(t, "serve", "--listen", "0.0.0.0:0", "--eve-url", url,
		"--tls-cert", writeFile(t, "cert", string(pair.Cert)), "--tls-key", writeFile(t, "key", string(pair.Key)),
		"--client-ca", writeFile(t, "ca", string(ca.PEM)), "--trust-domain", "mesh.example",
		"--token-file", writeFile(t, "tokens", "ada sha256:"+hex.EncodeToString(sum[:])+" sessions=one\n"),
		"--oidc-issuer", issuer.URL, "--oidc-audience", authtest.Audience, "--oidc-sessions", "rooms", "--sessions", "listed")
	address := strings.Replace(p.address(t), "[::]", "localhost", 1)
	address = strings.Replace(address, "0.0.0.0", "localhost", 1)
	dial := func(certs ...tls.Certificate) *grpc.ClientConn {
		conn, err := grpc.NewClient("dns:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			RootCAs: ca.Pool(), MinVersion: tls.VersionTLS13, Certificates: certs,
		})))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	plain := dial()
	workload := authtest.Leaf{URIs: []string{"spiffe://mesh.example/reader"}}
	stranger := authtest.Leaf{URIs: []string{"spiffe://elsewhere.example/reader"}}
	for _, c := range []struct {
		name, bearer, session string
		conn                  *grpc.ClientConn
		want                  codes.Code
	}{
		{"nobody", "", "one", plain, codes.Unauthenticated},
		{"a token", token, "one", plain, codes.OK},
		{"a token, another session", token, "two", plain, codes.NotFound},
		{"a wrong token", "guess", "one", plain, codes.Unauthenticated},
		{"OIDC", issuer.Token("bo", map[string]any{"rooms": []string{"two"}}), "two", plain, codes.OK},
		{"OIDC, another session", issuer.Token("bo", map[string]any{"rooms": []string{"two"}}), "one", plain, codes.NotFound},
		{"OIDC, for someone else", issuer.Token("bo", map[string]any{"aud": "elsewhere"}), "two", plain, codes.Unauthenticated},
		{"OIDC, expired", issuer.Token("bo", map[string]any{"exp": 1}), "two", plain, codes.Unauthenticated},
		// A certificate lists no sessions: known, but nothing is its own.
		{"a workload", "", "one", dial(ca.Issue(t, workload).TLS(t)), codes.NotFound},
		{"a workload of another domain", "", "one", dial(ca.Issue(t, stranger).TLS(t)), codes.Unauthenticated},
		{"a certificate of nobody", "", "one", dial(other.Issue(t, workload).TLS(t)), codes.Unavailable},
	} {
		ctx := t.Context()
		if c.bearer != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.bearer)
		}
		if got := readAs(ctx, c.conn, c.session); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	p.end()
	p.wait(t)
	if log := p.stderr.String(); strings.Contains(log, token) || strings.Contains(log, "eyJ") {
		t.Error("a token is in the log")
	}
}
