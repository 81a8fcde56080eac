//go:build smoke

package smoke_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/test/process"
)

const (
	gateway = "../../bin/gateway"
	grpcurl = "../../bin/grpcurl"
)

// message is one SubscribeResponse as grpcurl prints it.
type message map[string]any

// isRecord tells records from checkpoints.
func (m message) isRecord() bool { return m["checkpoint"] == nil }

// insideLine says whether the cursor stands behind a record that is not the last one of its line.
func (m message) insideLine() bool {
	cursor, _ := m["cursor"].(map[string]any)
	return cursor["streamEventIndex"] != nil
}

func TestDemo(t *testing.T) {
	demo := process.Start(t, "gateway demo", "", nil, gateway, "demo", "--listen", "127.0.0.1:0")
	address := demo.ListenAddress(t)
	session := demo.WaitFor(t, "the id of a session", sessionID)

	if len(printedCommands(demo.Output())) == 0 {
		t.Error("the demo suggests no command")
	}

	services := call(t, address, "list")
	for _, want := range []string{"eve.v1.StreamService", "grpc.health.v1.Health"} {
		if !strings.Contains(services, want+"\n") {
			t.Errorf("list does not know %s:\n%s", want, services)
		}
	}
	if got := call(t, address, "describe", "eve.v1.StreamService"); !strings.Contains(got, "rpc Subscribe (") {
		t.Errorf("describe eve.v1.StreamService:\n%s", got)
	}
	if got := call(t, address, "grpc.health.v1.Health/Check"); !strings.Contains(got, `"SERVING"`) {
		t.Errorf("health: %s", got)
	}

	for _, command := range printedCommands(demo.Output()) {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
		cmd.Env = append(os.Environ(), "PATH=../../bin:"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
			t.Errorf("the demo suggests %s\n%v\n%s", command, err, out)
		}
	}

	whole := records(t, subscribe(t, address, map[string]any{"session_id": session, "until": map[string]any{"tail": map[string]any{}}}))
	if len(whole) < 10 {
		t.Fatalf("the demo's session has %d records", len(whole))
	}
	// From the middle, and from inside a line.
	places := []int{len(whole) / 2}
	for i, m := range whole {
		if m.insideLine() {
			places = append(places, i)
			break
		}
	}
	for _, i := range places {
		rest := records(t, subscribe(t, address, map[string]any{"cursor": whole[i]["cursor"], "until": map[string]any{"tail": map[string]any{}}}))
		want := whole[i+1:]
		// The demo goes on meanwhile: there may be more, but no less and nothing else.
		if len(rest) < len(want) {
			t.Errorf("resumed behind record %d: %d records, want %d or more", i, len(rest), len(want))
		} else if diff := cmp.Diff(want, rest[:len(want)]); diff != "" {
			t.Errorf("resumed behind record %d, other records came (-want +got):\n%s", i, diff)
		}
	}

	// Ctrl-C, while somebody reads: the demo ends in good order, and its reader is told to come back.
	reader := process.Start(t, "grpcurl", "", nil, grpcurl, "-plaintext", "-d", `{"session_id":"live"}`, address, "eve.v1.StreamService/Subscribe")
	reader.WaitFor(t, "a record", contains(`"fact"`))
	demo.Interrupt(t)
	reader.WaitFor(t, "why its stream ended", contains("Code: Aborted"))
}

// printedCommands finds the grpcurl commands that the demo prints for people to copy.
func printedCommands(text string) []string {
	return regexp.MustCompile(`(?m)^ *(grpcurl .*)$`).FindAllString(text, -1)
}

func contains(what string) func(string) (string, bool) {
	return func(text string) (string, bool) { return what, strings.Contains(text, what) }
}

// sessionID finds the session that the demo suggests to read, in the command it prints for it.
func sessionID(text string) (string, bool) {
	match := regexp.MustCompile(`"session_id": ?"([^"]+)"`).FindStringSubmatch(text)
	if match == nil {
		return "", false
	}
	return match[1], true
}

// subscribe reads a session to the bound in the request.
func subscribe(t *testing.T, address string, request map[string]any) []message {
	t.Helper()
	data, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var messages []message
	for in := json.NewDecoder(strings.NewReader(call(t, address, "eve.v1.StreamService/Subscribe", "-d", string(data)))); ; {
		var m message
		if err := in.Decode(&m); errors.Is(err, io.EOF) {
			return messages
		} else if err != nil {
			t.Fatalf("reading what grpcurl printed: %v", err)
		}
		messages = append(messages, m)
	}
}

// records keeps the records of a stream that ended as it should: with an ENDED checkpoint.
func records(t *testing.T, messages []message) []message {
	t.Helper()
	var kept []message
	for _, m := range messages {
		if m.isRecord() {
			kept = append(kept, m)
		}
	}
	if n := len(messages); n == 0 || messages[n-1].isRecord() {
		t.Fatalf("%d messages, the last one no checkpoint", n)
	}
	return kept
}

// call runs grpcurl for a symbol or a command, with flags before it, and returns what it prints.
func call(t *testing.T, address, what string, rest ...string) string {
	t.Helper()
	args := []string{"-plaintext"}
	if what == "describe" || what == "list" {
		args = append(append(args, address, what), rest...)
	} else {
		args = append(append(args, rest...), address, what)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), grpcurl, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("grpcurl %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String()
}
