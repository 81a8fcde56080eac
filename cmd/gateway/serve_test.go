package main

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// openLog is a session that goes on.
func openLog() *fakeeve.MemLog {
	return fakeeve.NewMemLog(
		`{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"session.started","data":{}},{"type":"x.first","data":{"n":1}}]}`,
		`{"at":"2026-11-18T09:00:01.000Z","facts":[{"type":"x.second","data":{"n":2}}]}`,
	)
}

// TestServe uses all that gateway serve offers, then ends it as a service manager does.
func TestServe(t *testing.T) {
	t.Parallel()
	const token = "a-token-nobody-may-see"
	eve, url := newEve(t, fakeeve.WithAuth(fakeeve.Credentials{Bearer: map[string]string{token: "gateway"}}.Authenticate))
	eve.AddSession("s", fakeeve.SessionSpec{Log: openLog()})
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--eve-url", url, "--agent-name", "support",
		"--eve-bearer-file", writeFile(t, "bearer", token+"\n"))
	conn := connect(t, p.address(t))

	check, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: "eve.v1.StreamService"})
	if err != nil || check.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", check, err)
	}
	reflection, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := reflection.Send(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
	}); err != nil {
		t.Fatal(err)
	}
	list, err := reflection.Recv()
	if err != nil || !strings.Contains(list.String(), "eve.v1.StreamService") {
		t.Errorf("reflection: %v, %v", list, err)
	}
	if err := reflection.CloseSend(); err != nil {
		t.Error(err)
	}
	if _, err := reflection.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the end of the reflection: %v", err)
	}

	stream, err := evev1.NewStreamServiceClient(conn).Subscribe(t.Context(), &evev1.SubscribeRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < 3 {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.GetCursor().GetAgent() != "support" {
			t.Errorf("the agent is %q", m.GetCursor().GetAgent())
		}
		if f := m.GetFact(); f != nil {
			got = append(got, f.GetType())
		}
	}
	if want := "session.started x.first x.second"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}

	p.end()
	for err == nil {
		_, err = stream.Recv()
	}
	if reason := stream.Trailer().Get("eve-error-reason"); status.Code(err) != codes.Aborted || !slices.Equal(reason, []string{"DRAINING"}) {
		t.Errorf("the stream ended with %v, reason %v", err, reason)
	}
	if code := p.wait(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	log := p.stderr.String()
	if strings.Contains(log, token) || p.stdout.String() != "" {
		t.Error("the token was logged, or something else than the log was printed")
	}
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, `{"time":"`) {
			t.Errorf("no JSON in the log: %s", line)
		}
	}
}

// TestServeCut ends the gateway twice while load balancers are still to notice.
func TestServeCut(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t)
	eve.AddSession("s", fakeeve.SessionSpec{Log: openLog()})
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--eve-url", url, "--drain-delay", "1h", "--log-format", "text")
	address := p.stderr.find(t, p.exited, func(text string) (string, bool) {
		_, rest, ok := strings.Cut(text, "msg=listening address=")
		address, _, whole := strings.Cut(rest, "\n")
		return address, ok && whole
	})
	stream, err := evev1.NewStreamServiceClient(connect(t, address)).Subscribe(t.Context(), &evev1.SubscribeRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	p.end()
	p.stderr.contains(t, p.exited, "msg=ending")
	p.cut()
	if code := p.wait(t); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if !strings.Contains(p.stderr.String(), errCut.Error()) {
		t.Error("nothing was said about what was cut")
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if code := status.Code(err); code != codes.Unavailable && code != codes.Aborted {
		t.Errorf("the stream ended with %v", err)
	}
}

// TestServeDrainTimeout: a client that watches the health of a gateway for ever does not keep it from ending.
func TestServeDrainTimeout(t *testing.T) {
	t.Parallel()
	_, url := newEve(t)
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--eve-url", url, "--drain-timeout", "10ms")
	watch, err := healthv1.NewHealthClient(connect(t, p.address(t))).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	p.end()
	if code := p.wait(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{"all addresses", []string{"--listen", "0.0.0.0:0"}, exitUsage, "say --insecure"},
		{"all addresses, shorter", []string{"--listen", ":0"}, exitUsage, "say --insecure"},
		{"all addresses, version 6", []string{"--listen", "[::]:0"}, exitUsage, "say --insecure"},
		{"another address", []string{"--listen", "192.0.2.1:0"}, exitUsage, "192.0.2.1:0 is not a loopback address"},
		{"TLS alone", []string{"--listen", ":0", "--tls-cert", "c", "--tls-key", "k"}, exitUsage, "no such file"},
		{"half a certificate", []string{"--tls-cert", "c"}, exitUsage, "belong together"},
		{"client certificates without TLS", []string{"--client-ca", "c"}, exitUsage, "--client-ca needs"},
		{"nobody vouches", []string{"--trust-domain", "d"}, exitUsage, "belong together"},
		{"tokens for anyone", []string{"--oidc-issuer", "https://issuer.test"}, exitUsage, "belong together"},
		{"sessions of nobody", []string{"--sessions", "listed"}, exitUsage, "--sessions listed needs"},
		{"bad tokens", []string{"--token-file", writeFile(t, "tokens", "ada plaintext\n")}, exitUsage, "line 1"},
		{"no port", []string{"--listen", "127.0.0.1"}, exitUsage, "missing port"},
		{"port taken", []string{"--listen", taken.Addr().String()}, exitFailed, "address already in use"},
		{"no URL", []string{"--eve-url", "127.0.0.1:2000"}, exitUsage, "not a URL"},
		{"agent name", []string{"--agent-name", "Support Desk"}, exitUsage, `agent name "Support Desk"`},
		{"no token", []string{"--eve-bearer-file", "/nowhere/token"}, exitFailed, "--eve-bearer-file: reading the bearer token: open /nowhere/token"},
		{"line limit", []string{"--max-line-bytes", "0"}, exitUsage, "--max-line-bytes is 0"},
		{"heartbeat", []string{"--heartbeat", "1h"}, exitUsage, "heartbeat 1h0m0s"},
		{"drain delay", []string{"--drain-delay=-1s"}, exitUsage, "negative"},
		{"drain timeout", []string{"--drain-timeout=-1s"}, exitUsage, "--drain-timeout is -1s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := result(t, append([]string{"serve"}, tt.args...)...)
			if code != tt.code || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit code %d, want %d; it said\n%swant\n%s", code, tt.code, stderr, tt.want)
			}
		})
	}
}

// TestServeInsecure: told so, the gateway listens on all addresses.
func TestServeInsecure(t *testing.T) {
	t.Parallel()
	p := start(t, "serve", "--listen", "0.0.0.0:0", "--insecure")
	if host, _, err := net.SplitHostPort(p.address(t)); err != nil || !net.ParseIP(host).IsUnspecified() {
		t.Errorf("listening on %s: %v", host, err)
	}
	p.end()
	if code := p.wait(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// TestServeLocalhost: a name is as good as its address.
func TestServeLocalhost(t *testing.T) {
	t.Parallel()
	p := start(t, "serve", "--listen", "localhost:0")
	if host, _, err := net.SplitHostPort(p.address(t)); err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("listening on %s: %v", host, err)
	}
}
