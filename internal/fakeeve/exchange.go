package fakeeve

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// exchange is one request and its answer.
type exchange struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context // the request's
	rc     *http.ResponseController
	rec    *Request
	body   []byte // of the request
	fault  Fault  // of the route's script
}

// refusal is an error body; its members are in the order of the real server's.
type refusal struct {
	Code       string `json:"code,omitempty"`
	Error      string `json:"error"`
	OK         bool   `json:"ok"`
	EveVersion string `json:"eveVersion,omitempty"`
}

// answer sends v as JSON.
func (x *exchange) answer(status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fakeeve: encoding an answer: %v", err))
	}
	x.json(status, body)
}

// refuse sends an error body that caches may not keep.
func (x *exchange) refuse(status int, code, text string) {
	x.w.Header().Set("Cache-Control", "no-store")
	x.answer(status, refusal{Code: code, Error: text})
}

func (x *exchange) json(status int, body []byte) {
	x.w.Header().Set("Content-Type", "application/json")
	x.raw(status, body)
}

// raw sends a whole answer, chunked as the real server does, and cut where the fault says.
func (x *exchange) raw(status int, body []byte) {
	x.server.ledger.note(x.rec, func(rec *Request) { rec.Status, rec.Bytes = status, int64(len(body)) })
	if x.fault.CutAt != nil && x.fault.CutAt.line < 0 {
		x.cutAnswer(status, body[:min(int64(len(body)), x.fault.CutAt.offset)])
		return
	}
	x.w.WriteHeader(status)
	if x.r.Method == http.MethodHead {
		return
	}
	_ = x.rc.Flush() // without it net/http would send a content-length
	_, _ = x.w.Write(body)
}

// cutAnswer loses an answer: all of it when sent is empty, headers included.
func (x *exchange) cutAnswer(status int, sent []byte) {
	x.server.ledger.note(x.rec, func(rec *Request) { rec.End, rec.Bytes = EndCut, int64(len(sent)) })
	if len(sent) > 0 {
		x.w.WriteHeader(status)
		_, _ = x.w.Write(sent)
		_ = x.rc.Flush()
	}
	disconnect(x.rc, x.fault.Cut)
}

// noRoute answers a path that is none, in the words of the real server (contract O9).
func (x *exchange) noRoute() {
	x.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	body := fmt.Sprintf("{\n  \"error\": true,\n  \"status\": 404,\n  \"message\": \"Cannot find any route matching [%s] http://%s%s\"\n}",
		x.r.Method, x.r.Host, x.r.URL.EscapedPath())
	x.server.ledger.note(x.rec, func(rec *Request) { rec.Status, rec.Bytes = http.StatusNotFound, int64(len(body)) })
	if x.r.Method == http.MethodHead {
		x.w.WriteHeader(http.StatusNotFound)
		return
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(http.StatusNotFound)
	_, _ = x.w.Write([]byte(body))
}

// scripted applies the script of the request's route, and tells whether there is still something to answer.
func (x *exchange) scripted() bool {
	x.server.mu.Lock()
	script := x.server.routes[x.rec.Route]
	x.server.mu.Unlock()
	if script == nil {
		return true
	}
	x.server.ledger.mu.Lock()
	seen := *x.rec
	x.server.ledger.mu.Unlock()
	x.fault = script(seen)
	return x.begin(x.fault)
}

// begin applies what a fault does before the answer, and tells whether there is still something to answer.
func (x *exchange) begin(f Fault) bool {
	if f.Delay > 0 && !pause(x.ctx, f.Delay) {
		x.server.ledger.note(x.rec, func(rec *Request) { rec.End = EndGone })
		return false
	}
	if f.Status == 0 {
		return true
	}
	if strings.HasPrefix(f.Body, "{") {
		x.w.Header().Set("Content-Type", "application/json")
	}
	maps.Copy(x.w.Header(), f.Header)
	x.raw(f.Status, []byte(f.Body))
	return false
}

// disconnect ends a connection the hard way; it does not return. What was flushed before is sent.
func disconnect(rc *http.ResponseController, how How) {
	if how == Reset {
		if conn, _, err := rc.Hijack(); err == nil {
			if c, ok := conn.(interface{ SetLinger(int) error }); ok {
				_ = c.SetLinger(0) // closing then sends a reset
			}
			_ = conn.Close()
		}
	}
	panic(http.ErrAbortHandler)
}

// pause waits, and tells whether the time passed before ctx was done.
func pause(ctx context.Context, d time.Duration) bool {
	if d == Forever {
		<-ctx.Done()
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
