package guarantee_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/guarantee"
)

// What is read directly is what is stored, whatever the server does to the connections.
func TestDirect(t *testing.T) {
	// A log that grows belongs into the bubble.
	open := func() *fakeeve.MemLog {
		l := fakeeve.NewMemLog(commit(0, "x.a", "x.b"), progress(1), "no line")
		l.AppendRaw(nil, nil)
		l.Append(commit(5, "session.ended"))
		return l
	}
	old := fakeeve.Quirks{TailInformational: true, IgnoresFollow: true}
	tests := []struct {
		name   string
		spec   fakeeve.SessionSpec
		base   string
		script fakeeve.Script
	}{
		{name: "plain", spec: fakeeve.SessionSpec{}},
		{name: "empty", spec: fakeeve.SessionSpec{Log: fakeeve.Generated(0, fakeeve.Mixed, 27)}},
		{name: "long", spec: fakeeve.SessionSpec{Log: fakeeve.Generated(500, fakeeve.Mixed, 27)}},
		{name: "events", spec: fakeeve.SessionSpec{Version: 24, Log: fakeeve.Generated(200, fakeeve.Mixed, 24)}},
		{name: "a body that goes on", spec: fakeeve.SessionSpec{Quirks: old}},
		{name: "a named agent", spec: fakeeve.SessionSpec{}, base: "/eve/tide-desk/v1"},
		{name: "cut in every line", spec: fakeeve.SessionSpec{}, script: func(c fakeeve.Conn) fakeeve.Fault {
			return fakeeve.Fault{CutAt: fakeeve.AtLine(c.Start+1, 3), Cut: fakeeve.How(c.N % 3), CRLF: c.N%2 == 0}
		}},
		{name: "unavailable now and then", spec: fakeeve.SessionSpec{}, script: func(c fakeeve.Conn) fakeeve.Fault {
			if c.N%2 == 0 {
				return fakeeve.Fault{Status: http.StatusBadGateway}
			}
			return fakeeve.Fault{CutAt: fakeeve.AtLine(c.Start+1, 0)}
		}},
		{name: "silent", spec: fakeeve.SessionSpec{}, script: fakeeve.Faults(
			fakeeve.Fault{StallAt: fakeeve.AtLine(2, 2), Stall: fakeeve.Forever, Heartbeat: -1})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opts []fakeeve.Option
				if tt.base != "" {
					opts = append(opts, fakeeve.WithBase(tt.base))
				}
				eve := fakeeve.New(opts...)
				running := fakeeve.StartPipe(eve)
				defer running.Close()
				if tt.spec.Log == nil {
					tt.spec.Log = open()
				}
				s := eve.AddSession(session, tt.spec)
				eve.Script(session, tt.script)
				server := guarantee.Server{URL: running.URL + strings.TrimSuffix(tt.base, "/v1"), Client: running.Client()}
				var got guarantee.Direct
				for range 2 { // the second time there is nothing more
					if err := server.Read(t.Context(), session, &got); err != nil {
						t.Fatal(err)
					}
				}
				want := guarantee.Lines(slices.Collect(fakeeve.Entries(s.Log(), s.Spec().Version, 0, -1)))
				if diff := cmp.Diff(text(want), text(got.Lines)); diff != "" || got.Version != s.Spec().Version {
					t.Errorf("version %d (-stored +read):\n%s", got.Version, diff)
				}
				eve.Script(session, nil)
				if tail, err := server.Tail(t.Context(), session); err != nil || tail != int64(len(want))-1 {
					t.Errorf("tail %d, %v; want %d", tail, err, len(want)-1)
				}
			})
		})
	}
}

func text(lines guarantee.Lines) []string {
	var out []string
	for _, e := range lines {
		out = append(out, fmt.Sprintf("%d %v %d %s", e.Line, e.Kind, len(e.Records), e.Raw))
	}
	return out
}

func TestDirectFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eve := fakeeve.New(fakeeve.WithAuth(fakeeve.Credentials{Bearer: map[string]string{"t": "p"}}.Authenticate))
		running := fakeeve.StartPipe(eve)
		defer running.Close()
		eve.AddSession(session, fakeeve.SessionSpec{Log: fakeeve.NewMemLog(progress(0))})
		server := guarantee.Server{URL: running.URL + "?key=secret", Client: running.Client()}
		fails := func(what, want string) {
			t.Helper()
			err := server.Read(t.Context(), what, &guarantee.Direct{})
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want one with %q", err, want)
			}
		}
		fails(session, "status 401")
		if _, err := server.Tail(t.Context(), session); err == nil {
			t.Error("a tail without credentials")
		}
		server.Headers = func(context.Context) (http.Header, error) { return http.Header{"Authorization": {"Bearer t"}}, nil }
		if err := server.Read(t.Context(), session, &guarantee.Direct{}); err != nil {
			t.Error(err)
		}
		fails("wrun_unknown", "status 404")
		eve.Script(session, func(fakeeve.Conn) fakeeve.Fault { return fakeeve.Fault{Status: http.StatusServiceUnavailable} })
		fails(session, "status 503")
		eve.Script(session, func(fakeeve.Conn) fakeeve.Fault { return fakeeve.Fault{TailHeader: new("many")} })
		fails(session, "no tail index")
		eve.Script(session, func(fakeeve.Conn) fakeeve.Fault { return fakeeve.Fault{CutAt: fakeeve.AtLine(0, 0)} })
		fails(session, "the body ends before the tail")
		server.URL = "nowhere"
		fails(session, "URL")
	})
}
