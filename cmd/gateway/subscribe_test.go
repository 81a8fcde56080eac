package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// newGateway runs gateway serve in front of a fake Eve and returns the gateway's address.
func newGateway(t *testing.T, url string) string {
	t.Helper()
	return start(t, "serve", "--listen", "127.0.0.1:0", "--eve-url", url).address(t)
}

// brokenPipe takes so many writes and fails then.
type brokenPipe struct {
	text bytes.Buffer
	left int
}

var errBroken = errors.New("broken pipe")

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errBroken
	}
	b.left--
	return b.text.Write(p)
}

// endedLog is a session of three lines and five records that has ended.
func endedLog() *fakeeve.MemLog {
	log := fakeeve.NewMemLog(
		`{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"session.started","data":{}},{"type":"x.a","data":1},{"type":"x.b","data":2}]}`,
		`{"progress":{"type":"x.p","data":"\u001b[2J"}}`,
		`{"at":"2026-11-18T09:00:01.000Z","facts":[{"type":"session.ended","data":{"outcome":"completed"}}]}`,
	)
	log.End()
	return log
}

const endedText = `09:00:00.000     0.0  session.started
09:00:00.000     0.1  x.a                  1
09:00:00.000     0.2  x.b                  2
09:00:00.000     1.0  x.p                  "\u001b[2J"
09:00:01.000     2.0  session.ended        completed
                 3.0  --                   end: the session has ended
`

// withoutCaughtUp removes what depends on when the session was opened.
func withoutCaughtUp(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "caught up") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestSubscribe(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t)
	eve.AddSession("s", fakeeve.SessionSpec{Log: endedLog()})
	server := newGateway(t, url)
	code, stdout, stderr := result(t, "subscribe", "s", "--server", server)
	if got := withoutCaughtUp(stdout); code != exitOK || stderr != "" || got != endedText {
		t.Errorf("exit code %d\n%s%swant\n%s", code, stderr, got, endedText)
	}
	code, stdout, _ = result(t, "subscribe", "s", "--server", server, "--until", "tail", "--from", "tail", "--agent", "default")
	if code != exitOK || !strings.HasPrefix(stdout, "                 3.0  --                   positioned\n") {
		t.Errorf("from the tail: exit code %d\n%s", code, stdout)
	}
	code, stdout, _ = result(t, "subscribe", "s", "--server", server, "--until", "tail", "--json", "--payload", "raw")
	if code != exitOK || !strings.Contains(stdout, `"recordJson":"{\"type\":\"x.a\",\"data\":1}"`) ||
		strings.ContainsFunc(stdout, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("as JSON: exit code %d\n%s", code, stdout)
	}
	turns := fakeeve.NewMemLog()
	for n := range 2 * demoSteps {
		if line := demoStep(n, time.Now()); line != "" {
			turns.Append(line)
		}
	}
	eve.AddSession("turns", fakeeve.SessionSpec{Log: turns})
	code, stdout, _ = result(t, "subscribe", "turns", "--server", server, "--until", "turn")
	if code != exitOK || strings.Count(stdout, " turn.settled ") != 1 || !strings.Contains(stdout, "end: read as far as was asked for\n") {
		t.Errorf("until the end of a turn: exit code %d\n%s", code, stdout)
	}
	code, stdout, _ = result(t, "subscribe", "s", "--server", server, "--until", "tail", "--json", "--payload", "none")
	if code != exitOK || strings.Contains(stdout, "recordJson") || !strings.Contains(stdout, `"type":"x.a"`) {
		t.Errorf("without payload: exit code %d\n%s", code, stdout)
	}
}

// TestSubscribeResumes breaks the output after every number of lines there is, and goes on from the cursor file: what
// is printed all in all is what is printed without a break.
func TestSubscribeResumes(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t)
	eve.AddSession("s", fakeeve.SessionSpec{Log: endedLog()})
	server := newGateway(t, url)
	lines := strings.Count(endedText, "\n") + 1 // one more for "caught up"
	for n := range lines {
		t.Run(fmt.Sprintf("after %d lines", n), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "cursor")
			args := []string{"subscribe", "s", "--server", server, "--cursor-file", file}
			out := &brokenPipe{left: n}
			var stderr bytes.Buffer
			code := run(t.Context(), args, &process{stdout: out, stderr: &stderr, getenv: func(string) string { return "" }})
			if code != exitFailed || !strings.Contains(stderr.String(), errBroken.Error()) {
				t.Errorf("exit code %d\n%s", code, &stderr)
			}
			code, rest, saidRest := result(t, args...)
			if code != exitOK || (n > 0) != strings.Contains(saidRest, "going on from default/s@") {
				t.Errorf("resumed: exit code %d\n%s", code, saidRest)
			}
			if got := withoutCaughtUp(out.text.String() + rest); got != endedText {
				t.Errorf("printed\n%swant\n%s", got, endedText)
			}
			// At the end of the session there is nothing more to read, however often it is asked for.
			code, again, _ := result(t, args...)
			if _, end, _ := strings.Cut(endedText, "session.ended        completed\n"); code != exitOK || again != end {
				t.Errorf("read once more: exit code %d\n%s", code, again)
			}
			if left, err := filepath.Glob(file + "?*"); err != nil || left != nil {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// forward accepts connections for whatever address was named last, as a load balancer does.
func forward(t *testing.T) (address string, to func(address string)) {
	t.Helper()
	lis, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var target atomic.Pointer[string]
	var work sync.WaitGroup
	work.Go(func() {
		for {
			client, err := lis.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(t.Context(), "tcp", *target.Load())
			if err != nil {
				_ = client.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
				work.Go(func() {
					_, _ = io.Copy(pair[0], pair[1]) // until either end closes
					_ = client.Close()
					_ = server.Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = lis.Close()
		work.Wait()
	})
	return lis.Addr().String(), func(address string) { target.Store(&address) }
}

// TestSubscribeReconnects ends the gateway in the middle of a session; another one in its place is read on.
func TestSubscribeReconnects(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t)
	log := openLog()
	eve.AddSession("s", fakeeve.SessionSpec{Log: log})
	server, to := forward(t)
	first := start(t, "serve", "--listen", "127.0.0.1:0", "--eve-url", url)
	to(first.address(t))
	p := start(t, "subscribe", "s", "--server", server)
	p.stdout.contains(t, p.exited, "x.second")
	to(newGateway(t, url))
	first.end()
	p.stderr.contains(t, p.exited, "DRAINING (Aborted): ")
	log.Append(`{"at":"2026-11-18T09:00:02.000Z","facts":[{"type":"session.ended","data":{"outcome":"completed"}}]}`)
	if code := p.wait(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	var types []string
	for line := range strings.Lines(withoutCaughtUp(p.stdout.String())) {
		if words := strings.Fields(line); words[1] != "--" {
			types = append(types, words[2])
		}
	}
	if got, want := strings.Join(types, " "), "session.started x.first x.second session.ended"; got != want {
		t.Errorf("printed %s, want %s", got, want)
	}
	if code := first.wait(t); code != exitOK {
		t.Errorf("the first gateway: exit code %d", code)
	}
}

func TestSubscribeInterrupted(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t)
	eve.AddSession("s", fakeeve.SessionSpec{Log: openLog()})
	file := filepath.Join(t.TempDir(), "cursor")
	p := start(t, "subscribe", "s", "--server", newGateway(t, url), "--cursor-file", file)
	p.stdout.contains(t, p.exited, "x.second")
	p.end()
	if code := p.wait(t); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	if want := "read up to default/s@2.0 v27, saved in " + file; !strings.Contains(p.stderr.String(), want) {
		t.Errorf("it did not say %q", want)
	}
	if c, err := cursorFile(file).load(); err != nil || c.StreamIndex != 2 || c.SessionEnded {
		t.Errorf("saved %v, %v", c, err)
	}
}

func TestSubscribeFails(t *testing.T) {
	t.Parallel()
	eve, url := newEve(t)
	eve.AddSession("s", fakeeve.SessionSpec{Log: endedLog()})
	eve.AddSession("stranded", fakeeve.SessionSpec{Log: openLog(), Stranded: "0.79.0"})
	server := newGateway(t, url)

	saved := filepath.Join(t.TempDir(), "saved")
	if code, _, stderr := result(t, "subscribe", "s", "--server", server, "--until", "tail", "--cursor-file", saved); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	text, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	const short = "evc1.CBs" // a cursor, but what it is of was lost
	if !strings.HasPrefix(string(text), short) {
		t.Fatalf("saved %s", text)
	}
	cut, damaged := writeFile(t, "cut", short), writeFile(t, "damaged", string(text[:len(text)/2]))

	tests := []struct {
		name string
		args []string
		want []string
	}{
		{
			"unknown session", []string{"none", "--server", server},
			[]string{"SESSION_NOT_FOUND (NotFound)", "nothing was read", "check the session's id"},
		},
		{
			"another session's cursor", []string{"stranded", "--server", server, "--cursor-file", saved},
			[]string{"CURSOR_INVALID (InvalidArgument)", "read up to default/s@3.0 v27 ended, saved in " + saved, "another --cursor-file"},
		},
		{
			"stranded", []string{"stranded", "--server", server},
			[]string{"SESSION_STRANDED (FailedPrecondition)", "read up to default/stranded@2.0 v27; with --cursor-file", "--until tail"},
		},
		{
			"cursor file cut short", []string{"s", "--server", server, "--cursor-file", cut},
			[]string{"cursor file " + cut + ": it names no session"},
		},
		{
			"damaged cursor file", []string{"s", "--server", server, "--cursor-file", damaged},
			[]string{"cursor file " + damaged + ": cursor: "},
		},
		{
			"cursor file that cannot be written", []string{"s", "--server", server, "--cursor-file", "/nowhere/cursor"},
			[]string{"cursor file: open /nowhere/cursor.next", "nothing was read"},
		},
		{
			"no gateway", []string{"s", "--server", "127.0.0.1:1", "--retry-for", "1ms"},
			[]string{"Unavailable: ", "check that a gateway listens there"},
		},
		{
			"unknown agent", []string{"s", "--server", server, "--agent", "x"},
			[]string{"REQUEST_INVALID (InvalidArgument)", "does not take agent"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := result(t, append([]string{"subscribe"}, tt.args...)...)
			if code != exitFailed {
				t.Errorf("exit code %d, want %d", code, exitFailed)
			}
			for _, want := range tt.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("it did not say %q:\n%s", want, stderr)
				}
			}
		})
	}
	if text, err := os.ReadFile(cut); err != nil || string(text) != short {
		t.Errorf("the file that was cut short was changed to %s, %v", text, err)
	}
}
