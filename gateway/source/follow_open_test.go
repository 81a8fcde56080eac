package source_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// backoff is the waits of an open that fails twelve times, without jitter (contract 1.12; the lower half of them).
func backoff() []int { return []int{125, 250, 500, 1000, 2000, 2500, 2500, 2500, 2500, 2500, 2500} }

func status(code int, header ...string) fakeeve.Fault {
	f := fakeeve.Fault{Status: code, Body: "sesame", Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		f.Header.Set(header[i], header[i+1])
	}
	return f
}

func refusal(code int, body string) fakeeve.Fault {
	f := status(code, "Content-Type", "application/json; charset=utf-8")
	f.Body = body
	return f
}

// TestOpenFails goes through every answer that is no stream: what it means, and how often it is asked again.
func TestOpenFails(t *testing.T) {
	other := http.Header{"X-Eve-Session-Id": {"wrun_2"}}
	for _, test := range []struct {
		name  string
		fault fakeeve.Fault
		want  source.Reason
		waits []int // nil: asked once
		meta  map[string]string
	}{
		{"400", status(400), source.Rejected, nil, map[string]string{"status": "400"}},
		{"409", status(409), source.Conflict, backoff(), map[string]string{"status": "409"}},
		{"409 with a code", refusal(409, `{"ok":false,"code":"REMOTE_AGENT_PROTOCOL_MISMATCH","error":"sesame"}`), source.Conflict, backoff(),
			map[string]string{"status": "409", "code": "REMOTE_AGENT_PROTOCOL_MISMATCH"}},
		{"409 stranded", refusal(409, `{"eveVersion":"0.79.1","code":"session_stranded"}`), source.Stranded, nil,
			map[string]string{"status": "409", "code": "session_stranded", "eve_version": "0.79.1"}},
		{"409 with a code that is none", refusal(409, `{"code":"open sesame","eveVersion":"<sesame>"}`), source.Conflict, backoff(), map[string]string{"status": "409"}},
		{"409 whose body is no JSON", status(409, "Content-Type", "application/json"), source.Conflict, backoff(), map[string]string{"status": "409"}},
		{"409 stranded, it seems", status(409, "Content-Type", "text/html"), source.Conflict, backoff(), map[string]string{"status": "409"}},
		{"410", refusal(410, `{"code":"session_expired"}`), source.Expired, nil, map[string]string{"status": "410", "code": "session_expired"}},
		{"429", status(429), source.Overloaded, backoff(), map[string]string{"status": "429"}},
		{"425", status(425), source.Unavailable, backoff(), map[string]string{"status": "425"}},
		{"500", refusal(500, `{"ok":false,"errorId":"sesame"}`), source.Unavailable, backoff(), map[string]string{"status": "500"}},
		{"502", status(502), source.Unavailable, backoff(), map[string]string{"status": "502"}},
		{"503", status(503), source.Unavailable, backoff(), map[string]string{"status": "503"}},
		{"504", status(504), source.Unavailable, backoff(), map[string]string{"status": "504"}},
		{"204", fakeeve.Fault{Status: 204}, source.Unavailable, backoff(), map[string]string{"status": "204"}},
		{"206", status(206), source.Unavailable, backoff(), map[string]string{"status": "206"}},
		{"301", status(301, "Location", "/eve/v1/session/wrun_1/stream?moved=1"), source.Unavailable, backoff(), map[string]string{"status": "301"}},
		{"302", status(302, "Location", "https://evil.test/sesame"), source.Unavailable, backoff(), map[string]string{"status": "302"}},
		{"307", status(307, "Location", "/sesame"), source.Unavailable, backoff(), map[string]string{"status": "307"}},
		{"308 to nowhere", status(308), source.Unavailable, backoff(), map[string]string{"status": "308"}},
		{"HTML", status(200, "Content-Type", "text/html; charset=utf-8"), source.Unavailable, backoff(), nil},
		{"no content type", status(200, "Content-Type", ""), source.Unavailable, backoff(), nil},
		{"another session", fakeeve.Fault{Header: other}, source.Unavailable, backoff(), nil},
		{"no version", fakeeve.Fault{VersionHeader: new("")}, source.VersionUnsupported, nil, map[string]string{"stream_version": ""}},
		{"version 20", fakeeve.Fault{VersionHeader: new("20")}, source.VersionUnsupported, nil, map[string]string{"stream_version": "20"}},
		{"version 28", fakeeve.Fault{VersionHeader: new("28")}, source.VersionUnsupported, nil, map[string]string{"stream_version": "28"}},
		{"version 27.0", fakeeve.Fault{VersionHeader: new("27.0")}, source.VersionUnsupported, nil, map[string]string{"stream_version": "27.0"}},
		{"a version of words", fakeeve.Fault{VersionHeader: new(strings.Repeat("x", 100))}, source.VersionUnsupported, nil,
			map[string]string{"stream_version": strings.Repeat("x", 32)}},
		{"no tail", fakeeve.Fault{TailHeader: new("")}, source.Unavailable, backoff(), nil},
		{"tail -2", fakeeve.Fault{TailHeader: new("-2")}, source.Unavailable, backoff(), nil},
		{"tail 1e3", fakeeve.Fault{TailHeader: new("1e3")}, source.Unavailable, backoff(), nil},
		{"tail 2^53", fakeeve.Fault{TailHeader: new("9007199254740992")}, source.Unavailable, backoff(), nil},
		{"no answer", fakeeve.Fault{Status: 500, CutAt: fakeeve.AtByte(0), Cut: fakeeve.Abort}, source.Unavailable, backoff(), nil},
		{"no answer, by reset", fakeeve.Fault{Status: 500, CutAt: fakeeve.AtByte(0), Cut: fakeeve.Reset}, source.Unavailable, backoff(), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, setup{lines: pages(3), script: each(test.fault)}, func(w *world) {
				_, err := w.read(source.Request{})
				e := w.failure(err, test.want)
				w.expectGaps(test.waits...)
				if len(w.eve.Requests()) != len(test.waits)+1 {
					t.Errorf("%d requests: a redirect was followed", len(w.eve.Requests()))
				}
				if test.meta != nil {
					if diff := cmp.Diff(test.meta, e.Meta); diff != "" {
						t.Errorf("meta (-want +got):\n%s", diff)
					}
				}
				if strings.Contains(err.Error()+fmt.Sprint(e.Meta), "sesame") {
					t.Errorf("the error quotes the answer: %v %v", err, e.Meta)
				}
				// What will not change must not look as if it could.
				if retry := test.want == source.Unavailable || test.want == source.Overloaded; (e.RetryAfter > 0) != retry {
					t.Errorf("retry after %v", e.RetryAfter)
				}
			})
		})
	}
}

// TestOpenRecovers: whatever can pass is waited for, in a read that begins and in one that goes on.
func TestOpenRecovers(t *testing.T) {
	passing := []fakeeve.Fault{
		status(500), status(409), status(425), status(404), status(502), status(429), status(503), status(504), status(301),
		status(200, "Content-Type", "text/html"),
	}
	waits := backoff()[:len(passing)]
	for _, test := range []struct {
		name string
		rand float64
	}{{"no jitter", 0}, {"half of it", 0.5}, {"almost all", 1 - 1e-9}} {
		t.Run(test.name, func(t *testing.T) {
			config := func(c *source.Config) { c.Rand = func() float64 { return test.rand } }
			bubble(t, setup{lines: pages(3), script: fakeeve.Faults(passing...), config: config}, func(w *world) {
				w.expectRead(source.Request{Bounded: true}, lines(0, 2), "caught up with 2", "ended: bound")
				for i, gap := range w.gaps() {
					half := time.Duration(waits[i]) * time.Millisecond
					want := half + time.Duration(test.rand*float64(half))
					if passing[i].Status == 404 {
						want = min(want, 2*time.Second)
					}
					if gap != want {
						t.Errorf("wait %d: %v, want %v", i, gap, want)
					}
				}
			})
		})
	}
	t.Run("going on", func(t *testing.T) {
		script := func(c fakeeve.Conn) fakeeve.Fault {
			switch n := c.N - 2; {
			case n < 0:
				return fakeeve.Fault{}
			case n < len(passing):
				return passing[n]
			}
			return fakeeve.Fault{}
		}
		bubble(t, setup{lines: pages(3), script: script}, func(w *world) {
			r := w.open(source.Request{})
			w.expect(r, lines(0, 2), "caught up with 2")
			w.after(30*time.Second, page(3))
			w.expect(r, "line 3") // the lease ends at 60 s
			w.after(61*time.Second, page(4), sessionEnded)
			w.expect(r, "line 4", "line 5", "ended: session")
			w.expectGaps(append([]int{0, 60_000}, waits...)...)
		})
	})
}

// TestDialFails: no server at all, then one that comes up.
func TestDialFails(t *testing.T) {
	bubble(t, setup{lines: pages(1)}, func(w *world) {
		var refuse atomic.Bool
		refuse.Store(true)
		transport := source.NewTransport(func(ctx context.Context, network, address string) (net.Conn, error) {
			if refuse.Load() {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return w.server.Transport.DialContext(ctx, network, address)
		})
		defer transport.CloseIdleConnections()
		c, err := source.NewClient(source.Config{URL: w.server.URL + "?key=sesame", Transport: transport, Rand: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = c.Read(w.ctx, source.Request{Session: session})
		e := w.failure(err, source.Unavailable)
		if took, want := time.Since(began), 18_875*time.Millisecond; took != want || e.RetryAfter != 5*time.Second {
			t.Errorf("took %v, want %v; retry after %v", took, want, e.RetryAfter)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("want the cause, and no URL: %v", err)
		}
		time.AfterFunc(10*time.Second, func() { refuse.Store(false) })
		r, err := c.Read(w.ctx, source.Request{Session: session, Bounded: true})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		w.expect(r, "line 0", "caught up with 0", "ended: bound")
	})
}

// TestNotFound: a session is asked for again for two seconds, because a new one may not be readable yet (contract G13).
func TestNotFound(t *testing.T) {
	at := ms(0, 125, 375, 875, 1875, 2000)
	bubble(t, setup{}, func(w *world) {
		w.eve.RemoveSession(session)
		_, err := w.read(source.Request{})
		w.failed(err, source.NotFound)
		if got := w.times(); !slices.Equal(got, at) {
			t.Errorf("asked at %v, want %v", got, at)
		}
	})
	bubble(t, setup{}, func(w *world) {
		w.eve.RemoveSession(session)
		time.AfterFunc(1990*time.Millisecond, func() {
			w.eve.AddSession(session, fakeeve.SessionSpec{Log: fakeeve.NewMemLog(page(0))})
		})
		w.expectRead(source.Request{Bounded: true}, "line 0", "caught up with 0", "ended: bound")
		if got := w.times(); !slices.Equal(got, at) {
			t.Errorf("asked at %v, want %v", got, at)
		}
	})
	bubble(t, setup{lines: pages(2)}, func(w *world) { // one that goes away
		time.AfterFunc(time.Minute-time.Second, func() { w.eve.RemoveSession(session) })
		got, err := w.read(source.Request{})
		w.failed(err, source.NotFound)
		if diff := cmp.Diff(join(lines(0, 1), "caught up with 1"), got); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(w.began); took != time.Minute+2*time.Second {
			t.Errorf("given up after %v", took)
		}
	})
}

// keys is a source of credentials with a cache, as one with a token service behind it.
type keys struct {
	mu    sync.Mutex
	key   string
	fresh func() (string, error) // asked on refresh
	asked []bool
}

func (k *keys) Headers(_ context.Context, refresh bool) (http.Header, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, refresh)
	if refresh {
		key, err := k.fresh()
		if err != nil {
			return nil, err
		}
		k.key = key
	}
	return http.Header{"Authorization": {"Bearer " + k.key}, "Accept": {"text/html"}}, nil
}

// TestCredentials: resolved for every attempt, refreshed once by force when Eve refuses them (contract 7.1, 7.2).
func TestCredentials(t *testing.T) {
	noToken := errors.New("the token service is down")
	accepts := func(tokens ...string) fakeeve.Authenticator {
		c := fakeeve.Credentials{Bearer: map[string]string{}}
		for _, token := range tokens {
			c.Bearer[token] = "gateway"
		}
		return c.Authenticate
	}
	for _, test := range []struct {
		name  string
		key   string
		fresh func() (string, error)
		auth  fakeeve.Authenticator
		want  source.Reason // 0: it opens
		asked []bool
	}{
		{"accepted", "new", nil, accepts("new"), 0, []bool{false}},
		{"refreshed", "old", func() (string, error) { return "new", nil }, accepts("new"), 0, []bool{false, true}},
		{"refused", "old", func() (string, error) { return "older", nil }, accepts("new"), source.Refused, []bool{false, true}},
		{"forbidden", "new", func() (string, error) { return "new", nil },
			fakeeve.Credentials{Bearer: map[string]string{"new": "gateway"}, Forbidden: []string{"gateway"}}.Authenticate, source.Refused, []bool{false, true}},
		{"no new ones", "old", func() (string, error) { return "", noToken }, accepts("new"), source.Refused, []bool{false, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := &keys{key: test.key, fresh: test.fresh}
			bubble(t, setup{lines: pages(1), options: []fakeeve.Option{fakeeve.WithAuth(test.auth)}, config: func(c *source.Config) { c.Headers = k }}, func(w *world) {
				_, err := w.read(source.Request{Bounded: true})
				if test.want == 0 && err != nil {
					t.Errorf("%v", err)
				} else if test.want != 0 {
					if e := w.failure(err, test.want); e.RetryAfter != 0 {
						t.Errorf("retry after %v", e.RetryAfter)
					}
				}
				if test.name == "no new ones" && !errors.Is(err, noToken) {
					t.Errorf("%v does not name the cause", err)
				}
				if !slices.Equal(k.asked, test.asked) {
					t.Errorf("credentials asked for %v, want %v", k.asked, test.asked)
				}
				if time.Since(w.began) > time.Second {
					t.Errorf("a refresh must not wait: took %v", time.Since(w.began))
				}
				for _, r := range w.eve.Requests() {
					if r.Header.Get("Accept") != "application/x-ndjson" {
						t.Errorf("credentials replaced a header of the request: %v", r.Header)
					}
				}
			})
		})
	}

	t.Run("along a stream", func(t *testing.T) {
		k := &keys{key: "one", fresh: func() (string, error) { return "two", nil }}
		options := []fakeeve.Option{fakeeve.WithAuth(accepts("one"))}
		bubble(t, setup{lines: pages(1), options: options, config: func(c *source.Config) { c.Headers = k }}, func(w *world) {
			time.AfterFunc(90*time.Second, func() { w.eve.SetAuth(accepts("two")) }) // an open body stays open
			w.after(100*time.Second, page(1))
			w.after(150*time.Second, page(2), sessionEnded)
			w.expectRead(source.Request{}, "line 0", "caught up with 0", lines(1, 3), "ended: session")
			// The tail, the stream, two renewals, the second of them refused.
			if want := []bool{false, false, false, false, true}; !slices.Equal(k.asked, want) {
				t.Errorf("credentials asked for %v, want %v", k.asked, want)
			}
		})
	})

	t.Run("that run out", func(t *testing.T) {
		k := &keys{key: "one", fresh: func() (string, error) { return "one", nil }}
		options := []fakeeve.Option{fakeeve.WithAuth(accepts("one"))}
		bubble(t, setup{lines: pages(1), options: options, config: func(c *source.Config) { c.Headers = k }}, func(w *world) {
			time.AfterFunc(time.Second, func() { w.eve.SetAuth(accepts("two")) })
			got, err := w.read(source.Request{})
			w.failed(err, source.Refused)
			if diff := cmp.Diff(join("line 0", "caught up with 0"), got); diff != "" || time.Since(w.began) != time.Minute {
				t.Errorf("after %v: %s", time.Since(w.began), diff)
			}
		})
	})
}

// TestRetryAfter: a 429 is waited for as long as it asks, up to a bound; then the caller is told.
func TestRetryAfter(t *testing.T) {
	date := func(d time.Duration) func() string {
		return func() string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	}
	text := func(s string) func() string { return func() string { return s } }
	for name, test := range map[string]struct {
		header func() string
		waits  int           // before the next request, in ms; 0: told at once
		told   time.Duration // what the caller is told then
	}{
		"seconds":              {text("7"), 7000, 0},
		"none":                 {text("0"), 125, 0},
		"as long as it may":    {text("30"), 30_000, 0},
		"longer":               {text("31"), 0, 31 * time.Second},
		"a day":                {text("86400"), 0, 24 * time.Hour},
		"a date":               {date(9 * time.Second), 9000, 0},
		"a date that is past":  {date(-time.Hour), 125, 0},
		"a date far away":      {date(time.Hour), 0, time.Hour},
		"no header":            {text(""), 125, 0},
		"a word":               {text("soon"), 125, 0},
		"a negative number":    {text("-3"), 125, 0},
		"a fraction":           {text("1.5"), 125, 0},
		"more than any number": {text("99999999999999999999"), 125, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{}, func(w *world) {
				w.eve.Script(session, fakeeve.Faults(status(429, "Retry-After", test.header())))
				got, err := w.read(source.Request{Bounded: true})
				if test.waits == 0 {
					if e := w.failure(err, source.Overloaded); e.RetryAfter != test.told || time.Since(w.began) != 0 {
						t.Errorf("told after %v to wait %v, want %v", time.Since(w.began), e.RetryAfter, test.told)
					}
					return
				}
				if err != nil || len(got) != 2 {
					t.Errorf("%v, %v", got, err)
				}
				w.expectGaps(test.waits)
			})
		})
	}
}

// TestOpenTimeout: an attempt has two minutes to answer (contract O5), and twelve of them end the read.
func TestOpenTimeout(t *testing.T) {
	never := fakeeve.Fault{Delay: fakeeve.Forever}
	bubble(t, setup{lines: pages(1), script: fakeeve.Faults(never, fakeeve.Fault{Delay: 119 * time.Second})}, func(w *world) {
		w.expectRead(source.Request{Bounded: true}, "line 0", "caught up with 0", "ended: bound")
		w.expectGaps(120_125)
	})
	bubble(t, setup{lines: pages(1), script: each(never), config: func(c *source.Config) { c.OpenTimeout, c.OpenAttempts = time.Second, 3 }}, func(w *world) {
		_, err := w.read(source.Request{Bounded: true})
		w.failed(err, source.Unavailable)
		w.expectGaps(1125, 1250)
		if took := time.Since(w.began); took != 3375*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// TestStranded: what is stored can be read; following gives all of it, then the error (contract O17).
func TestStranded(t *testing.T) {
	stranded := func(s *fakeeve.SessionSpec) { s.Stranded = "0.79.1" }
	bubble(t, setup{lines: pages(3), spec: stranded}, func(w *world) {
		w.expectRead(source.Request{Bounded: true}, lines(0, 2), "caught up with 2", "ended: bound")
	})
	told := func(w *world, err error) {
		t.Helper()
		if e := w.failure(err, source.Stranded); e.Meta["eve_version"] != "0.79.1" || e.RetryAfter != 0 {
			t.Errorf("%v, retry after %v", e.Meta, e.RetryAfter)
		}
	}
	for name, script := range map[string]fakeeve.Script{
		"":                      nil,
		"a cut before its tail": fakeeve.Faults(fakeeve.Fault{CutAt: fakeeve.AtLine(1, 5), Cut: fakeeve.Abort}),
		"a lease before its tail": func(c fakeeve.Conn) fakeeve.Fault {
			if c.N == 0 {
				return fakeeve.Fault{Lease: 1500 * time.Millisecond, LineDelay: time.Second}
			}
			return fakeeve.Fault{}
		},
	} {
		bubble(t, setup{lines: pages(3), spec: stranded, script: script}, func(w *world) {
			got, err := w.read(source.Request{})
			told(w, err)
			if diff := cmp.Diff(join(lines(0, 2), "caught up with 2"), got); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", name, diff)
			}
			if n := len(w.requests()); n > 5 {
				t.Errorf("%s: %v", name, w.requests())
			}
		})
	}
	bubble(t, setup{lines: pages(3)}, func(w *world) { // stranded while it is followed, with lines that were not seen
		r := w.open(source.Request{})
		w.expect(r, lines(0, 2), "caught up with 2")
		time.AfterFunc(50*time.Second, func() {
			w.sess.Update(stranded)
			w.sess.CutAll(fakeeve.Abort)
			w.sess.Append(page(3))
		})
		w.expect(r, "line 3")
		_, err := r.Next()
		told(w, err)
	})
}

// TestChildRoute reads a child that its parent's server relays (contract 1.10).
func TestChildRoute(t *testing.T) {
	bubble(t, setup{lines: pages(2)}, func(w *world) {
		w.eve.AddSession("wrun_parent", fakeeve.SessionSpec{Children: []fakeeve.Child{{CallID: "call_1", SessionID: session}}})
		via, ok := source.ChildVia("/eve/v1/session/wrun_parent/subagents/call_1/"+session+"/stream", "wrun_parent", session)
		if !ok {
			t.Fatal("the path is refused")
		}
		// The relay does not pass follow on: the tail parameter bounds.
		w.expectRead(source.Request{Via: via, Bounded: true}, lines(0, 1), "caught up with 1", "ended: bound")
		r := w.open(source.Request{Via: via})
		w.expect(r, lines(0, 1), "caught up with 1")
		w.after(2*time.Minute, page(2))
		w.expect(r, "line 2")
		for _, req := range w.eve.Requests() {
			if !strings.HasPrefix(req.Path, "/eve/v1/session/wrun_parent/subagents/call_1/"+session+"/stream") {
				t.Errorf("asked for %s", req.Path)
			}
		}
	})
}
