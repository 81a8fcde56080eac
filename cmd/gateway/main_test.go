package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for what should happen at once.
const patience = 30 * time.Second

// program is a run of the program inside the test.
type program struct {
	stdout, stderr *output
	end, cut       context.CancelFunc
	exited         chan struct{}
	code           int // set when exited is closed
}

// start runs the program without an environment. It ends with the test at the latest.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	cut, cutOff := context.WithCancel(context.Background())
	p := &program{stdout: newOutput(), stderr: newOutput(), end: end, cut: cutOff, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		p.code = run(ctx, args, &process{
			stdin: strings.NewReader(""), stdout: p.stdout, stderr: p.stderr,
			getenv: func(string) string { return "" }, cut: cut,
		})
	}()
	t.Cleanup(func() {
		end()
		cutOff()
		<-p.exited
		if t.Failed() {
			t.Logf("gateway %s\nstandard output:\n%s\nstandard error:\n%s", strings.Join(args, " "), p.stdout, p.stderr)
		}
	})
	return p
}

// wait returns the exit code.
func (p *program) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatalf("still running after %v", patience)
	}
	return p.code
}

// address waits until the gateway listens.
func (p *program) address(t *testing.T) string {
	t.Helper()
	return p.stderr.find(t, p.exited, func(text string) (string, bool) {
		for line := range strings.Lines(text) {
			var entry struct{ Msg, Address string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" {
				return entry.Address, true
			}
		}
		return "", false
	})
}

// result runs the program to its end.
func result(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := start(t, args...)
	code = p.wait(t)
	return code, p.stdout.String(), p.stderr.String()
}

// output collects what is written and tells who waits for more.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{} // closed and replaced when there is more
}

func newOutput() *output { return &output{grown: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.grown)
	o.grown = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// find waits until f finds what it looks for.
func (o *output) find(t *testing.T, exited <-chan struct{}, f func(text string) (string, bool)) string {
	t.Helper()
	deadline := time.After(patience)
	for {
		o.mu.Lock()
		text, grown := o.text.String(), o.grown
		o.mu.Unlock()
		if found, ok := f(text); ok {
			return found
		}
		select {
		case <-grown:
		case <-exited:
			if found, ok := f(o.String()); ok {
				return found
			}
			t.Fatalf("ended without what was waited for:\n%s", o)
		case <-deadline:
			t.Fatalf("not there after %v:\n%s", patience, o)
		}
	}
}

// contains waits for a text.
func (o *output) contains(t *testing.T, exited <-chan struct{}, want string) {
	t.Helper()
	o.find(t, exited, func(text string) (string, bool) { return "", strings.Contains(text, want) })
}

// newEve runs a fake Eve for the test and returns its address.
func newEve(t *testing.T, opts ...fakeeve.Option) (eve *fakeeve.Server, url string) {
	t.Helper()
	eve = fakeeve.New(opts...)
	running, err := fakeeve.StartTCP(t.Context(), eve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Close)
	return eve, running.URL
}

// connect makes a client of the gateway at an address.
func connect(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// writeFile makes a file for the test and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, stderr string
		args         []string
		code         int
	}{
		{"no command", `expected one of "serve"`, nil, exitUsage},
		{"unknown command", "unexpected argument srve", []string{"srve"}, exitUsage},
		{"unknown flag", "unknown flag --lisen", []string{"serve", "--lisen", ":0"}, exitUsage},
		{"not printable", `unexpected argument \x1b[2J`, []string{"\x1b[2J"}, exitUsage},
		{"no session", `expected "<session>"`, []string{"subscribe"}, exitUsage},
		{"bad bound", `--until must be one of "end","tail","turn"`, []string{"subscribe", "s", "--until", "never"}, exitUsage},
		{"no pace", "--pace is 0s", []string{"demo", "--pace", "0s"}, exitUsage},
		{"demo to everyone", "not a loopback address", []string{"demo", "--listen", "0.0.0.0:0"}, exitUsage},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := result(t, tt.args...)
			if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("exit code %d, want %d\n%s\nstandard error %s\nwant %s", code, tt.code, stdout, stderr, tt.stderr)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	tests := []struct{ args, want string }{
		{"--help", "subscribe  "},
		{"serve --help", "$EVE_GATEWAY_EVE_URL"},
		{"subscribe --help", "--cursor-file=FILE"},
		{"demo -h", "--pace=DURATION"},
	}
	for _, tt := range tests {
		if code, stdout, stderr := result(t, strings.Fields(tt.args)...); code != exitOK || stderr != "" || !strings.Contains(stdout, tt.want) {
			t.Errorf("gateway %s: exit code %d\n%s%s\nwant %s", tt.args, code, stderr, stdout, tt.want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := result(t, "version")
	if code != exitOK || stderr != "" || !strings.HasPrefix(stdout, "gateway ") || !strings.Contains(stdout, "\nEve stream versions 21 to 27\n") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	const (
		text = "evc1.CBsQLxgCIgUxOmE8YioLCMDTnNcGEMCWsQI6B3N1cHBvcnRCBndydW5fMkoQCgZ3cnVuXzESBmNhbGxfMw"
		want = `{"streamVersion":27,"streamIndex":"47","streamEventIndex":2,"anchor":"1:a<b","lastCommitTime":"2026-11-01T12:00:00.005Z",` +
			`"agent":"support","sessionId":"wrun_2","child":{"parentSessionId":"wrun_1","callId":"call_3"}}` + "\n"
	)
	file := writeFile(t, "cursor", text+"\n")
	tests := []struct {
		name, arg, stdin, stdout, stderr string
		code                             int
	}{
		{name: "text", arg: text, stdout: want},
		{name: "file", arg: file, stdout: want},
		{name: "standard input", arg: "-", stdin: text + "\n", stdout: want},
		{name: "cut short", arg: text[:20], stderr: "cursor: ", code: exitFailed},
		{name: "no such file", arg: file + "x", stderr: "no such file or directory; the text of a cursor begins with evc1", code: exitFailed},
		{name: "another file", arg: writeFile(t, "other", "hello"), stderr: "other: cursor: ", code: exitFailed},
		{name: "empty file", arg: writeFile(t, "empty", ""), stderr: "empty: cursor: ", code: exitFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), []string{"cursor", tt.arg}, &process{stdin: strings.NewReader(tt.stdin), stdout: &stdout, stderr: &stderr})
			if code != tt.code || stdout.String() != tt.stdout || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("exit code %d, want %d\nstandard output %s\nwant %s\nstandard error %s\nwant %s",
					code, tt.code, &stdout, tt.stdout, &stderr, tt.stderr)
			}
		})
	}
}
