package fakeeve_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// TestStream27 checks what a body holds for each kind of request (contract 1.9, 2.4, 2.5), over a stream of 5 lines.
func TestStream27(t *testing.T) {
	all := numbered(5)
	tests := []struct {
		name, query string
		open        bool // the stored stream is not closed
		quirks      fakeeve.Quirks
		version     int
		want        []string
		tail        string
		took        time.Duration
	}{
		{name: "closed from the beginning", want: join(beat, all, ended)},
		{name: "closed from a line", query: "startIndex=3", want: join(beat, all[3:], ended)},
		{name: "closed from the last", query: "startIndex=-1", want: join(beat, all[4:], ended)},
		{name: "closed from before the first", query: "startIndex=-9", want: join(beat, all, ended)},
		{name: "closed from the end", query: "startIndex=5", want: join(beat, ended)},
		{name: "the first of two starts", query: "startIndex=4&startIndex=1", want: join(beat, all[4:], ended)},
		{
			name: "closed from beyond the end hangs", query: "startIndex=7", took: time.Minute,
			want: join(beat, beat, beat, beat, beat, beat, lease),
		},
		{
			name: "closed from beyond the end, honoured", query: "startIndex=7", quirks: fakeeve.Quirks{HonoursAhead: true},
			want: join(beat, ended),
		},
		{
			name: "open", query: "startIndex=4", open: true, took: time.Minute,
			want: join(beat, all[4:], beat, beat, beat, beat, beat, lease),
		},
		{
			name: "the lease is not negotiated", query: "startIndex=5&streamControlVersion=2", open: true, took: time.Minute,
			want: join(beat, beat, beat, beat, beat, beat, lease),
		},
		{name: "bounded", query: "follow=false", open: true, want: join(beat, all), tail: "4"},
		{name: "bounded, closed", query: "follow=0", want: join(beat, all), tail: "4"},
		{name: "bounded by the tail index", query: "includeTailIndex=1&startIndex=2", open: true, want: join(beat, all[2:]), tail: "4"},
		{name: "bounded by the tail index, spelled out", query: "includeTailIndex=true&startIndex=-2", open: true, want: join(beat, all[3:]), tail: "4"},
		{name: "bounded at the end", query: "follow=false&startIndex=5", open: true, want: join(beat), tail: "4"},
		{name: "bounded beyond the end", query: "follow=false&startIndex=50", open: true, want: join(beat), tail: "4"},
		{
			name: "tail index of an old server", query: "includeTailIndex=1&startIndex=4", quirks: fakeeve.Quirks{TailInformational: true},
			want: join(beat, all[4:], ended), tail: "4",
		},
		{
			name: "follow=false of an old server", query: "follow=false&startIndex=4", quirks: fakeeve.Quirks{IgnoresFollow: true},
			want: join(beat, all[4:], ended),
		},
		{name: "26, closed", version: 26, query: "startIndex=3", want: join("", all[3:])},
		{name: "21, bounded", version: 21, query: "follow=false&startIndex=3", want: join("", all[3:]), tail: "4"},
		{
			name: "26, open with a lease", version: 26, query: "startIndex=4&streamControlVersion=1", open: true, took: time.Minute,
			want: join("", all[4:], "", "", "", "", "", `{"$eve":"stream.lease-ended","version":1}`),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, plain, func(t *testing.T, e *env) {
				log := fakeeve.NewMemLog(all...)
				if !tt.open {
					log.End()
				}
				e.s.AddSession("a", fakeeve.SessionSpec{Log: log, Version: tt.version, Quirks: tt.quirks})
				got := e.read("a/stream?" + tt.query)
				if got.err != nil || got.rest != "" {
					t.Errorf("ended with %v, %q", got.err, got.rest)
				}
				if diff := cmp.Diff(tt.want, got.texts()); diff != "" {
					t.Errorf("body (-want +got):\n%s", diff)
				}
				if got.took != tt.took {
					t.Errorf("took %v, want %v", got.took, tt.took)
				}
				if tail := got.res.Header.Get("X-Eve-Stream-Tail-Index"); tail != tt.tail {
					t.Errorf("tail header %q, want %q", tail, tt.tail)
				}
				version := max(tt.version, 0)
				if version == 0 {
					version = 27
				}
				if v := got.res.Header.Get("X-Eve-Stream-Version"); v != fmt.Sprint(version) {
					t.Errorf("version header %q, want %d", v, version)
				}
			})
		})
	}
}

// TestHeartbeats: one at once, one after each 10 s without output, whatever the output was (contract 2.4).
func TestHeartbeats(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		session := e.s.AddSession("a", fakeeve.SessionSpec{})
		go func() {
			time.Sleep(9 * time.Second)
			session.Append("one")
			time.Sleep(14 * time.Second)
			session.Append("two", "three")
			time.Sleep(36900 * time.Millisecond) // 100 ms before the lease ends
			session.Append("four")
		}()
		want := []string{
			"0 " + beat, "9 one", "19 " + beat, "23 two", "23 three", "33 " + beat, "43 " + beat, "53 " + beat, "59.9 four", "60 " + lease,
		}
		if diff := cmp.Diff(want, e.read("a/stream").schedule()); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	})
}

// TestLeaseOptions: other durations, and none.
func TestLeaseOptions(t *testing.T) {
	bubble(t, of(fakeeve.WithLease(7*time.Second), fakeeve.WithHeartbeat(3*time.Second)), func(t *testing.T, e *env) {
		e.s.AddSession("a", fakeeve.SessionSpec{})
		want := []string{"0 " + beat, "3 " + beat, "6 " + beat, "7 " + lease}
		if diff := cmp.Diff(want, e.read("a/stream").schedule()); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	})
	bubble(t, of(fakeeve.WithLease(0), fakeeve.WithHeartbeat(0)), func(t *testing.T, e *env) {
		e.s.AddSession("a", fakeeve.SessionSpec{})
		got := e.readFor("a/stream", time.Hour)
		if diff := cmp.Diff([]string{"0 " + beat}, got.schedule()); diff != "" || got.err == nil {
			t.Errorf("ended with %v, body (-want +got):\n%s", got.err, diff)
		}
	})
}

// TestLeaseOfBoundedRead: the lease ends a bounded body too, between two lines (contract 2.4).
func TestLeaseOfBoundedRead(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		e.s.AddSession("a", fakeeve.SessionSpec{Log: fakeeve.NewMemLog(numbered(9)...)})
		e.s.Script("a", fakeeve.Faults(fakeeve.Fault{LineDelay: 14 * time.Second}))
		got := e.read("a/stream?follow=false")
		lines := numbered(9)
		want := []string{
			"0 " + beat, "10 " + beat, "14 " + lines[0], "24 " + beat, "28 " + lines[1], "38 " + beat, "42 " + lines[2], "52 " + beat,
			"56 " + lines[3], "60 " + lease,
		}
		if diff := cmp.Diff(want, got.schedule()); diff != "" || got.err != nil {
			t.Errorf("ended with %v, body (-want +got):\n%s", got.err, diff)
		}
		rest := e.read("a/stream?follow=false&startIndex=4")
		if diff := cmp.Diff(join(beat, lines[4:]), rest.texts()); diff != "" {
			t.Errorf("after the renewal (-want +got):\n%s", diff)
		}
	})
}

// TestAheadOfTail: a live start beyond the tail gets what comes next, whatever its number (contract O3), unless the
// server honours it.
func TestAheadOfTail(t *testing.T) {
	for _, honours := range []bool{false, true} {
		bubble(t, plain, func(t *testing.T, e *env) {
			session := e.s.AddSession("a", fakeeve.SessionSpec{
				Log: fakeeve.NewMemLog("0", "1"), Quirks: fakeeve.Quirks{HonoursAhead: honours},
			})
			go func() {
				time.Sleep(time.Second)
				session.Append("2", "3", "4", "5")
				session.MemLog().End()
			}()
			want := []string{"0 " + beat, "1 2", "1 3", "1 4", "1 5", "1 " + ended}
			if honours {
				want = []string{"0 " + beat, "1 4", "1 5", "1 " + ended}
			}
			if diff := cmp.Diff(want, e.read("a/stream?startIndex=4").schedule()); diff != "" {
				t.Errorf("honours %v (-want +got):\n%s", honours, diff)
			}
		})
	}
}

// TestSkippedLines: a position record names the line behind a trimmed range (contract 2.4).
func TestSkippedLines(t *testing.T) {
	lines := numbered(10)
	tests := []struct {
		query string
		want  []string
	}{
		{"", join(beat, position(2), lines[2:4], position(7), lines[7:9], position(10), ended)},
		{"startIndex=1", join(beat, position(2), lines[2:4], position(7), lines[7:9], position(10), ended)},
		{"startIndex=3", join(beat, lines[3:4], position(7), lines[7:9], position(10), ended)},
		{"startIndex=5", join(beat, position(7), lines[7:9], position(10), ended)},
		{"startIndex=9", join(beat, position(10), ended)},
		{"startIndex=10", join(beat, ended)},
		{"startIndex=6&follow=false", join(beat, position(7), lines[7:9], position(10))},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			bubble(t, plain, func(t *testing.T, e *env) {
				log := fakeeve.NewMemLog(lines...)
				log.Trim(0, 2)
				log.Trim(4, 7)
				log.Trim(9, 99)
				log.End()
				e.s.AddSession("a", fakeeve.SessionSpec{Log: log})
				got := e.read("a/stream?" + tt.query)
				if diff := cmp.Diff(tt.want, got.texts()); diff != "" {
					t.Errorf("body (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestRefusals: everything that is answered by a status (contract 1.9, O8, O9, O14, O17).
func TestRefusals(t *testing.T) {
	tests := []struct {
		name, method, path string
		status             int
		body               string
	}{
		{"unknown session", "GET", "/session/none/stream", 404, `{"error":"Session not found.","ok":false}`},
		{"bad start", "GET", "/session/a/stream?startIndex=1.0", 400, `{"error":"Expected startIndex to be an integer.","ok":false}`},
		{"bad start before unknown session", "GET", "/session/none/stream?startIndex=x", 400, `{"error":"Expected startIndex to be an integer.","ok":false}`},
		{"traversal", "GET", "/session/..%2F..%2Fetc/stream", 503, `{"error":"Session stream unavailable.","ok":false}`},
		{"expired", "GET", "/session/expired/stream", 410, `{"code":"session_expired","error":"Session history is no longer available.","ok":false}`},
		{"expired, bounded", "GET", "/session/expired/stream?follow=0", 410, `{"code":"session_expired","error":"Session history is no longer available.","ok":false}`},
		{"stranded", "GET", "/session/stranded/stream", 409, `{"code":"session_stranded","error":"This session is no longer available.","ok":false,"eveVersion":"0.79.0"}`},
		{"stranded, tail index alone", "GET", "/session/stranded/stream?includeTailIndex=1", 409, `{"code":"session_stranded","error":"This session is no longer available.","ok":false,"eveVersion":"0.79.0"}`},
		{"stranded, bounded", "GET", "/session/stranded/stream?follow=false", 200, beat + "\n"},
		{"HEAD", "HEAD", "/session/a/stream", 405, ""},
		{"health", "GET", "/health", 200, `{"ok":true,"status":"ready","workflowId":"workflow//eve//workflowEntry"}`},
		{"HEAD of health", "HEAD", "/health", 200, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, plain, func(t *testing.T, e *env) {
				e.s.AddSession("a", fakeeve.SessionSpec{})
				e.s.AddSession("expired", fakeeve.SessionSpec{}).Expire()
				e.s.AddSession("stranded", fakeeve.SessionSpec{Stranded: "0.79.0"})
				res := e.do(t.Context(), tt.method, tt.path, "")
				body, err := io.ReadAll(res.Body)
				if res.StatusCode != tt.status || string(body) != tt.body || err != nil {
					t.Errorf("%d %s %v, want %d %s", res.StatusCode, body, err, tt.status, tt.body)
				}
				if tt.status == http.StatusMethodNotAllowed && res.Header.Get("Allow") != "GET" {
					t.Errorf("Allow: %q", res.Header.Get("Allow"))
				}
			})
		})
	}
}

// TestRemoteChild: a child is relayed through its parent alone, and without follow (contract 1.10).
func TestRemoteChild(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		parent := e.s.AddSession("p", fakeeve.SessionSpec{Children: []fakeeve.Child{{CallID: "call_1", SessionID: "c"}}})
		log := fakeeve.NewMemLog("one", "two")
		e.s.AddSession("c", fakeeve.SessionSpec{Log: log, Version: 26})

		for _, path := range []string{"p/subagents/call_2/c", "c/subagents/call_1/c", "x/subagents/call_1/c", "p/subagents/call_1/p"} {
			res := e.do(t.Context(), "GET", "/session/"+path+"/stream", "")
			if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusNotFound || string(body) != `{"error":"Subagent stream not found.","ok":false}` {
				t.Errorf("%s: %d %s", path, res.StatusCode, body)
			}
		}

		bounded := e.read("p/subagents/call_1/c/stream?includeTailIndex=1&startIndex=1")
		if diff := cmp.Diff(join("", "two"), bounded.texts()); diff != "" {
			t.Errorf("bounded (-want +got):\n%s", diff)
		}
		h := bounded.res.Header
		if h.Get("X-Eve-Session-Id") != "c" || h.Get("X-Eve-Stream-Version") != "26" || h.Get("X-Eve-Stream-Tail-Index") != "1" {
			t.Errorf("headers %v", h)
		}

		following := e.readFor("p/subagents/call_1/c/stream?follow=false", time.Minute)
		if following.err == nil || following.res.Header.Get("X-Eve-Stream-Tail-Index") != "" {
			t.Errorf("follow=false was passed on: %v %v", following.err, following.res.Header)
		}
		parent.Update(func(s *fakeeve.SessionSpec) { s.Quirks.ForwardsFollow = true })
		if got := e.read("p/subagents/call_1/c/stream?follow=false"); got.err != nil || len(got.lines) != 3 {
			t.Errorf("follow=false was not passed on: %v %v", got.err, got.texts())
		}
	})
}

// TestBase: the routes of a named agent (contract 1.1), ids decoded segment by segment.
func TestBase(t *testing.T) {
	bubble(t, of(fakeeve.WithBase("/eve/tide-desk/v1/"), fakeeve.WithInfo(`{"version":6}`)), func(t *testing.T, e *env) {
		e.s.AddSession("a b", fakeeve.SessionSpec{Log: fakeeve.Generated(1, fakeeve.Commits, 27)})
		for path, status := range map[string]int{
			"/eve/tide-desk/v1/health":                     200,
			"/eve/tide-desk/v1/info/":                      200,
			"/eve/tide-desk/v1/session/a%20b/stream":       200,
			"/eve/tide-desk/v1/session/a%2520b/stream":     404,
			"/eve/v1/health":                               404,
			"/eve/tide-desk/v1x/health":                    404,
			"/eve/tide-desk/v1/session/a%20b/stream/extra": 404,
			"/": 200,
		} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.srv.URL+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			res, err := e.srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(res.Body); err != nil || res.StatusCode != status {
				t.Errorf("%s: %d, %v, want %d", path, res.StatusCode, err, status)
			}
			_ = res.Body.Close()
		}
	})
}

// TestHistoryRewritten: readers that open after a change see the new history; one that was open goes on.
func TestHistoryRewritten(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		session := e.s.AddSession("a", fakeeve.SessionSpec{Log: fakeeve.NewMemLog("0", "1", "2")})
		log := session.MemLog()
		open := make(chan output)
		go func() { open <- e.read("a/stream") }()
		synctest.Wait()
		log.Replace(1, "one")
		log.Truncate(2)
		if got := e.read("a/stream?follow=0"); cmp.Diff(join(beat, "0", "one"), got.texts()) != "" || got.res.Header.Get("X-Eve-Stream-Tail-Index") != "1" {
			t.Errorf("after the change: %q", got.texts())
		}
		log.Append("two", "three")
		log.End()
		if diff := cmp.Diff(join(beat, "0", "1", "2", "three", ended), (<-open).texts()); diff != "" {
			t.Errorf("the open reader (-want +got):\n%s", diff)
		}
		log.Purge()
		if got := e.read("a/stream?follow=0"); got.res.Header.Get("X-Eve-Stream-Tail-Index") != "-1" || len(got.lines) != 1 {
			t.Errorf("after the purge: %q", got.texts())
		}
	})
}

// TestOpenCost: the wait before the headers grows with the stream (contract O5).
func TestOpenCost(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		e.s.AddSession("a", fakeeve.SessionSpec{
			Log: fakeeve.Generated(100_000, fakeeve.SmallDeltas, 27), OpenCost: 80 * time.Microsecond,
		})
		if got := e.read("a/stream?startIndex=-1"); got.took != 8*time.Second || len(got.lines) != 3 {
			t.Errorf("took %v, %d lines", got.took, len(got.lines))
		}
	})
}

// TestFollowers: several followers of one session, each woken by every append, while others write.
func TestFollowers(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		session := e.s.AddSession("a", fakeeve.SessionSpec{})
		const followers, lines = 8, 50
		results := make(chan output)
		for range followers {
			go func() { results <- e.read("a/stream") }()
		}
		synctest.Wait()
		if now, peak := e.s.OpenBodiesOf("a"); now != followers || peak != followers || e.s.OpenBodies() != followers {
			t.Errorf("open bodies: %d, peak %d", now, peak)
		}
		for _, line := range numbered(lines) {
			session.Append(line)
			time.Sleep(time.Millisecond)
		}
		session.MemLog().End()
		for range followers {
			if diff := cmp.Diff(join(beat, numbered(lines), ended), (<-results).texts()); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		}
		synctest.Wait()
		if now, peak := e.s.OpenBodiesOf("a"); now != 0 || peak != followers {
			t.Errorf("open bodies at the end: %d, peak %d", now, peak)
		}
	})
}

// TestCutBlocked: a body whose client does not read is cut too, and lets go.
func TestCutBlocked(t *testing.T) {
	for _, how := range []fakeeve.How{fakeeve.Abort, fakeeve.Reset} {
		bubble(t, plain, func(t *testing.T, e *env) {
			e.s.AddSession("a", fakeeve.SessionSpec{Log: fakeeve.Generated(1_000_000, fakeeve.Mixed, 27)})
			res := e.do(t.Context(), "GET", "/session/a/stream", "")
			synctest.Wait()
			e.s.CutAll(how)
			synctest.Wait()
			if e.s.OpenBodies() != 0 {
				t.Error("the body is still open")
			}
			if r := e.s.Requests()[0]; r.End != fakeeve.EndCut {
				t.Errorf("the body ended as %q", r.End)
			}
			if _, err := io.ReadAll(res.Body); err == nil {
				t.Error("the client saw a clean end")
			}
		})
	}
}

// TestCutAll: a stopped server cuts every body without a final chunk (contract O7).
func TestCutAll(t *testing.T) {
	for _, how := range []fakeeve.How{fakeeve.Clean, fakeeve.Abort, fakeeve.Reset} {
		bubble(t, plain, func(t *testing.T, e *env) {
			a := e.s.AddSession("a", fakeeve.SessionSpec{Log: fakeeve.NewMemLog("0")})
			e.s.AddSession("b", fakeeve.SessionSpec{})
			results := make(chan output, 2)
			go func() { results <- e.read("a/stream") }()
			go func() { results <- e.readFor("b/stream", time.Minute) }()
			stuck := e.do(t.Context(), "GET", "/session/a/stream", "")
			synctest.Wait()
			a.CutAll(how)
			got := <-results
			if diff := cmp.Diff(join(beat, "0"), got.texts()); diff != "" || (got.err == nil) != (how == fakeeve.Clean) || got.took != 0 {
				t.Errorf("cut %d: %v after %v, body (-want +got):\n%s", how, got.err, got.took, diff)
			}
			if _, err := io.ReadAll(stuck.Body); (err == nil) != (how == fakeeve.Clean) {
				t.Errorf("the unread body ended with %v", err)
			}
			if now, _ := e.s.OpenBodiesOf("b"); now != 1 {
				t.Error("the other session was cut")
			}
			e.s.CutAll(fakeeve.Abort)
			if got := <-results; !errors.Is(got.err, io.ErrUnexpectedEOF) {
				t.Errorf("the other session ended with %v", got.err)
			}
		})
	}
}
