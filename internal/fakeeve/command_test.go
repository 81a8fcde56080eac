package fakeeve_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// answer is the body of a command's answer.
type answer struct {
	Status            int    `json:"-"`
	OK                bool   `json:"ok"`
	Code              string `json:"code"`
	Error             string `json:"error"`
	SessionID         string `json:"sessionId"`
	PreviousSessionID string `json:"previousSessionId"`
	Word              string `json:"status"`
	DeliveryID        string `json:"deliveryId"`
	EveVersion        string `json:"eveVersion"`
}

// post sends a command; path begins behind /eve/v1.
func (e *env) post(path, body string) answer {
	e.t.Helper()
	res := e.do(e.t.Context(), http.MethodPost, path, body)
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	a := answer{Status: res.StatusCode}
	if err := json.Unmarshal(raw, &a); err != nil {
		e.t.Fatalf("%s: %v in %s", path, err, raw)
	}
	return a
}

// types are the record types of a log, line by line.
func types(l fakeeve.Log, version int) []string {
	var lines []string
	for e := range fakeeve.Entries(l, version, 0, -1) {
		var names []string
		for _, r := range e.Records {
			names = append(names, r.Type)
		}
		lines = append(lines, strings.Join(names, " "))
	}
	return lines
}

// turn27 is what Echo writes for a message.
func turn27() []string {
	return []string{
		"turn.started delivery.consumed", "model.requested model.started", "content.delta",
		"content.completed model.settled usage.recorded", "turn.settled delivery.settled",
	}
}

// TestConversation27: a session from its prewarm to its end, at version 27.
func TestConversation27(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		created := e.post("/session", "")
		if created.Status != 202 || created.Word != "accepted" || created.DeliveryID != "" {
			t.Fatalf("create: %+v", created)
		}
		id := created.SessionID
		session := e.s.Session(id)
		if session.Log().Len() != 0 {
			t.Errorf("a prewarmed session has %d lines", session.Log().Len())
		}
		sent := e.post("/session/"+id, `{"message":[{"type":"text","text":"two \"words\""},{"type":"file","mediaType":"text/plain","data":"aGk="},{"type":"text","text":"more"}]}`)
		if sent.Status != 202 || sent.DeliveryID == "" || sent.SessionID != id {
			t.Errorf("send: %+v", sent)
		}
		for _, control := range []string{"cancel", "compact", "clear"} {
			if a := e.post("/session/"+id+"/"+control, ""); a.Status != 202 || a.Word != "accepted" || a.DeliveryID == "" || a.SessionID != id {
				t.Errorf("%s: %+v", control, a)
			}
		}
		if a := e.post("/session/"+id, `{"inputResponses":[{"requestId":"r","optionId":"approve"}]}`); a.Status != 202 || a.DeliveryID == "" {
			t.Errorf("answer: %+v", a)
		}
		if a := e.post("/session/"+id+"/end", `{"reason":"done"}`); a.Status != 200 || a.PreviousSessionID != id || a.Word != "reset" {
			t.Errorf("end: %+v", a)
		}
		want := join("session.started delivery.admitted", turn27(), "delivery.admitted delivery.settled",
			"delivery.admitted context.started context.settled delivery.settled", "delivery.admitted context.started context.settled delivery.settled",
			"delivery.admitted", turn27(), "delivery.admitted delivery.settled session.ended")
		if diff := cmp.Diff(want, types(session.Log(), 27)); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		if got := e.read(id + "/stream"); got.texts()[len(got.lines)-1] != ended || !strings.Contains(got.raw(), `"value":"two \"words\"\nmore"`) {
			t.Errorf("stream %s", got.raw())
		}
		if a := e.post("/session/"+id, `{"message":"x"}`); a.Status != 409 || a.Code != "session_not_active" {
			t.Errorf("send behind the end: %+v", a)
		}
		for control, word := range map[string]string{"cancel": "no_active_turn", "compact": "no_active_session", "clear": "no_active_session", "reset": "no_active_session"} {
			if a := e.post("/session/"+id+"/"+control, ""); a.Status != 200 || a.Word != word || !a.OK {
				t.Errorf("%s behind the end: %+v", control, a)
			}
		}
	})
}

// TestConversation26: the same in events; receipts of creates and controls have no delivery, and end is no route.
func TestConversation26(t *testing.T) {
	turn := []string{
		"turn.started", "message.received", "step.started", "message.appended", "message.completed", "step.completed", "turn.completed",
		"session.waiting",
	}
	bubble(t, of(fakeeve.WithVersion(26)), func(t *testing.T, e *env) {
		created := e.post("/session", `{"message":"hello"}`)
		if created.DeliveryID != "" {
			t.Errorf("create: %+v", created)
		}
		id := created.SessionID
		e.post("/session/"+id, `{"message":"again"}`)
		for _, control := range []string{"cancel", "compact", "clear", "reset"} {
			if a := e.post("/session/"+id+"/"+control, ""); a.DeliveryID != "" {
				t.Errorf("%s: %+v", control, a)
			}
		}
		if res := e.do(t.Context(), "POST", "/session/"+id+"/end", ""); res.StatusCode != 404 {
			t.Errorf("end: %d", res.StatusCode)
		}
		want := join("session.started", turn, turn, "compaction.requested", "compaction.completed", "session.waiting", "context.cleared",
			"session.waiting", "session.completed")
		if diff := cmp.Diff(want, types(e.s.Session(id).Log(), 26)); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

// TestOptionsOfCommands: receipts and end routes of servers in between.
func TestOptionsOfCommands(t *testing.T) {
	bubble(t, of(fakeeve.WithReceipts(false), fakeeve.WithEndRoutes(fakeeve.RouteEnd)), func(t *testing.T, e *env) {
		a := e.post("/session", `{"message":"x"}`)
		if a.DeliveryID != "" {
			t.Errorf("create: %+v", a)
		}
		if res := e.do(t.Context(), "POST", "/session/"+a.SessionID+"/reset", ""); res.StatusCode != 404 {
			t.Errorf("reset: %d", res.StatusCode)
		}
		if a := e.post("/session/"+a.SessionID+"/end", ""); a.Status != 200 {
			t.Errorf("end: %+v", a)
		}
	})
}

// TestIdempotency: one key is one delivery at 27, and nothing before (contract 1.5).
func TestIdempotency(t *testing.T) {
	for version, same := range map[int]bool{27: true, 26: false} {
		bubble(t, of(fakeeve.WithVersion(version)), func(t *testing.T, e *env) {
			session := e.s.AddSession("a", fakeeve.SessionSpec{})
			one := e.post("/session/a", `{"message":"x","idempotencyKey":"k"}`)
			n := session.Log().Len()
			two := e.post("/session/a", `{"message":"x","idempotencyKey":"k"}`)
			three := e.post("/session/a", `{"message":"x"}`)
			four := e.post("/session/a", `{"message":"x"}`)
			if (one.DeliveryID == two.DeliveryID) != same || three.DeliveryID == four.DeliveryID {
				t.Errorf("version %d: deliveries %s, %s, %s, %s", version, one.DeliveryID, two.DeliveryID, three.DeliveryID, four.DeliveryID)
			}
			deliveries := int64(4)
			if same {
				deliveries = 3
			}
			each := int64(6)
			if version < 27 {
				n, each = n-1, 8
			}
			if got := session.Log().Len(); got < n+(deliveries-1)*each || got > n+(deliveries-1)*each+1 {
				t.Errorf("version %d: %d lines after %d deliveries, %d after the first", version, got, deliveries, n)
			}
		})
	}
}

// TestOperationID: one operation of one principal is one session (contract 1.4).
func TestOperationID(t *testing.T) {
	users := fakeeve.Credentials{Bearer: map[string]string{"a": "alice", "b": "bob"}}
	anonymous := func(r *http.Request) (string, *fakeeve.Denied) {
		if r.Header.Get("Authorization") == "" {
			return "", nil
		}
		return users.Authenticate(r)
	}
	bubble(t, of(fakeeve.WithAuth(anonymous)), func(t *testing.T, e *env) {
		create := func(token, body string) answer {
			req, err := http.NewRequestWithContext(t.Context(), "POST", e.srv.URL+"/eve/v1/session", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			res, err := e.srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			a := answer{Status: res.StatusCode}
			if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
				t.Fatal(err)
			}
			return a
		}
		one := create("a", `{"message":"x","operationId":"op"}`)
		two := create("a", `{"message":"x","operationId":"op"}`)
		three := create("b", `{"message":"x","operationId":"op"}`)
		four := create("a", `{"message":"x","operationId":"op 2"}`)
		if one.SessionID != two.SessionID || one.SessionID == three.SessionID || one.SessionID == four.SessionID {
			t.Errorf("sessions %s, %s, %s, %s", one.SessionID, two.SessionID, three.SessionID, four.SessionID)
		}
		if n := e.s.Session(one.SessionID).Log().Len(); n != 6 {
			t.Errorf("the message was dispatched again: %d lines", n)
		}
		if a := create("", `{"operationId":"op"}`); a.Status != 400 {
			t.Errorf("anonymous: %+v", a)
		}
		if len(e.s.Sessions()) != 3 {
			t.Errorf("sessions %v", e.s.Sessions())
		}
	})
}

// TestCommandRefusals: bodies and states that are refused, beyond those in the captures.
func TestCommandRefusals(t *testing.T) {
	large := base64.StdEncoding.EncodeToString(make([]byte, 26214401))
	tests := []struct {
		path, body string
		status     int
		code       string
	}{
		{"/session", `{"message":[{"type":"text","text":""}]}`, 400, ""},
		{"/session", `{"message":[]}`, 400, ""},
		{"/session", `{"message":[{"type":"file","mediaType":"x"}]}`, 400, ""},
		{"/session", `{"operationId":""}`, 400, ""},
		{"/session", `{"message":"x"} x`, 400, ""},
		{"/session", `{"message":[{"type":"file","mediaType":"x/y","data":"data:x/y;base64,` + large + `"}]}`, 413, ""},
		{"/session", `{"message":[{"type":"file","mediaType":"x/y","data":"https://files.test/x"}]}`, 202, ""},
		{"/session/a", `{"message":[{"type":"file","mediaType":"x/y","data":"aGk="}]}`, 202, ""},
		{"/session/a", `{"message":"x","stubs":[]}`, 400, ""},
		{"/session/a", `{"message":"x","idempotencyKey":""}`, 400, ""},
		{"/session/a", `{"message":"x","turnPolicy":null}`, 400, ""},
		{"/session/a", `{"message":"x","turnPolicy":"queue"}`, 202, ""},
		{"/session/a", `{"inputResponses":[{"requestId":"r","extra":"x"}]}`, 400, ""},
		{"/session/a", `{"inputResponses":[{"requestId":"r","text":7}]}`, 400, ""},
		{"/session/a", `{"inputResponses":[{"optionId":"x"}]}`, 400, ""},
		{"/session/a/reset", `{"reason":""}`, 400, ""},
		{"/session/a/clear", `[]`, 400, ""},
		{"/session/stranded", `{"message":"x"}`, 409, "session_stranded"},
		{"/session/expired", `{"message":"x"}`, 409, "session_not_active"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %.60s", tt.path, tt.body), func(t *testing.T) {
			bubble(t, plain, func(t *testing.T, e *env) {
				e.s.AddSession("a", fakeeve.SessionSpec{})
				e.s.AddSession("stranded", fakeeve.SessionSpec{Stranded: "0.79.0"})
				e.s.AddSession("expired", fakeeve.SessionSpec{}).Expire()
				if a := e.post(tt.path, tt.body); a.Status != tt.status || a.Code != tt.code || a.OK != (tt.status < 300) || (a.Error == "") != a.OK {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}

// TestNotReady: the first sends are refused, controls are not.
func TestNotReady(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		e.s.AddSession("a", fakeeve.SessionSpec{NotReady: 2})
		for i, status := range []int{409, 409, 202} {
			a := e.post("/session/a", `{"message":"x"}`)
			if a.Status != status || status == 409 && a.Code != "session_not_ready" {
				t.Errorf("send %d: %+v", i, a)
			}
		}
	})
}

// TestStrandedReset: ending a stranded session works, and its history can then be followed.
func TestStrandedReset(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		e.s.AddSession("a", fakeeve.SessionSpec{Stranded: "0.79.0", Log: fakeeve.NewMemLog(numbered(1)...)})
		if a := e.post("/session/a/reset", ""); a.Status != 200 || a.Word != "reset" {
			t.Errorf("reset: %+v", a)
		}
		if got := e.read("a/stream"); got.res.StatusCode != 200 || len(got.lines) != 4 {
			t.Errorf("stream: %d %q", got.res.StatusCode, got.texts())
		}
	})
}

// TestAgents: agents other than Echo.
func TestAgents(t *testing.T) {
	bubble(t, of(fakeeve.WithAgent(fakeeve.Scripted([]string{"a", "b"}, []string{"c"}))), func(t *testing.T, e *env) {
		id := e.post("/session", `{"message":"1"}`).SessionID
		e.post("/session/"+id+"/cancel", "")
		e.post("/session/"+id, `{"message":"2"}`)
		e.post("/session/"+id, `{"message":"3"}`)
		if diff := cmp.Diff([]string{"a", "b", "c"}, contents(e.s.Session(id).Log())); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		e.post("/session/"+id+"/reset", "")
		if got := e.read(id + "/stream?startIndex=3"); got.lines[len(got.lines)-1].text != ended {
			t.Errorf("stream: %q", got.texts())
		}
	})
	bubble(t, of(fakeeve.WithAgent(fakeeve.Silent)), func(t *testing.T, e *env) {
		a := e.post("/session", `{"message":"1"}`)
		if n := e.s.Session(a.SessionID).Log().Len(); a.Status != 202 || n != 0 {
			t.Errorf("%+v, %d lines", a, n)
		}
	})
	// What cannot grow is left alone.
	bubble(t, plain, func(t *testing.T, e *env) {
		e.s.AddSession("a", fakeeve.SessionSpec{Log: fakeeve.Generated(3, fakeeve.Commits, 27)})
		if a := e.post("/session/a", `{"message":"1"}`); a.Code != "session_not_active" {
			t.Errorf("%+v", a)
		}
	})
}
