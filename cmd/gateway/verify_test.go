package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/guarantee"
)

// broken are the first words of the guarantees that a report says are broken. It says something of each.
func broken(t *testing.T, report string) (failed []string) {
	t.Helper()
	passed := 0
	for line := range strings.Lines(report) {
		if text, ok := strings.CutPrefix(line, "FAIL  "); ok {
			failed = append(failed, strings.Trim(strings.Fields(text)[0], ":"))
		}
		if strings.HasPrefix(line, "PASS  ") {
			passed++
		}
	}
	if len(failed)+passed != len(guarantee.All()) {
		t.Errorf("not every guarantee has a verdict:\n%s", report)
	}
	return failed
}

func TestVerify(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t)
	growing := fakeeve.Continue(fakeeve.Head(fakeeve.Generated(100, fakeeve.Mixed, 27), 40))
	sessions := map[string]fakeeve.SessionSpec{
		"ended":   {Log: endedLog()},
		"long":    {Log: fakeeve.Generated(400, fakeeve.Mixed, 27)},
		"events":  {Version: 26, Log: fakeeve.Generated(300, fakeeve.Mixed, 26)},
		"empty":   {},
		"growing": {Log: growing},
		"cut":     {Log: fakeeve.Generated(100, fakeeve.Mixed, 27)},
	}
	for id, spec := range sessions {
		eve.AddSession(id, spec)
	}
	eve.Script("cut", func(c fakeeve.Conn) fakeeve.Fault {
		return fakeeve.Fault{CutAt: fakeeve.AtLine(c.Start+20, 5), Cut: fakeeve.How(c.N % 3)}
	})
	eve.Script("growing", func(fakeeve.Conn) fakeeve.Fault {
		growing.Append(string(fakeeve.Generated(1000, fakeeve.Mixed, 27).Line(growing.Len())))
		return fakeeve.Fault{}
	})
	server := newGateway(t, url)
	for id := range sessions {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := result(t, "verify", id, "--server", server, "--eve-url", url, "--seed", "7")
			if failed := broken(t, stdout); code != exitOK || stderr != "" || len(failed) > 0 {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
			if !strings.HasPrefix(stdout, "session "+id+", seed 7\n") {
				t.Errorf("it does not say what it does:\n%s", stdout)
			}
		})
	}
}

// A seed makes a run the same again, and without one each is another.
func TestVerifySeed(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t)
	eve.AddSession("s", fakeeve.SessionSpec{Log: fakeeve.Generated(300, fakeeve.Mixed, 27)})
	server := newGateway(t, url)
	verify := func(args ...string) string {
		code, stdout, stderr := result(t, append([]string{"verify", "s", "--server", server, "--eve-url", url, "--rounds", "2"}, args...)...)
		if code != exitOK {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		return stdout
	}
	if a, b := verify("--seed", "11"), verify("--seed", "11"); a != b {
		t.Errorf("the same seed:\n%s\n%s", a, b)
	}
	if a, b := verify(), verify(); a == b {
		t.Errorf("two seeds of its own are one:\n%s", a)
	}
}

// liar forwards Subscribe to a gateway, and lies.
type liar struct {
	evev1.UnimplementedStreamServiceServer
	honest evev1.StreamServiceClient
	// ask and tell may change a request and the n-th message of a call. tell returns what is sent instead.
	ask  func(*evev1.SubscribeRequest)
	tell func(n int, m *evev1.SubscribeResponse) []*evev1.SubscribeResponse
}

func (l *liar) Subscribe(req *evev1.SubscribeRequest, stream grpc.ServerStreamingServer[evev1.SubscribeResponse]) error {
	if l.ask != nil {
		l.ask(req)
	}
	from, err := l.honest.Subscribe(stream.Context(), req)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		m, err := from.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		told := []*evev1.SubscribeResponse{m}
		if l.tell != nil {
			told = l.tell(n, m)
		}
		for _, m := range told {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
	}
}

func (l *liar) serve(t *testing.T) string {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	evev1.RegisterStreamServiceServer(s, l)
	done := make(chan error, 1)
	go func() { done <- s.Serve(lis) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return lis.Addr().String()
}

func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t)
	eve.AddSession("s", fakeeve.SessionSpec{Log: fakeeve.Generated(200, fakeeve.Mixed, 27)})
	server := newGateway(t, url)
	one := func(m *evev1.SubscribeResponse) []*evev1.SubscribeResponse { return []*evev1.SubscribeResponse{m} }
	isRecord := func(m *evev1.SubscribeResponse) bool { return m.GetCheckpoint() == nil }
	tests := []struct {
		name, want string
		liar       *liar
	}{
		{"a record is missing", "gapless", &liar{tell: func(n int, m *evev1.SubscribeResponse) []*evev1.SubscribeResponse {
			if n == 5 && isRecord(m) {
				return nil
			}
			return one(m)
		}}},
		{"a record comes twice", "unique", &liar{tell: func(n int, m *evev1.SubscribeResponse) []*evev1.SubscribeResponse {
			if n == 5 && isRecord(m) {
				return append(one(m), m)
			}
			return one(m)
		}}},
		{"another session's cursor", "isolated", &liar{ask: func(req *evev1.SubscribeRequest) {
			if c := req.GetCursor(); c != nil {
				c.SessionId = "s"
			}
		}, tell: func(n int, m *evev1.SubscribeResponse) []*evev1.SubscribeResponse {
			if n == 3 && isRecord(m) {
				m = proto.CloneOf(m)
				m.Cursor.SessionId = "other"
			}
			return one(m)
		}}},
		{"no anchors are looked at", "verified", &liar{ask: func(req *evev1.SubscribeRequest) {
			if c := req.GetCursor(); c != nil {
				c.Anchor = ""
			}
		}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.liar.honest = evev1.NewStreamServiceClient(connect(t, server))
			code, stdout, stderr := result(t, "verify", "s", "--server", tt.liar.serve(t), "--eve-url", url, "--seed", "3", "--rounds", "6")
			failed := broken(t, stdout)
			if code != exitFailed || stderr != "" || len(failed) != 1 || failed[0] != tt.want {
				t.Errorf("exit code %d, broken: %v, want %s alone\n%s%s", code, failed, tt.want, stdout, stderr)
			}
			if !strings.Contains(stdout, "      round ") {
				t.Errorf("no place is told:\n%s", stdout)
			}
		})
	}
}

func TestVerifyCannot(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t)
	eve.AddSession("s", fakeeve.SessionSpec{Log: endedLog()})
	server := newGateway(t, url)
	bad := &liar{}
	bad.tell = func(int, *evev1.SubscribeResponse) []*evev1.SubscribeResponse { return nil }
	bad.honest = evev1.NewStreamServiceClient(connect(t, server))
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{"unknown session", []string{"nobody", "--server", server, "--eve-url", url}, exitFailed, "status 404"},
		{"no agent there", []string{"s", "--server", server, "--eve-url", "http://127.0.0.1:1"}, exitFailed, "connection refused"},
		{"unknown agent", []string{"s", "--agent", "ghost", "--server", server, "--eve-url", url}, exitFailed, "REQUEST_INVALID"},
		{"no URL", []string{"s", "--server", server}, exitUsage, "--eve-url"},
		{"no rounds", []string{"s", "--server", server, "--eve-url", url, "--rounds", "0"}, exitUsage, "--rounds is 0"},
		{"no token", []string{"s", "--server", server, "--eve-url", url, "--eve-bearer-file", "/nowhere"}, exitFailed, "/nowhere"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := result(t, append([]string{"verify"}, tt.args...)...)
			if code != tt.code || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit code %d, want %d; standard error should have %q:\n%s", code, tt.code, tt.want, stderr)
			}
		})
	}
	t.Run("a gateway that says nothing and OK", func(t *testing.T) {
		t.Parallel()
		code, stdout, _ := result(t, "verify", "s", "--server", bad.serve(t), "--eve-url", url, "--rounds", "1")
		if failed := broken(t, stdout); code != exitFailed || fmt.Sprint(failed) != "[gapless]" {
			t.Errorf("exit code %d\n%s", code, stdout)
		}
	})
}

func TestVerifyBearer(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t, fakeeve.WithAuth(fakeeve.Credentials{Bearer: map[string]string{"tok": "gateway"}}.Authenticate))
	eve.AddSession("s", fakeeve.SessionSpec{Log: endedLog()})
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("tok\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := start(t, "serve", "--listen", "127.0.0.1:0", "--eve-url", url, "--eve-bearer-file", file).address(t)
	if code, stdout, stderr := result(t, "verify", "s", "--server", server, "--eve-url", url, "--eve-bearer-file", file); code != exitOK {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := result(t, "verify", "s", "--server", server, "--eve-url", url); code != exitFailed || !strings.Contains(stderr, "status 401") {
		t.Errorf("without a token: exit code %d\n%s", code, stderr)
	}
}

// A gateway that goes away for a moment is waited for.
func TestVerifyWaits(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t)
	eve.AddSession("s", fakeeve.SessionSpec{Log: fakeeve.Generated(100, fakeeve.Mixed, 27)})
	server := newGateway(t, url)
	calls := 0
	shaky := &liar{honest: evev1.NewStreamServiceClient(connect(t, server))}
	shaky.ask = func(req *evev1.SubscribeRequest) {
		if calls++; calls == 2 {
			req.SessionId = "s2" // there is a script for it
		}
	}
	eve.Script("s2", func(fakeeve.Conn) fakeeve.Fault {
		return fakeeve.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"3600"}}}
	})
	code, stdout, stderr := result(t, "verify", "s", "--server", shaky.serve(t), "--eve-url", url, "--rounds", "2", "--seed", "5")
	if code != exitOK {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestVerifyInterrupted(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t)
	eve.AddSession("s", fakeeve.SessionSpec{Log: endedLog()})
	asked := make(chan struct{}, 100)
	eve.Script("s", func(fakeeve.Conn) fakeeve.Fault {
		asked <- struct{}{}
		return fakeeve.Fault{Delay: fakeeve.Forever}
	})
	p := start(t, "verify", "s", "--server", newGateway(t, url), "--eve-url", url)
	<-asked
	p.end()
	if code := p.wait(t); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
}
