package contract_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/evegateway/evegateway/auth/egress"
	"github.com/evegateway/evegateway/gateway"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// log collects what is logged.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Whatever goes wrong, neither the log nor an error has in it what is secret: the gateway's token and URL, the
// caller's metadata, what Eve sends in bodies and errors, and the text of a cursor.
func TestNothingSecretIsTold(t *testing.T) {
	const mark = "s3cret" // every secret has it, and nothing else
	secret := func(what string) string { return mark + "-" + what }
	line := commit(0, "almanac.page", secret("type"))
	answered := func(code int, header ...string) fakeeve.Fault {
		f := answer(code, header...)
		f.Body = `{"ok":false,"code":"` + secret("code with spaces") + `","error":"` + secret("text") + `","eveVersion":"` + secret("version!") + `"}`
		return f
	}
	small := func(c *gateway.Config) { c.MaxLineBytes = 200 }
	tests := []struct {
		name   string
		config func(*gateway.Config)
		lines  []string
		fault  fakeeve.Fault
		ask    *evev1.SubscribeRequest
		want   string // level and reason in the log
	}{
		{name: "a read in good order", lines: []string{line, delta(secret("delta"))}, want: "INFO OK"},
		{name: "garbage", lines: []string{secret("garbage"), `{"` + secret("key") + `":`, `["` + secret("array") + `"]`}, want: "INFO OK"},
		{name: "a line over the limit", config: small, lines: []string{delta(strings.Repeat(secret("large"), 30))}, want: "INFO LINE_TOO_LARGE"},
		{name: "not found", fault: answered(404), want: "INFO SESSION_NOT_FOUND"},
		{name: "refused", fault: answered(401, "WWW-Authenticate", secret("challenge")), want: "ERROR AGENT_REFUSED_CREDENTIALS"},
		{name: "conflict", fault: answered(409), want: "INFO AGENT_CONFLICT"},
		{name: "expired", fault: answered(410), want: "INFO HISTORY_EXPIRED"},
		{name: "rejected", fault: answered(400), want: "INFO REQUEST_INVALID"},
		{name: "overloaded", fault: answered(429, "Retry-After", "3600"), want: "INFO AGENT_OVERLOADED"},
		{name: "down", fault: answered(503), want: "INFO AGENT_UNAVAILABLE"},
		{name: "redirected", fault: answered(302, "Location", "http://elsewhere.test/?t="+secret("location")), want: "INFO AGENT_UNAVAILABLE"},
		{name: "a page", fault: fakeeve.Fault{
			Header: http.Header{"X-Eve-Stream-Version": nil, "Content-Type": {"text/html; x=" + secret("parameter")}}, Verbatim: body(secret("page")),
		}, want: "INFO AGENT_UNAVAILABLE"},
		{name: "a content type that is none", fault: fakeeve.Fault{
			Header: http.Header{"X-Eve-Stream-Version": nil, "Content-Type": {secret("type")}}, Verbatim: body("x"),
		}, want: "INFO AGENT_UNAVAILABLE"},
		{name: "no answer", fault: fakeeve.Fault{Delay: fakeeve.Forever}, want: "INFO AGENT_UNAVAILABLE"},
		{name: "hangs up", config: func(c *gateway.Config) { c.Agents[0].Transport = &hangsUp{} }, want: "INFO AGENT_UNAVAILABLE"},
		{name: "cut short", lines: []string{line}, fault: fakeeve.Fault{CutAt: fakeeve.AtLine(0, 30), Cut: fakeeve.Abort}, want: "INFO AGENT_UNAVAILABLE"},
		{name: "a tail index that is none", fault: fakeeve.Fault{TailHeader: new(secret("tail"))}, want: "INFO AGENT_UNAVAILABLE"},
		{name: "another history", lines: []string{line}, ask: rig.From(&evev1.Cursor{
			SessionId: session, StreamVersion: 27, StreamIndex: 1, Anchor: "1c" + (mark + mark + mark)[:16],
		}), want: "INFO CURSOR_DIVERGED"},
		// Refused before anything is opened: nothing to log.
		{name: "a cursor that is none", ask: rig.From(&evev1.Cursor{SessionId: session, StreamVersion: 27, StreamIndex: 1, Anchor: secret("anchor\x00")})},
		{name: "an agent that is none", ask: &evev1.SubscribeRequest{Agent: secret("agent"), SessionId: session}},
		{name: "a session that is none", ask: &evev1.SubscribeRequest{SessionId: "/" + secret("session")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(file, []byte(secret("token")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			bearer, err := egress.New(egress.Config{Bearer: egress.File(file)})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				c := contractCase{lines: tt.lines, config: func(cfg *gateway.Config) {
					cfg.Agents[0].URL += "?key=" + secret("query")
					cfg.Agents[0].Headers = bearer
					if tt.config != nil {
						tt.config(cfg)
					}
				}}
				logged := &log{}
				o := c.options()
				o.Log = logged
				r := rig.New(t, o)
				r.Eve.AddSession(session, c.spec())
				r.Eve.Script(session, always(tt.fault))
				ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+secret("caller"), "x-trace", secret("metadata"))
				req := tt.ask
				if req == nil {
					req = rig.UntilTail(rig.FromStart(session))
				}
				res := r.Subscribe(ctx, req, nil)
				for _, q := range r.Eve.StreamRequests(session) {
					if q.Header.Get("Authorization") != "Bearer "+secret("token") || q.Query.Get("key") != secret("query") {
						t.Errorf("a request without what the agent is configured with: %v", q)
					}
				}
				r.Close()
				if strings.Contains(logged.String(), mark) {
					t.Errorf("in the log:\n%s", logged)
				}
				if tt.want != "" && reasonLogged(t, logged.String()) != tt.want {
					t.Errorf("want the reason %s in the log, got:\n%s", tt.want, logged)
				}
				told, _ := json.Marshal([]any{status.Convert(res.Err).Proto(), res.Header, res.Trailer})
				if tt.ask == nil && strings.Contains(string(told), mark) {
					t.Errorf("told to the caller: %s", told)
				}
			})
		})
	}
}

// reasonLogged is the level and reason of the line that is logged when a stream is over, which there is exactly one of.
func reasonLogged(t *testing.T, logged string) string {
	t.Helper()
	reason, n := "", 0
	for l := range strings.Lines(logged) {
		var entry struct {
			Level, Msg, Reason, Session string
		}
		if err := json.Unmarshal([]byte(l), &entry); err != nil {
			t.Fatalf("log line %q: %v", l, err)
		}
		if entry.Msg == "stream closed" {
			n++
			reason = entry.Level + " " + entry.Reason
			if entry.Session != session {
				t.Errorf("log line without its session: %s", l)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d lines say that the stream is over", n)
	}
	return reason
}

// A client that leaves is logged as just that.
func TestLeavingIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := contractCase{open: true, lines: numbered(1)}
		logged := &log{}
		o := c.options()
		o.Log = logged
		r := rig.New(t, o)
		s := r.Eve.AddSession(session, c.spec())
		if _, left := subscribe(t, r, s, rig.FromStart(session), &call{leave: time.Minute}); !left {
			t.Error("the client did not leave")
		}
		r.Close()
		if got := reasonLogged(t, logged.String()); got != "INFO CALLER_LEFT" {
			t.Errorf("reason %q in the log:\n%s", got, logged)
		}
	})
}
