package contract_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/gateway"
	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// answer is a response that is no stream.
func answer(status int, header ...string) fakeeve.Fault {
	f := fakeeve.Fault{Status: status, Header: http.Header{}, Body: `{"ok":false,"error":"Something."}`}
	f.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		f.Header.Set(header[i], header[i+1])
	}
	return f
}

// coded is an answer with a stable code.
func coded(status int, code string) fakeeve.Fault {
	f := answer(status)
	f.Body = `{"ok":false,"code":` + strconv.Quote(code) + `,"error":"Something."}`
	return f
}

func always(f fakeeve.Fault) fakeeve.Script { return func(fakeeve.Conn) fakeeve.Fault { return f } }

// A session that is not there yet is asked for again for two seconds, and no longer.
func TestSessionUnknown(t *testing.T) {
	missing := answer(http.StatusNotFound)
	runCases(t, []contractCase{
		{
			name: "unknown", always: always(missing), calls: []call{{
				status: "NOT_FOUND SESSION_NOT_FOUND",
				reads: []string{
					"tail 0 404", "tail 0 404 +125ms", "tail 0 404 +375ms", "tail 0 404 +875ms", "tail 0 404 +1.875s", "tail 0 404 +2s",
				},
			}},
		},
		{
			name: "readable in time", lines: numbered(1), script: []fakeeve.Fault{missing, missing, missing, missing}, calls: []call{{
				want: join(pages(0, 1), "CAUGHT_UP 0 @1", "ENDED STREAM_CLOSED @1"),
				reads: []string{
					"tail 0 404", "tail 0 404 +125ms", "tail 0 404 +375ms", "tail 0 404 +875ms", "tail 0 +1.875s", "live 0 +1.875s",
				},
			}},
		},
		{
			name: "gone at a lease", lines: numbered(1), open: true, script: []fakeeve.Fault{{}, {}, missing, missing, missing, missing, missing, missing}, calls: []call{{
				want:   join(pages(0, 1), "CAUGHT_UP 0 @1"),
				status: "NOT_FOUND SESSION_NOT_FOUND",
				reads: []string{
					"tail 0", "live 0", "live 0 404 +1m0s", "live 0 404 +1m0.125s", "live 0 404 +1m0.375s", "live 0 404 +1m0.875s",
					"live 0 404 +1m1.875s", "live 0 404 +1m2s",
				},
			}},
		},
	})
}

// A stream of a version nobody knows is refused at once, on whichever connection it comes.
func TestVersionUnsupported(t *testing.T) {
	var cases []contractCase
	for _, v := range []string{"28", "20", "0", "-27", "27.0", "+27", "27 27", "v27", "", "99999999999999999999"} {
		unsupported := "UNIMPLEMENTED STREAM_VERSION_UNSUPPORTED stream_version=" + v
		other := fakeeve.Fault{VersionHeader: &v}
		cases = append(cases,
			contractCase{name: "first " + v, lines: numbered(2), script: []fakeeve.Fault{other}, calls: []call{
				{status: unsupported, reads: []string{"tail 0"}},
			}},
			contractCase{name: "later " + v, lines: numbered(2), open: true, script: []fakeeve.Fault{{}, {}, other}, calls: []call{{
				want: join(pages(0, 2), "CAUGHT_UP 1 @2"), status: unsupported, reads: []string{"tail 0", "live 1", "live 1 +1m0s"},
			}}},
		)
	}
	runCases(t, cases)
}

// What Eve answers instead of a stream, and what the client is told, when and after how many requests.
func TestAgentAnswers(t *testing.T) {
	const (
		budget    = 12 // opens
		spent     = 125*time.Millisecond + 250*time.Millisecond + 500*time.Millisecond + time.Second + 2*time.Second + 6*2500*time.Millisecond
		away      = "UNAVAILABLE AGENT_UNAVAILABLE "
		location  = "http://elsewhere.test/eve/v1/session/wrun_1/stream"
		html      = "<!doctype html><title>Sign in</title>"
		otherID   = "wrun_2"
		throttled = "RESOURCE_EXHAUSTED AGENT_OVERLOADED status=429 retry="
	)
	hello := fakeeve.Fault{Header: http.Header{"X-Eve-Stream-Version": nil, "Content-Type": {"text/html"}}, Verbatim: []byte(html)}
	tests := []struct {
		name   string
		fault  fakeeve.Fault
		status string
		reads  int
		took   time.Duration
	}{
		{"500", answer(500), away + "status=500 retry=5s", budget, spent},
		{"502", answer(502), away + "status=502 retry=5s", budget, spent},
		{"503", answer(503), away + "status=503 retry=5s", budget, spent},
		{"503, come back later", answer(503, "Retry-After", "30"), away + "status=503 retry=30s", budget, spent},
		{"504", answer(504), away + "status=504 retry=5s", budget, spent},
		{"425", answer(425), away + "status=425 retry=5s", budget, spent},
		{"301", answer(301, "Location", location), away + "status=301 retry=5s", budget, spent},
		{"302", answer(302, "Location", location), away + "status=302 retry=5s", budget, spent},
		{"307", answer(307, "Location", location), away + "status=307 retry=5s", budget, spent},
		{"204", answer(204), away + "status=204 retry=5s", budget, spent},
		{"a page", hello, away + "retry=5s", budget, spent},
		{"another session's stream", fakeeve.Fault{Header: http.Header{"X-Eve-Session-Id": {otherID}}}, away + "retry=5s", budget, spent},
		{"no tail index", fakeeve.Fault{TailHeader: new(string)}, away + "retry=5s", budget, spent},
		{"a malformed tail index", fakeeve.Fault{TailHeader: new("3.5")}, away + "retry=5s", budget, spent},
		{"a tail index below all", fakeeve.Fault{TailHeader: new("-2")}, away + "retry=5s", budget, spent},
		{"a tail index beyond 2^53-1", fakeeve.Fault{TailHeader: new("9007199254740992")}, away + "retry=5s", budget, spent},
		{"400", answer(400), "INVALID_ARGUMENT REQUEST_INVALID status=400", 1, 0},
		{"401", coded(401, "unauthorized"), "INTERNAL AGENT_REFUSED_CREDENTIALS code=unauthorized status=401", 2, 0},
		{"403", coded(403, "forbidden"), "INTERNAL AGENT_REFUSED_CREDENTIALS code=forbidden status=403", 2, 0},
		{"a code that is prose", coded(401, "who are you, Ada?"), "INTERNAL AGENT_REFUSED_CREDENTIALS status=401", 2, 0},
		{"409", coded(409, "busy"), "FAILED_PRECONDITION AGENT_CONFLICT code=busy status=409", budget, spent},
		{"410", coded(410, "session_expired"), "OUT_OF_RANGE HISTORY_EXPIRED code=session_expired status=410", 1, 0},
		{"429", answer(429), throttled + "5s", budget, spent},
		{"429, back in ten seconds", answer(429, "Retry-After", "10"), throttled + "10s", budget, 11 * 10 * time.Second},
		{"429, back in an hour", answer(429, "Retry-After", "3600"), throttled + "1h0m0s", 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := contractCase{lines: numbered(2), always: always(tt.fault)}
				r := rig.New(t, c.options())
				defer r.Close()
				r.Eve.Script(session, c.always)
				r.Eve.AddSession(session, c.spec())
				began := time.Now()
				res := r.Subscribe(t.Context(), rig.FromStart(session), nil)
				if got := statusOf(res.Err); got != tt.status {
					t.Errorf("status %q (%v), want %q", got, res.Err, tt.status)
				}
				if len(res.Messages) > 0 {
					t.Errorf("messages: %v", res.Messages)
				}
				checkStatus(t, tt.name, res, false)
				if n := len(r.Eve.Requests()); n != tt.reads {
					t.Errorf("%d requests, want %d", n, tt.reads)
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
			})
		})
	}
}

// One bad answer among good ones costs nothing but its wait, whatever it is.
func TestAgentRecovers(t *testing.T) {
	var cases []contractCase
	for _, status := range []int{401, 404, 409, 425, 429, 500, 502, 503, 504, 302} {
		bad := answer(status)
		cases = append(cases, contractCase{
			name: strconv.Itoa(status), lines: numbered(3), open: true, script: []fakeeve.Fault{bad, {}, bad, {}, bad},
			calls: []call{{
				during: []moment{{90 * time.Second, func(s *fakeeve.Session) { s.Append(numbered(4)[3]); s.MemLog().End() }}},
				want:   join(pages(0, 3), "CAUGHT_UP 2 @3", pages(3, 4), "ENDED STREAM_CLOSED @4"),
			}},
		})
	}
	runCases(t, cases)
}

// Eve that is down, or takes a connection and says nothing, is given the budget and no more.
func TestAgentDown(t *testing.T) {
	t.Run("refuses connections", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := rig.New(t, (&contractCase{}).options())
			defer r.Close()
			r.StopEve()
			began := time.Now()
			res := r.Subscribe(t.Context(), rig.FromStart(session), nil)
			if got, want := statusOf(res.Err), "UNAVAILABLE AGENT_UNAVAILABLE retry=5s"; got != want {
				t.Errorf("status %q (%v), want %q", got, res.Err, want)
			}
			checkStatus(t, t.Name(), res, false)
			if took := time.Since(began); took < 15*time.Second || took > 40*time.Second {
				t.Errorf("took %v", took)
			}
		})
	})
	silent := func(c *source.Config) { c.OpenTimeout = 30 * time.Second }
	runCases(t, []contractCase{
		{name: "never answers", source: silent, always: always(fakeeve.Fault{Delay: fakeeve.Forever}), calls: []call{
			{status: "UNAVAILABLE AGENT_UNAVAILABLE retry=5s"},
		}},
		{name: "never answers, and the client leaves", source: silent, always: always(fakeeve.Fault{Delay: fakeeve.Forever}), calls: []call{
			{leave: 10 * time.Second, status: "LEFT", reads: []string{"tail 0"}},
		}},
		{name: "is slow to open", lines: numbered(1), always: always(fakeeve.Fault{Delay: 90 * time.Second}), calls: []call{
			{want: join(pages(0, 1), "CAUGHT_UP 0 @1", "ENDED STREAM_CLOSED @1"), reads: []string{"tail 0", "live 0 +1m30s"}},
		}},
		{
			name: "goes down under a stream, which hears from it again", lines: numbered(1), open: true,
			script: append(slices.Repeat([]fakeeve.Fault{{}}, 2), slices.Repeat([]fakeeve.Fault{answer(502)}, 11)...),
			calls: []call{{
				during: []moment{{80 * time.Second, func(s *fakeeve.Session) { s.Append(numbered(2)[1]); s.MemLog().End() }}},
				want:   join(pages(0, 1), "CAUGHT_UP 0 @1", pages(1, 2), "ENDED STREAM_CLOSED @2"),
			}},
		},
	})
}

// hangsUp is a transport over which the agent, from the n-th request on, takes connections and closes them.
type hangsUp struct {
	http.RoundTripper
	good atomic.Int64
}

func (h *hangsUp) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.good.Add(-1) < 0 {
		return nil, io.EOF
	}
	return h.RoundTripper.RoundTrip(r)
}

// The end of a connection is never the end of a stream, whatever was opened before it.
func TestAgentHangsUp(t *testing.T) {
	for good := range int64(3) {
		c := contractCase{
			name: fmt.Sprintf("after %d requests", good), open: true, lines: numbered(1),
			config: func(cfg *gateway.Config) {
				h := &hangsUp{RoundTripper: cfg.Agents[0].Transport}
				h.good.Store(good)
				cfg.Agents[0].Transport = h
			},
			calls: []call{{status: "UNAVAILABLE AGENT_UNAVAILABLE retry=5s"}},
		}
		if good > 0 {
			c.calls[0].want = join(pages(0, 1), "CAUGHT_UP 0 @1")
		}
		runCases(t, []contractCase{c})
	}
}

// tokens is a header source with a cache: it hands out the n-th token of a list, the next one when told to refresh.
type tokens struct {
	mu      sync.Mutex
	list    []string
	n       int
	refresh []bool
}

func (k *tokens) Headers(_ context.Context, refresh bool) (http.Header, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refresh = append(k.refresh, refresh)
	if refresh && k.n < len(k.list)-1 {
		k.n++
	}
	return http.Header{"Authorization": {"Bearer " + k.list[k.n]}}, nil
}

// A refused credential is refreshed once, by force; if that does not help the client is told that it is not at fault.
func TestCredentialsRefused(t *testing.T) {
	admits := func(token string) fakeeve.Option {
		return fakeeve.WithAuth(fakeeve.Credentials{Bearer: map[string]string{token: "gateway"}}.Authenticate)
	}
	tests := []struct {
		name    string
		tokens  []string
		want    string
		refresh []bool
	}{
		{"good", []string{"new"}, "OK", []bool{false, false}},
		{"stale, refreshed", []string{"old", "new"}, "OK", []bool{false, true, false}},
		{"refused for good", []string{"old", "older", "new"}, "INTERNAL AGENT_REFUSED_CREDENTIALS code=unauthorized status=401", []bool{false, true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &tokens{list: tt.tokens}
				c := contractCase{lines: numbered(1), eve: []fakeeve.Option{admits("new")}, config: func(cfg *gateway.Config) { cfg.Agents[0].Headers = source }}
				r := rig.New(t, c.options())
				defer r.Close()
				r.Eve.AddSession(session, c.spec())
				res := r.Subscribe(t.Context(), rig.FromStart(session), nil)
				if got := statusOf(res.Err); got != tt.want {
					t.Errorf("status %q, want %q", got, tt.want)
				}
				checkStatus(t, tt.name, res, false)
				if diff := cmp.Diff(tt.refresh, source.refresh); diff != "" {
					t.Errorf("headers asked for, by force or not (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A stranded session can be read and not followed: a following reader gets all of the history, then the error.
func TestStranded(t *testing.T) {
	const stranded = "FAILED_PRECONDITION SESSION_STRANDED code=session_stranded eve_version=0.79.0 status=409"
	runCases(t, []contractCase{
		{name: "followed", stranded: "0.79.0", open: true, lines: numbered(3), calls: []call{
			{want: join(pages(0, 3), "CAUGHT_UP 2 @3"), status: stranded, reads: []string{"tail 0", "live 2 409"}},
			{want: []string{"CAUGHT_UP 2 @3"}, status: stranded},
		}},
		{name: "read until its tail", stranded: "0.79.0", open: true, lines: numbered(3), calls: []call{
			{ask: whole, want: join(pages(0, 3), "CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3"), reads: []string{"tail 0"}},
		}},
		{
			name: "before anything happened", stranded: "0.79.0", open: true,
			calls: []call{{want: []string{"CAUGHT_UP - @0"}, status: stranded}},
		},
		{name: "followed over a cut", stranded: "0.79.0", open: true, lines: numbered(3), script: []fakeeve.Fault{{CutAt: fakeeve.AtLine(1, 5)}}, calls: []call{
			{want: join(pages(0, 3), "CAUGHT_UP 2 @3"), status: stranded},
		}},
		{name: "stranded under a stream, with lines still unread", open: true, lines: numbered(3), calls: []call{{
			during: []moment{
				{30 * time.Second, func(s *fakeeve.Session) { s.CutAll(fakeeve.Abort) }},
				{30 * time.Second, func(s *fakeeve.Session) {
					s.Append(numbered(5)[3:]...)
					s.Update(func(spec *fakeeve.SessionSpec) { spec.Stranded = "0.79.0" })
				}},
			},
			want: join(pages(0, 3), "CAUGHT_UP 2 @3", pages(3, 5)), status: stranded,
		}}},
	})
}

// History that is gone is said to be gone, and so is the position that nothing stored can be behind.
func TestHistoryGone(t *testing.T) {
	runCases(t, []contractCase{
		{name: "purged", lines: numbered(4), calls: []call{
			{stop: 3, want: pages(0, 3)},
			{before: func(s *fakeeve.Session) { s.MemLog().Purge() }, status: "OUT_OF_RANGE HISTORY_EXPIRED line=2 tail=-1"},
		}},
		{name: "expired", lines: numbered(4), calls: []call{
			{stop: 3, want: pages(0, 3)},
			{before: (*fakeeve.Session).Expire, status: "OUT_OF_RANGE HISTORY_EXPIRED code=session_expired status=410", reads: []string{"tail 2 410"}},
		}},
		{name: "expired under a stream", lines: numbered(2), open: true, calls: []call{{
			during: []moment{{10 * time.Second, (*fakeeve.Session).Expire}},
			want:   join(pages(0, 2), "CAUGHT_UP 1 @2"),
			status: "OUT_OF_RANGE HISTORY_EXPIRED code=session_expired status=410",
			reads:  []string{"tail 0", "live 1", "live 1 410 +1m0s"},
		}}},
		{name: "purged under a stream", rewritten: true, lines: numbered(2), open: true, calls: []call{{
			during: []moment{{10 * time.Second, func(s *fakeeve.Session) { s.MemLog().Purge() }}},
			want:   join(pages(0, 2), "CAUGHT_UP 1 @2"),
			status: "OUT_OF_RANGE HISTORY_EXPIRED line=1 tail=-1",
		}}},
		{name: "truncated: the position is beyond the tail", lines: numbered(6), calls: []call{
			{stop: 5, want: pages(0, 5)},
			{before: func(s *fakeeve.Session) { s.MemLog().Truncate(3) }, status: "OUT_OF_RANGE CURSOR_AHEAD line=4 tail=2"},
		}},
		{name: "storage lags behind what was read, and catches up", lines: numbered(6), calls: []call{
			{stop: 5, want: pages(0, 5)},
			{
				before: func(s *fakeeve.Session) { s.MemLog().Truncate(3) },
				during: []moment{{1500 * time.Millisecond, func(s *fakeeve.Session) { s.Append(numbered(6)[3:]...) }}},
				want:   join(pages(5, 6), "CAUGHT_UP 5 @6", "ENDED STREAM_CLOSED @6"),
			},
		}},
		{name: "exactly at the tail is not beyond it", lines: numbered(3), calls: []call{
			{ask: at(3), want: []string{"CAUGHT_UP 2 @3?", "ENDED STREAM_CLOSED @3?"}, reads: []string{"tail 2", "live 2"}},
		}},
		{name: "one beyond the tail is", lines: numbered(3), calls: []call{
			{ask: at(4), status: "OUT_OF_RANGE CURSOR_AHEAD line=3 tail=2"},
		}},
		{name: "beyond the tail of a session that has not begun", open: true, calls: []call{
			{ask: at(1), status: "OUT_OF_RANGE HISTORY_EXPIRED line=0 tail=-1"},
		}},
	})
}

// A line over the limit ends the stream before it, or is reported in its place; what it says goes nowhere.
func TestOversizeLine(t *testing.T) {
	const limit = 1 << 10
	line := func(size int) string {
		const frame = `{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"almanac.page","data":""}]}`
		return strings.Replace(frame, `""`, `"`+strings.Repeat("x", size-len(frame))+`"`, 1)
	}
	lines := []string{commit(0, "almanac.page"), line(limit + 1), commit(2, "almanac.page"), line(limit)}
	small := func(c *gateway.Config) { c.MaxLineBytes = limit }
	skip := request(func(r *evev1.SubscribeRequest) { r.OnOversizeLine = evev1.OnOversizeLine_ON_OVERSIZE_LINE_SKIP })
	const tooLarge = "FAILED_PRECONDITION LINE_TOO_LARGE limit=1024 line=1 size=1025"
	skipped := join(pages(0, 1), "unreadable 1 TOO_LARGE @2?", pages(2, 4), "CAUGHT_UP 3 @4", "ENDED STREAM_CLOSED @4")
	cut := func(how fakeeve.How) []fakeeve.Fault {
		return []fakeeve.Fault{{CutAt: fakeeve.AtLine(1, 1025), Cut: how}, {CutAt: fakeeve.AtLine(1, 1025), Cut: how}}
	}
	runCases(t, []contractCase{
		{name: "fail", config: small, lines: lines, calls: []call{
			{want: pages(0, 1), status: tooLarge, reads: []string{"tail 0"}},
			{status: tooLarge, reads: []string{"tail 0"}},
		}},
		{name: "skip", config: small, lines: lines, calls: []call{{ask: skip, want: skipped, reads: []string{"tail 0", "live 3"}}}},
		{name: "skip, then resume behind it", config: small, lines: lines, calls: []call{
			{ask: skip, stop: 2, want: skipped[:2]},
			{want: skipped[2:], reads: []string{"tail 1", "live 3"}},
		}},
		{name: "skip a cut one", config: small, lines: lines, script: cut(fakeeve.Clean), calls: []call{{ask: skip, want: skipped}}},
		{name: "skip a broken one", config: small, lines: lines, script: cut(fakeeve.Abort), calls: []call{{ask: skip, want: skipped}}},
		{name: "fail at one that is cut behind the limit", config: small, lines: lines, script: []fakeeve.Fault{
			{CutAt: fakeeve.AtLine(1, 1025), Cut: fakeeve.Abort},
		}, calls: []call{{want: pages(0, 1), status: tooLarge}}},
		{name: "the largest that passes", config: small, lines: lines[3:], calls: []call{
			{want: join(pages(0, 1), "CAUGHT_UP 0 @1", "ENDED STREAM_CLOSED @1")},
		}},
	})
}

// Garbage is counted, shown and passed; nothing that does not count is.
func TestGarbageLines(t *testing.T) {
	deep := strings.Repeat("[", 10001) + strings.Repeat("]", 10001)
	lines := []string{
		commit(0, "almanac.page"),
		"not json",
		`{"at":"2026-11-18T09:00:00.000Z","facts":[`,
		"[1,2,3]", "null", "7", `"text"`,
		"{}", `{"facts":[]}`, `{"at":1,"facts":[]}`, `{"progress":null}`, `{"$eve":42}`, `{"$eve":null,"facts":[]}`,
		`{"$eve":"position"}`, `{"$eve":"position","next":"7"}`, `{"$eve":"position","next":1.5}`, `{"$eve":"position","next":9007199254740992}`,
		"\x00", deep, `{"a":1} {"b":2}`,
		commit(20, "almanac.page"),
	}
	want := []string{
		"fact 0.0 almanac.page @1",
		"unreadable 1 INVALID_JSON @2", "unreadable 2 INVALID_JSON @3",
		"unreadable 3 NOT_AN_OBJECT @4", "unreadable 4 NOT_AN_OBJECT @5", "unreadable 5 NOT_AN_OBJECT @6", "unreadable 6 NOT_AN_OBJECT @7",
		"unreadable 7 UNKNOWN_SHAPE @8", "unreadable 8 UNKNOWN_SHAPE @9", "unreadable 9 UNKNOWN_SHAPE @10",
		"unreadable 10 UNKNOWN_SHAPE @11", "unreadable 11 UNKNOWN_SHAPE @12", "unreadable 12 UNKNOWN_SHAPE @13",
		"unreadable 13 MALFORMED_POSITION @14", "unreadable 14 MALFORMED_POSITION @15", "unreadable 15 MALFORMED_POSITION @16",
		"unreadable 16 MALFORMED_POSITION @17",
		"unreadable 17 INVALID_JSON @18", "unreadable 18 INVALID_JSON @19", "unreadable 19 INVALID_JSON @20",
		"fact 20.0 almanac.page @21", "CAUGHT_UP 20 @21", "ENDED STREAM_CLOSED @21",
	}
	noise := fakeeve.Fault{Rewrite: fakeeve.Insert(10, "", "   ", heartbeat, `{"$eve":"weather","next":99}`, "\u00a0\ufeff")}
	runCases(t, []contractCase{
		{name: "in one go", lines: lines, rewritten: true, calls: []call{{want: want}}},
		{name: "among what does not count", lines: lines, rewritten: true, script: []fakeeve.Fault{noise}, calls: []call{{want: want}}},
		{name: "with lines that end in CR LF", lines: lines, rewritten: true, script: []fakeeve.Fault{{CRLF: true}}, calls: []call{{want: want}}},
		{name: "byte by byte", lines: lines, rewritten: true, script: []fakeeve.Fault{{ChunkSize: 1}}, calls: []call{{want: want}}},
		{name: "resumed behind each", lines: lines, rewritten: true, calls: resumeAfterEach(want[:len(want)-1])},
	})
}

// resumeAfterEach are the calls that take want one message at a time.
func resumeAfterEach(want []string) []call {
	calls := make([]call, 0, len(want))
	for i := range want {
		calls = append(calls, call{want: want[i : i+1], stop: 1})
	}
	return calls
}
