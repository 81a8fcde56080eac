package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// parseServe is what gateway serve makes of a command line, an environment, and the text of a configuration file that
// --config names, if there is one.
func parseServe(t *testing.T, args []string, env map[string]string, file string) (serveCommand, error) {
	t.Helper()
	if file != "" {
		args = append([]string{"--config", writeFile(t, "gateway.yaml", file)}, args...)
	}
	p := &process{stdout: io.Discard, stderr: io.Discard, getenv: func(name string) string { return env[name] }}
	var c cli
	_, err := parse(t.Context(), append([]string{"serve"}, args...), p, &c)
	c.Serve.Config = ""
	return c.Serve, err
}

func defaults() serveCommand {
	return serveCommand{
		Access: accessFlags{Sessions: "shared", Recheck: time.Minute},
		Listen: "127.0.0.1:7443", EveURL: "http://127.0.0.1:2000", AgentName: "default", MaxLineBytes: 16 << 20,
		Heartbeat: 10 * time.Second, DrainTimeout: 30 * time.Second, LogFormat: "json", LogLevel: "info",
	}
}

// TestPrecedence: flags win over the environment, which wins over the file, which wins over the defaults.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	const file = "listen: '127.0.0.1:3'\nheartbeat: 3s\nmax-line-bytes: 3\ninsecure: true\nlog-level: error\n"
	env := map[string]string{
		"EVE_GATEWAY_LISTEN": "127.0.0.1:2", "EVE_GATEWAY_HEARTBEAT": "2s", "EVE_GATEWAY_MAX_LINE_BYTES": "2",
		"EVE_GATEWAY_INSECURE": "false", "EVE_GATEWAY_LOG_LEVEL": "warn",
	}
	flags := []string{"--listen=127.0.0.1:1", "--heartbeat=1s", "--max-line-bytes=1", "--insecure", "--log-level=debug"}
	set := func(listen string, beat time.Duration, size int, insecure bool, level string) serveCommand {
		c := defaults()
		c.Listen, c.Heartbeat, c.MaxLineBytes, c.Insecure, c.LogLevel = listen, beat, size, insecure, level
		return c
	}
	fromFile := set("127.0.0.1:3", 3*time.Second, 3, true, "error")
	fromEnv := set("127.0.0.1:2", 2*time.Second, 2, false, "warn")
	fromFlags := set("127.0.0.1:1", time.Second, 1, true, "debug")

	mixed := defaults()
	mixed.Listen, mixed.Heartbeat, mixed.MaxLineBytes, mixed.Insecure = "127.0.0.1:1", 2*time.Second, 3, false

	tests := []struct {
		name string
		args []string
		env  map[string]string
		file string
		want serveCommand
	}{
		{"nothing", nil, nil, "", defaults()},
		{"file", nil, nil, file, fromFile},
		{"environment", nil, env, "", fromEnv},
		{"flags", flags, nil, "", fromFlags},
		{"environment over file", nil, env, file, fromEnv},
		{"flags over file", flags, nil, file, fromFlags},
		{"flags over environment", flags, env, "", fromFlags},
		{"flags over all", flags, env, file, fromFlags},
		{
			"one by one", []string{"--listen=127.0.0.1:1", "--no-insecure"}, map[string]string{"EVE_GATEWAY_HEARTBEAT": "2s"},
			"listen: '127.0.0.1:3'\nheartbeat: 3s\nmax-line-bytes: 3\ninsecure: true\n", mixed,
		},
		{"flags say the default", []string{"--heartbeat=10s"}, map[string]string{"EVE_GATEWAY_HEARTBEAT": "2s"}, "heartbeat: 3s", defaults()},
		{"empty is unset", nil, map[string]string{"EVE_GATEWAY_LISTEN": ""}, "heartbeat:\nlog-level: ''\n", defaults()},
		{"empty file", nil, nil, "# nothing yet\n", defaults()},
		{"variables that are none of ours", nil, map[string]string{"EVE_GATEWAY_PORT": "tcp://10.0.0.1:7443", "EVE_GATEWAY_HELP": "true"}, "", defaults()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseServe(t, tt.args, tt.env, tt.file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestConfigFromEnvironment: the file is named by the environment unless a flag names one.
func TestConfigFromEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{"EVE_GATEWAY_CONFIG": writeFile(t, "env.yaml", "agent-name: env")}
	got, err := parseServe(t, nil, env, "")
	if err != nil || got.AgentName != "env" {
		t.Errorf("agent %q, %v", got.AgentName, err)
	}
	got, err = parseServe(t, nil, env, "agent-name: flag")
	if err != nil || got.AgentName != "flag" {
		t.Errorf("with a flag: agent %q, %v", got.AgentName, err)
	}
}

func TestEveryFlagIsASetting(t *testing.T) {
	t.Parallel()
	var c cli
	command, err := parse(t.Context(), []string{"serve"}, &process{getenv: func(string) string { return "" }}, &c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range command.Selected().Flags {
		if !f.Tag.Has("setting") {
			t.Errorf("--%s does not say that it is a setting", f.Name)
		}
		if f.Name == "port" || strings.HasPrefix(f.Name, "port-") || strings.HasPrefix(f.Name, "service-") {
			t.Errorf("--%s has the name of a variable of Kubernetes", f.Name)
		}
	}
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		env  map[string]string
		file string
		want string
	}{
		{"unknown key", nil, "eve_url: http://x", `unknown key "eve_url"; did you mean "eve-url"?`},
		{"slip of the finger", nil, "hartbeat: 1s", `unknown key "hartbeat"; did you mean "heartbeat"?`},
		{"capitals", nil, "Listen: x", `unknown key "Listen"; did you mean "listen"?`},
		{"nothing like it", nil, "tls: true", `unknown key "tls"; known are tls-cert, tls-key`},
		{"config in itself", nil, "config: x", `unknown key "config"`},
		{"twice", nil, "listen: a\nlisten: b\n", `mapping key "listen" already defined`},
		{"a list", nil, "listen: [a]", "cannot unmarshal"},
		{"a map", nil, "listen: {a: b}", "cannot unmarshal"},
		{"no map", nil, "- listen", "mapping is expected"},
		{"two documents", nil, "listen: a\n---\nlisten: b\n", "more than one document"},
		{"no duration in the file", nil, "heartbeat: 10", "gateway.yaml: expected duration"},
		{"no duration in the environment", map[string]string{"EVE_GATEWAY_HEARTBEAT": "soon"}, "", "from $EVE_GATEWAY_HEARTBEAT: expected duration"},
		{"no number", map[string]string{"EVE_GATEWAY_MAX_LINE_BYTES": "16MiB"}, "", "from $EVE_GATEWAY_MAX_LINE_BYTES: expected a valid 64 bit int"},
		{"not in the enum", map[string]string{"EVE_GATEWAY_LOG_FORMAT": "xml"}, "", `--log-format must be one of "json","text" but got "xml"`},
		{"no file", map[string]string{"EVE_GATEWAY_CONFIG": "/nowhere/gateway.yaml"}, "", "open /nowhere/gateway.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parseServe(t, nil, tt.env, tt.file)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v\nwant %s", err, tt.want)
			}
			p := &process{stderr: io.Discard}
			if code := p.explain(err); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
		})
	}
}

// TestOtherCommandsTakeNoSettings: what a machine's gateway is configured with means nothing to its clients.
func TestOtherCommandsTakeNoSettings(t *testing.T) {
	t.Parallel()
	p := &process{getenv: func(string) string { return "true" }}
	var c cli
	if _, err := parse(t.Context(), []string{"subscribe", "s"}, p, &c); err != nil {
		t.Fatal(err)
	}
	if c.Subscribe.JSON || c.Subscribe.Server != "127.0.0.1:7443" {
		t.Errorf("the environment reached subscribe: %+v", c.Subscribe)
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"listen", "listen", 0},
		{"lisen", "listen", 1},
		{"listtn", "listen", 1},
		{"kitten", "sitting", 3},
	}
	for _, tt := range tests {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
