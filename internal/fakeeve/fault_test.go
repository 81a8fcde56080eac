package fakeeve_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// body27 is what a closed session of three lines gives.
func body27() (lines []string, body string) {
	lines = numbered(3)
	return lines, strings.Join(join(beat, lines, ended), "\n") + "\n"
}

// faulty runs a test with a closed session of three lines and a fault in each connection.
func faulty(t *testing.T, f fakeeve.Fault, test func(t *testing.T, e *env)) {
	t.Helper()
	bubble(t, plain, func(t *testing.T, e *env) {
		log := fakeeve.NewMemLog(numbered(3)...)
		log.End()
		e.s.AddSession("a", fakeeve.SessionSpec{Log: log})
		e.s.Script("a", func(fakeeve.Conn) fakeeve.Fault { return f })
		test(t, e)
	})
}

// TestCutEverywhere cuts a body at every byte, in every way: the client gets exactly that many bytes, and sees how.
func TestCutEverywhere(t *testing.T) {
	_, body := body27()
	for _, how := range []fakeeve.How{fakeeve.Clean, fakeeve.Abort, fakeeve.Reset} {
		bubble(t, plain, func(t *testing.T, e *env) {
			log := fakeeve.NewMemLog(numbered(3)...)
			log.End()
			e.s.AddSession("a", fakeeve.SessionSpec{Log: log})
			e.s.Script("a", func(c fakeeve.Conn) fakeeve.Fault {
				return fakeeve.Fault{CutAt: fakeeve.AtByte(int64(c.N)), Cut: how}
			})
			for n := range len(body) + 1 {
				got := e.read("a/stream")
				if got.raw() != body[:n] || !cutAs(got.err, how) {
					t.Fatalf("cut %d at %d: %q, %v", how, n, got.raw(), got.err)
				}
				synctest.Wait()
				if r := e.s.StreamRequests("a")[n]; r.End != fakeeve.EndCut || r.Bytes != int64(n) || r.Conn != n {
					t.Fatalf("cut %d at %d: noted as %q at %d of connection %d", how, n, r.End, r.Bytes, r.Conn)
				}
			}
		})
	}
}

func cutAs(err error, how fakeeve.How) bool {
	switch how {
	case fakeeve.Clean:
		return err == nil
	case fakeeve.Abort:
		return errors.Is(err, io.ErrUnexpectedEOF)
	default:
		return errors.Is(err, syscall.ECONNRESET)
	}
}

// TestCutAtLine: points that are given by stored line.
func TestCutAtLine(t *testing.T) {
	lines, body := body27()
	first := strings.Index(body, lines[1])
	for offset, want := range map[int64]string{
		0:                         body[:first],
		7:                         body[:first+7],
		int64(len(lines[1])):      body[:first+len(lines[1])],
		int64(len(lines[1])) + 1:  body[:first+len(lines[1])+1],
		int64(len(lines[1])) + 99: body[:first+len(lines[1])+99],
	} {
		faulty(t, fakeeve.Fault{CutAt: fakeeve.AtLine(1, offset), Cut: fakeeve.Abort}, func(t *testing.T, e *env) {
			if got := e.read("a/stream"); got.raw() != want {
				t.Errorf("cut %d bytes into line 1: %q, want %q", offset, got.raw(), want)
			}
			// A connection that does not reach the line is whole.
			if got := e.read("a/stream?startIndex=2"); got.err != nil || len(got.lines) != 3 {
				t.Errorf("from behind the cut: %q, %v", got.raw(), got.err)
			}
		})
	}
}

// TestCutWhenIdle: a point that the body has reached cuts it at once, though nothing more is there to send.
func TestCutWhenIdle(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		e.s.AddSession("a", fakeeve.SessionSpec{Log: fakeeve.NewMemLog("0")})
		e.s.Script("a", fakeeve.Faults(fakeeve.Fault{CutAt: fakeeve.AtByte(int64(len(beat) + 3)), Cut: fakeeve.Abort}))
		if got := e.read("a/stream"); got.took != 0 || got.err == nil || got.raw() != beat+"\n0\n" {
			t.Errorf("%q, %v after %v", got.raw(), got.err, got.took)
		}
	})
}

// TestStall: silence at a byte, for a time or for ever; no heartbeat and no lease end in it.
func TestStall(t *testing.T) {
	lines, body := body27()
	faulty(t, fakeeve.Fault{StallAt: fakeeve.AtLine(1, 5), Stall: 25 * time.Second}, func(t *testing.T, e *env) {
		want := []string{"0 " + beat, "0 " + lines[0], "25 " + lines[1], "25 " + lines[2], "25 " + ended}
		if diff := cmp.Diff(want, e.read("a/stream").schedule()); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	})
	// Once, also where the body has nothing more to say for now.
	bubble(t, plain, func(t *testing.T, e *env) {
		session := e.s.AddSession("a", fakeeve.SessionSpec{})
		e.s.Script("a", fakeeve.Faults(fakeeve.Fault{StallAt: fakeeve.AtByte(int64(len(beat) + 1)), Stall: 25 * time.Second}))
		time.AfterFunc(30*time.Second, func() {
			session.Append("0")
			session.MemLog().End()
		})
		want := []string{"0 " + beat, "25 " + beat, "30 0", "30 " + ended}
		if diff := cmp.Diff(want, e.read("a/stream").schedule()); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	})
	faulty(t, fakeeve.Fault{StallAt: fakeeve.AtLine(1, 5), Stall: fakeeve.Forever}, func(t *testing.T, e *env) {
		got := e.readFor("a/stream", time.Hour)
		if want := body[:strings.Index(body, lines[1])+5]; got.raw() != want || got.took != time.Hour {
			t.Errorf("%q after %v, want %q", got.raw(), got.took, want)
		}
		synctest.Wait()
		if r := e.s.Requests()[0]; r.End != fakeeve.EndGone {
			t.Errorf("noted as %q", r.End)
		}
	})
}

// TestDelays: before the answer, and between lines.
func TestDelays(t *testing.T) {
	lines, _ := body27()
	faulty(t, fakeeve.Fault{Delay: 5 * time.Second, LineDelay: time.Second}, func(t *testing.T, e *env) {
		want := []string{"5 " + beat, "6 " + lines[0], "7 " + lines[1], "8 " + lines[2], "8 " + ended}
		if diff := cmp.Diff(want, e.read("a/stream").schedule()); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	})
}

// TestAnswers: a status instead of a stream, with headers of all kinds.
func TestAnswers(t *testing.T) {
	tests := []struct {
		name  string
		fault fakeeve.Fault
		want  http.Header
		body  string
	}{
		{"retry later", fakeeve.Fault{Status: 503, Header: http.Header{"Retry-After": {"7"}}}, http.Header{"Retry-After": {"7"}}, ""},
		{"a proxy's page", fakeeve.Fault{Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<h1>"}, http.Header{"Content-Type": {"text/html"}}, "<h1>"},
		{"elsewhere", fakeeve.Fault{Status: 307, Header: http.Header{"Location": {"http://elsewhere.test/"}}}, http.Header{"Location": {"http://elsewhere.test/"}}, ""},
		{"conflict", fakeeve.Refuse(409, "x"), http.Header{"Content-Type": {"application/json"}}, `{"code":"x","error":"Refused by the script.","ok":false}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			faulty(t, tt.fault, func(t *testing.T, e *env) {
				res := e.do(t.Context(), "GET", "/session/a/stream", "")
				body, err := io.ReadAll(res.Body)
				if res.StatusCode != tt.fault.Status || string(body) != tt.body || err != nil {
					t.Errorf("%d %q %v", res.StatusCode, body, err)
				}
				for name := range tt.want {
					if res.Header.Get(name) != tt.want.Get(name) {
						t.Errorf("%s: %q", name, res.Header.Get(name))
					}
				}
				if r := e.s.Requests()[0]; r.Status != tt.fault.Status || r.End != fakeeve.EndAnswer {
					t.Errorf("noted as %d %q", r.Status, r.End)
				}
			})
		})
	}
}

// TestHeaders: other versions and tails, none, and any other header.
func TestHeaders(t *testing.T) {
	_, body := body27()
	tests := []struct {
		name          string
		fault         fakeeve.Fault
		version, tail []string
		body          string // empty: that of version 27
	}{
		{name: "as it is", version: []string{"27"}, tail: []string{"2"}},
		{name: "another version", fault: fakeeve.Fault{VersionHeader: new("28")}, version: []string{"28"}, tail: []string{"2"}},
		{name: "no version", fault: fakeeve.Fault{VersionHeader: new("")}, tail: []string{"2"}},
		{name: "no tail", fault: fakeeve.Fault{TailHeader: new("")}, version: []string{"27"}},
		{name: "another tail", fault: fakeeve.Fault{TailHeader: new("x")}, version: []string{"27"}, tail: []string{"x"}},
		{
			name: "another deployment", fault: fakeeve.Fault{Version: 26}, version: []string{"26"}, tail: []string{"2"},
			body: strings.Join(join("", numbered(3)), "\n") + "\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			faulty(t, tt.fault, func(t *testing.T, e *env) {
				got := e.read("a/stream?includeTailIndex=1")
				if diff := cmp.Diff(tt.version, got.res.Header.Values("X-Eve-Stream-Version")); diff != "" {
					t.Errorf("version (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.tail, got.res.Header.Values("X-Eve-Stream-Tail-Index")); diff != "" {
					t.Errorf("tail (-want +got):\n%s", diff)
				}
				want := tt.body
				if want == "" {
					want = strings.TrimSuffix(body, ended+"\n")
				}
				if got.raw() != want {
					t.Errorf("body %q, want %q", got.raw(), want)
				}
			})
		})
	}
	faulty(t, fakeeve.Fault{Header: http.Header{"Content-Type": {"text/plain"}, "X-Accel-Buffering": nil}}, func(t *testing.T, e *env) {
		h := e.read("a/stream").res.Header
		if h.Get("Content-Type") != "text/plain" || h.Values("X-Accel-Buffering") != nil {
			t.Errorf("headers %v", h)
		}
	})
}

// TestLines: what a fault does to lines: ends, garbage, repeats, gaps.
func TestLines(t *testing.T) {
	lines, body := body27()
	tests := []struct {
		name  string
		fault fakeeve.Fault
		want  string
	}{
		{"CRLF", fakeeve.Fault{CRLF: true}, strings.ReplaceAll(body, "\n", "\r\n")},
		{"one byte a chunk", fakeeve.Fault{ChunkSize: 1}, body},
		{"inserted", fakeeve.Fault{Rewrite: fakeeve.Insert(1, "garbage", `{"$eve":"weather"}`, "")},
			strings.Join(join(beat, lines[0], "garbage", `{"$eve":"weather"}`, "", lines[1:], ended), "\n") + "\n"},
		{"repeated", fakeeve.Fault{Rewrite: func(_ int64, raw []byte) []byte {
			return append(append(append([]byte{}, raw...), '\n'), raw...)
		}}, strings.Join(join(beat, lines[0], lines[0], lines[1], lines[1], lines[2], lines[2], ended), "\n") + "\n"},
		{"left out", fakeeve.Fault{Rewrite: func(i int64, raw []byte) []byte {
			if i == 1 {
				return nil
			}
			return raw
		}}, strings.Join(join(beat, lines[0], lines[2], ended), "\n") + "\n"},
		{"verbatim", fakeeve.Fault{Verbatim: []byte("no line end")}, "no line end"},
		{"no lease, no heartbeat", fakeeve.Fault{LineDelay: 2 * time.Minute, Lease: -1, Heartbeat: -1}, body},
		{"a short lease", fakeeve.Fault{LineDelay: 40 * time.Second, Lease: time.Minute, Heartbeat: -1},
			strings.Join(join(beat, lines[0], lease), "\n") + "\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			faulty(t, tt.fault, func(t *testing.T, e *env) {
				if got := e.read("a/stream"); got.raw() != tt.want || got.err != nil {
					t.Errorf("%q, %v, want %q", got.raw(), got.err, tt.want)
				}
			})
		})
	}
}

// TestChunks: a chunk size is the size of what the client can read at a time.
func TestChunks(t *testing.T) {
	faulty(t, fakeeve.Fault{ChunkSize: 3}, func(t *testing.T, e *env) {
		res := e.do(t.Context(), "GET", "/session/a/stream", "")
		buf := make([]byte, 100)
		total := 0
		for {
			n, err := res.Body.Read(buf)
			if n > 3 {
				t.Fatalf("read %q at once", buf[:n])
			}
			total += n
			if err != nil {
				break
			}
		}
		if _, body := body27(); total != len(body) {
			t.Errorf("%d bytes, want %d", total, len(body))
		}
	})
}

// TestLate: live events out of their stored order (contract O4): nothing missing, nothing twice, the stored order on a
// re-read.
func TestLate(t *testing.T) {
	bubble(t, of(fakeeve.WithVersion(26)), func(t *testing.T, e *env) {
		session := e.s.AddSession("a", fakeeve.SessionSpec{Log: fakeeve.NewMemLog("0", "1")})
		e.s.Script("a", fakeeve.Faults(fakeeve.Fault{Late: func(line int64) int {
			return map[int64]int{0: 1, 3: 2, 7: 5, 9: 1}[line]
		}}))
		results := make(chan output)
		go func() { results <- e.read("a/stream") }()
		synctest.Wait()
		session.Append("2", "3", "4", "5", "6", "7", "8")
		time.Sleep(time.Second)
		session.Append("9")
		session.MemLog().End()
		want := []string{"0 ", "0 0", "0 1", "0 2", "0 4", "0 5", "0 3", "0 6", "0 8", "0.05 7", "1 9"}
		if diff := cmp.Diff(want, (<-results).schedule()); diff != "" {
			t.Errorf("live (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(join("", strings.Split("0123456789", "")), e.read("a/stream").texts()); diff != "" {
			t.Errorf("re-read (-want +got):\n%s", diff)
		}
	})
}

// TestSomeLate: by chance, but the same every time, and never in vain.
func TestSomeLate(t *testing.T) {
	a, b, c := fakeeve.SomeLate(1, 4, 3), fakeeve.SomeLate(1, 4, 3), fakeeve.SomeLate(2, 4, 3)
	late, differ := 0, false
	for line := range int64(1000) {
		if a(line) != b(line) || a(line) < 0 || a(line) > 3 {
			t.Fatalf("line %d: %d and %d", line, a(line), b(line))
		}
		differ = differ || a(line) != c(line)
		late += min(a(line), 1)
	}
	if late < 200 || late > 300 || !differ {
		t.Errorf("%d of 1000 lines are late; another seed differs: %v", late, differ)
	}
}

// TestScript: what a script is told, and sessions that appear late.
func TestScript(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		var seen []fakeeve.Conn
		e.s.Script("a", func(c fakeeve.Conn) fakeeve.Fault {
			c.Request = nil
			seen = append(seen, c)
			if c.N == 1 {
				e.s.AddSession("a", fakeeve.SessionSpec{Log: fakeeve.NewMemLog(numbered(5)...)})
			}
			return fakeeve.Fault{}
		})
		if got := e.read("a/stream"); got.res.StatusCode != 404 {
			t.Errorf("before it exists: %d", got.res.StatusCode)
		}
		if got := e.read("a/stream?follow=0&startIndex=3"); got.res.StatusCode != 200 || len(got.lines) != 3 {
			t.Errorf("when it exists: %d %q", got.res.StatusCode, got.texts())
		}
		if got := e.read("a/stream?includeTailIndex=1&startIndex=-2"); len(got.lines) != 3 {
			t.Errorf("later: %q", got.texts())
		}
		want := []fakeeve.Conn{
			{Session: "a", N: 0, Start: -1, Tail: -1},
			{Session: "a", N: 1, Start: -1, Tail: -1, Query: fakeeve.StreamQuery{StartIndex: 3, NoFollow: true}},
			{Session: "a", N: 2, Start: 3, Tail: 4, Query: fakeeve.StreamQuery{StartIndex: -2, IncludeTailIndex: true}},
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("connections (-want +got):\n%s", diff)
		}
	})
}

// TestScriptRoute: faults of the other routes; an answer that is lost after the command took effect.
func TestScriptRoute(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		session := e.s.AddSession("a", fakeeve.SessionSpec{})
		e.s.ScriptRoute(fakeeve.RouteHealth, func(fakeeve.Request) fakeeve.Fault { return fakeeve.Fault{Status: 500} })
		if res := e.do(t.Context(), "GET", "/health", ""); res.StatusCode != 500 {
			t.Errorf("health: %d", res.StatusCode)
		}
		e.s.ScriptRoute(fakeeve.RouteSend, func(r fakeeve.Request) fakeeve.Fault {
			if r.Session != "a" || r.Route != fakeeve.RouteSend {
				t.Errorf("script was told of %+v", r)
			}
			return fakeeve.Fault{CutAt: fakeeve.AtByte(0), Cut: fakeeve.Abort}
		})
		req, err := http.NewRequestWithContext(t.Context(), "POST", e.srv.URL+"/eve/v1/session/a", strings.NewReader(`{"message":"hi"}`))
		if err != nil {
			t.Fatal(err)
		}
		if res, err := e.srv.Client().Do(req); err == nil {
			_ = res.Body.Close()
			t.Errorf("the answer was not lost: %d", res.StatusCode)
		}
		if session.Log().Len() == 0 {
			t.Error("the command took no effect")
		}
		e.s.ScriptRoute(fakeeve.RouteSend, func(fakeeve.Request) fakeeve.Fault {
			return fakeeve.Fault{CutAt: fakeeve.AtByte(9), Cut: fakeeve.Abort}
		})
		res := e.do(t.Context(), "POST", "/session/a", `{"message":"hi"}`)
		if body, err := io.ReadAll(res.Body); string(body) != `{"ok":true` && string(body) != `{"ok":tru` || err == nil {
			t.Errorf("%d %q %v", res.StatusCode, body, err)
		}
		e.s.ScriptRoute(fakeeve.RouteSend, nil)
		if res := e.do(t.Context(), "POST", "/session/a", `{"message":"hi"}`); res.StatusCode != 202 {
			t.Errorf("without a script: %d", res.StatusCode)
		}
	})
}
