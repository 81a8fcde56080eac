package ingress_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/authtest"
	"github.com/evegateway/evegateway/auth/ingress"
	"github.com/evegateway/evegateway/auth/servertls"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// guarded is how a server uses an authenticator: it asks before the handler runs, again on a timer, and ends the stream
// when the right has ended, whatever the handler is stuck in.
func guarded(authn auth.Authenticator) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		caller := ingress.CallerOf(ctx)
		ask := func(ctx context.Context) (auth.Principal, error) { return authn.Authenticate(ctx, caller) }
		p, err := ask(ctx)
		if err != nil {
			return status.Error(codes.Unauthenticated, auth.ReasonOf(err).String())
		}
		lapsed, done := make(chan error, 1), make(chan error, 1)
		go func() {
			if err := (auth.Watch{Every: time.Minute, Ask: ask}).Wait(ctx, p); err != nil {
				lapsed <- err
			}
		}()
		go func() { done <- handler(srv, &withContext{stream, auth.WithPrincipal(ctx, p)}) }()
		select {
		case err = <-done:
			return err
		case err = <-lapsed:
			return status.Error(codes.Unauthenticated, auth.ReasonOf(err).String())
		}
	}
}

type withContext struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *withContext) Context() context.Context { return s.ctx }

// names answers Watch with the caller's id, once, and then follows the caller for as long as it is let.
type names struct {
	healthv1.UnimplementedHealthServer
}

func (n *names) Watch(_ *healthv1.HealthCheckRequest, stream grpc.ServerStreamingServer[healthv1.HealthCheckResponse]) error {
	p, ok := auth.PrincipalFrom(stream.Context())
	if !ok {
		return status.Error(codes.Internal, "nobody calls")
	}
	if err := stream.SendHeader(metadata.Pairs("caller", p.ID)); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

// server is a gRPC server that asks who calls, in memory.
type server struct {
	t   *testing.T
	lis *fakeeve.PipeListener
}

// serve starts a server until the test is over. No TLS: in the clear.
func serve(t *testing.T, authn auth.Authenticator, creds *tls.Config) *server {
	t.Helper()
	opts := []grpc.ServerOption{grpc.StreamInterceptor(guarded(authn))}
	if creds != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(creds)))
	}
	s := grpc.NewServer(opts...)
	healthv1.RegisterHealthServer(s, &names{})
	lis := fakeeve.NewPipeListener()
	done := make(chan error, 1)
	go func() { done <- s.Serve(lis) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return &server{t, lis}
}

// dial connects a client.
func (s *server) dial(creds *tls.Config) *grpc.ClientConn {
	s.t.Helper()
	tc := insecure.NewCredentials()
	if creds != nil {
		tc = credentials.NewTLS(creds)
	}
	conn, err := grpc.NewClient("passthrough:///localhost", grpc.WithTransportCredentials(tc),
		grpc.WithContextDialer(func(ctx context.Context, a string) (net.Conn, error) { return s.lis.DialContext(ctx, "tcp", a) }))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// call is an open stream: who the server says calls, and how it ended.
type call struct {
	caller string
	ended  chan error
}

// open opens a stream with metadata. An error of the open ends it.
func open(t *testing.T, conn *grpc.ClientConn, pairs ...string) *call {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(t.Context(), pairs...)
	stream, err := healthv1.NewHealthClient(conn).Watch(ctx, &healthv1.HealthCheckRequest{})
	c := &call{ended: make(chan error, 1)}
	if err != nil {
		c.ended <- err
		return c
	}
	if md, err := stream.Header(); err == nil && len(md.Get("caller")) == 1 {
		c.caller = md.Get("caller")[0]
	}
	go func() {
		_, err := stream.Recv()
		c.ended <- err
	}()
	synctest.Wait()
	return c
}

// live says whether the stream is open.
func (c *call) live() bool { return len(c.ended) == 0 }

// endedWith checks how a stream has ended.
func (c *call) endedWith(t *testing.T, name string, reason auth.Reason) {
	t.Helper()
	if c.live() {
		t.Errorf("%s: the stream goes on", name)
		return
	}
	if s := status.Convert(<-c.ended); s.Code() != codes.Unauthenticated || s.Message() != reason.String() {
		t.Errorf("%s: ended with %v, want %v", name, s.Err(), reason)
	}
}

// TestStreamsEndWithTokens: a stream lives as long as its token, to the second; a static one until it is taken out of
// the file.
func TestStreamsEndWithTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := authtest.NewIssuer(t)
		cfg := config(issuer, &logged{})
		path := file(t, line("bob", "token-of-bob", ""))
		cfg.TokenFile = path
		conn := serve(t, newAuthenticator(t, cfg), nil).dial(nil)

		signed := open(t, conn, "authorization", "Bearer "+issuer.Token("ada", nil))
		static := open(t, conn, "authorization", "Bearer token-of-bob")
		if signed.caller != "ada" || static.caller != "bob" {
			t.Fatalf("called by %q and %q", signed.caller, static.caller)
		}
		open(t, conn).endedWith(t, "no credential", auth.Unauthenticated)
		open(t, conn, "authorization", "Bearer token-of-bob", "authorization", "Bearer token-of-bob").endedWith(t, "two", auth.Unauthenticated)
		open(t, conn, "authorization", "Bearer "+issuer.Token("ada", map[string]any{"exp": 0})).endedWith(t, "expired", auth.Expired)

		time.Sleep(30 * time.Minute) // virtual
		write(t, path, "")
		time.Sleep(70 * time.Second)
		synctest.Wait()
		static.endedWith(t, "a token that was taken out", auth.Unauthenticated)
		if !signed.live() {
			t.Fatal("the other stream has ended too")
		}
		time.Sleep(28*time.Minute + 59*time.Second) // an hour and the skew, less a second
		if synctest.Wait(); !signed.live() {
			t.Fatal("ended before its time")
		}
		time.Sleep(12 * time.Second)
		synctest.Wait()
		signed.endedWith(t, "an expired token", auth.Expired)
	})
}

// TestMutualTLS: server certificates and client roots rotate under live streams. Nobody is cut off by that but those
// whose root is gone, when they are asked again.
func TestMutualTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := authtest.NewCA(t), authtest.NewCA(t)
		dir := t.TempDir()
		certFile, keyFile, rootsFile := filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "roots")
		put := func(path string, texts ...[]byte) {
			t.Helper()
			if err := os.WriteFile(path, bytes.Join(texts, nil), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		putPair := func(p authtest.Pair) { put(certFile, p.Cert); put(keyFile, p.Key) }
		putPair(first.Issue(t, authtest.Leaf{}))
		put(rootsFile, first.PEM)
		serving, err := servertls.New(servertls.Config{CertFile: certFile, KeyFile: keyFile, ClientRootsFile: rootsFile})
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, newAuthenticator(t, ingress.Config{
			ClientCert: &ingress.ClientCert{Identities: identities()}, VerifyPeer: serving.Verify,
		}), serving.TLS())
		client := func(trusted, issuer *authtest.CA, id string, lasts time.Duration) *tls.Config {
			c := &tls.Config{RootCAs: trusted.Pool(), ServerName: "localhost", MinVersion: tls.VersionTLS13}
			if issuer != nil {
				c.Certificates = []tls.Certificate{issuer.Issue(t, authtest.Leaf{URIs: []string{id}, NotAfter: time.Now().Add(lasts)}).TLS(t)}
			}
			return c
		}
		const loom, desk = "spiffe://mesh.test/loom", "spiffe://mesh.test/desk"
		old := open(t, s.dial(client(first, first, loom, 24*time.Hour)))
		short := open(t, s.dial(client(first, first, desk, 10*time.Minute)))
		if old.caller != loom || short.caller != desk {
			t.Fatalf("called by %q and %q", old.caller, short.caller)
		}
		open(t, s.dial(client(first, nil, "", 0))).endedWith(t, "no certificate", auth.Unauthenticated)
		open(t, s.dial(client(first, first, "spiffe://evil.test/x", time.Hour))).endedWith(t, "another trust domain", auth.Unauthenticated)
		// Entries that name someone are no credential here.
		open(t, s.dial(client(first, nil, "", 0)), "x-forwarded-client-cert", "URI="+loom).endedWith(t, "an entry", auth.Unauthenticated)

		time.Sleep(10*time.Minute + time.Second) // virtual
		synctest.Wait()
		short.endedWith(t, "a certificate that has expired", auth.Expired)

		// A new authority comes, and the old one goes.
		put(rootsFile, first.PEM, second.PEM)
		putPair(second.Issue(t, authtest.Leaf{}))
		time.Sleep(time.Hour)
		synctest.Wait()
		next := open(t, s.dial(client(second, second, desk, 24*time.Hour)))
		if next.caller != desk || !old.live() {
			t.Fatalf("called by %q, the stream of before is live: %v", next.caller, old.live())
		}
		put(rootsFile, second.PEM)
		time.Sleep(70 * time.Second)
		synctest.Wait()
		old.endedWith(t, "a root that was taken away", auth.Unauthenticated)
		if !next.live() {
			t.Error("the new root's stream has ended too")
		}
		if c := open(t, s.dial(client(second, first, loom, time.Hour))); c.live() || c.caller != "" {
			t.Error("a client of the root that was taken away is let in")
		}
	})
}

// TestCallerOf: what is known of a caller over a network.
func TestCallerOf(t *testing.T) {
	got := make(chan auth.Caller, 1)
	s := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
		got <- ingress.CallerOf(ctx)
		return &healthv1.HealthCheckResponse{}, nil
	}))
	healthv1.RegisterHealthServer(s, health.NewServer())
	lis, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(lis) }()
	defer func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	}()
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "Authorization", "one", "authorization", "two", "x-forwarded-client-cert", "URI=x", "x-forwarded-for", "10.0.0.1")
	if _, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	c := <-got
	addr, ok := c.Address()
	if len(c.Authorization) != 2 || c.Authorization[0].Reveal() != "one" || c.Authorization[1].Reveal() != "two" ||
		len(c.ForwardedCert) != 1 || c.ForwardedCert[0] != "URI=x" || c.TLS != nil || !ok || addr != netip.MustParseAddr("127.0.0.1") || !c.Local() {
		t.Errorf("%d authorization entries, %d certificates, from %v, TLS %v", len(c.Authorization), len(c.ForwardedCert), c.Peer, c.TLS)
	}
	if none := ingress.CallerOf(context.Background()); len(none.Authorization) != 0 || none.Peer != nil || none.TLS != nil || none.Local() {
		t.Errorf("outside of any call: %v", none)
	}
}
