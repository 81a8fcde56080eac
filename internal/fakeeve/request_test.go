package fakeeve_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// TestRequests: what is noted of each request.
func TestRequests(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		log := fakeeve.NewMemLog(numbered(3)...)
		e.s.AddSession("a", fakeeve.SessionSpec{Log: log})
		e.do(t.Context(), "GET", "/health", "")
		e.post("/session/none", `{"message":"x"}`)
		bounded := e.read("a/stream?follow=0&startIndex=1")
		e.readFor("a/stream?startIndex=2", 15*time.Second)
		e.read("a/stream?startIndex=3")
		log.End()
		e.read("a/stream?startIndex=3")
		e.read("x%20y/stream")
		synctest.Wait()

		began := e.s.Requests()[0].At
		bytes := int64(len(bounded.raw()))
		line := int64(len(numbered(1)[0])) + 1
		want := []fakeeve.Request{
			{Path: "/health", Route: "health", Conn: -1, Status: 200, Bytes: 72, End: "answer", Method: "GET"},
			{Path: "/session/none", Route: "send", Session: "none", Conn: -1, Status: 409, Bytes: 83, End: "answer", Method: "POST", Body: []byte(`{"message":"x"}`)},
			{Path: "/session/a/stream", Route: "stream", Session: "a", Conn: 0, Status: 200, From: 1, Lines: 2, Bytes: bytes, End: "bound", Method: "GET"},
			{Path: "/session/a/stream", Route: "stream", Session: "a", Conn: 1, Status: 200, From: 2, Lines: 1, Bytes: 2*21 + line, End: "gone", Method: "GET", Following: true},
			{Path: "/session/a/stream", Route: "stream", Session: "a", Conn: 2, Status: 200, From: 3, Bytes: 6*21 + 30, End: "lease", Method: "GET", Following: true},
			{Path: "/session/a/stream", Route: "stream", Session: "a", Conn: 3, Status: 200, From: 3, Bytes: 21 + 24, End: "stream", Method: "GET", Following: true},
			{Path: "/session/x%20y/stream", Route: "stream", Session: "x y", Conn: 0, Status: 404, Bytes: 41, End: "answer", Method: "GET"},
		}
		for i := range want {
			want[i].N, want[i].Path, want[i].Principal = i, "/eve/v1"+want[i].Path, "local"
		}
		want[0].Principal = ""
		got := e.s.Requests()
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(fakeeve.Request{}, "At", "Done", "Header", "Query")); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		for i, seconds := range [][2]float64{{0, 0}, {0, 0}, {0, 0}, {0, 15}, {15, 75}, {75, 75}, {75, 75}} {
			if got[i].At.Sub(began).Seconds() != seconds[0] || got[i].Done.Sub(began).Seconds() != seconds[1] {
				t.Errorf("request %d from %v to %v", i, got[i].At.Sub(began), got[i].Done.Sub(began))
			}
		}
		if got[2].Query.Get("follow") != "0" || got[2].Header.Get("User-Agent") == "" {
			t.Errorf("query %v, header %v", got[2].Query, got[2].Header)
		}
		if r := e.s.StreamRequests("a"); len(r) != 4 || r[3].Conn != 3 {
			t.Errorf("stream requests %v", r)
		}
	})
}

// TestAuth: who is admitted, and how others are told (contract 7.2).
func TestAuth(t *testing.T) {
	both := fakeeve.Credentials{Bearer: map[string]string{"t": "alice", "m": "mallory"}, Basic: map[string]string{"u": "p"}, Forbidden: []string{"mallory"}}
	tests := []struct {
		name, authorization string
		credentials         fakeeve.Credentials
		status              int
		challenge           string
	}{
		{"bearer", "Bearer t", both, 200, ""},
		{"bearer in lower case, with spaces", "bearer  t ", both, 200, ""},
		{"basic", "Basic dTpw", both, 200, ""},
		{"nothing", "", both, 401, `Bearer, Basic realm="eve", charset="UTF-8"`},
		{"bad bearer", "Bearer x", both, 401, `Bearer error="invalid_token", Basic realm="eve", charset="UTF-8"`},
		{"forbidden", "Bearer m", both, 403, ""},
		{"bearer alone", "", fakeeve.Credentials{Bearer: both.Bearer}, 401, `Bearer`},
		{"basic alone", "", fakeeve.Credentials{Basic: both.Basic, Realm: "r"}, 401, `Basic realm="r", charset="UTF-8"`},
		{"no credentials at all", "", fakeeve.Credentials{}, 401, `Bearer`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, of(fakeeve.WithAuth(tt.credentials.Authenticate)), func(t *testing.T, e *env) {
				for path, status := range map[string]int{"/info": tt.status, "/health": 200} {
					req, err := http.NewRequestWithContext(t.Context(), "GET", e.srv.URL+"/eve/v1"+path, http.NoBody)
					if err != nil {
						t.Fatal(err)
					}
					if tt.authorization != "" {
						req.Header.Set("Authorization", tt.authorization)
					}
					res, err := e.srv.Client().Do(req)
					if err != nil {
						t.Fatal(err)
					}
					_ = res.Body.Close()
					if res.StatusCode != status || path == "/info" && res.Header.Get("WWW-Authenticate") != tt.challenge {
						t.Errorf("%s: %d %q", path, res.StatusCode, res.Header.Get("WWW-Authenticate"))
					}
				}
			})
		})
	}
}

// TestAuthExpires: an open body stays open when its token is no longer good; the next request is refused.
func TestAuthExpires(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		e.s.AddSession("a", fakeeve.SessionSpec{})
		time.AfterFunc(30*time.Second, func() { e.s.SetAuth(fakeeve.Credentials{}.Authenticate) })
		if got := e.read("a/stream"); got.took != time.Minute {
			t.Errorf("the body ended after %v", got.took)
		}
		if got := e.read("a/stream"); got.res.StatusCode != 401 {
			t.Errorf("the renewal: %d", got.res.StatusCode)
		}
		e.s.SetAuth(nil)
		if got := e.read("a/stream"); got.res.StatusCode != 200 {
			t.Errorf("without authentication: %d", got.res.StatusCode)
		}
	})
}

// TestRemoveSession: what was there is not any more.
func TestRemoveSession(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		if s := e.s.AddSession("a", fakeeve.SessionSpec{}); s.ID() != "a" || e.s.Session("a") != s {
			t.Error("not the session that was added")
		}
		e.s.RemoveSession("a")
		if e.s.Session("a") != nil || e.read("a/stream").res.StatusCode != 404 {
			t.Error("still there")
		}
	})
}
