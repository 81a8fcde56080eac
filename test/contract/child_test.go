package contract_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/evegateway/evegateway/gateway"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// The child of the cases, and the call of the parent that opened it.
const (
	childSession = "wrun_2"
	childCall    = "call_1"
	localPath    = "/eve/v1/session/wrun_2/stream"
	remotePath   = "/eve/v1/session/wrun_1/subagents/call_1/wrun_2/stream"
)

// childOpened is the fact that opens the child; owner is {callId} or {taskId}.
func childOpened(owner, path string) string {
	return fact("child.opened", fmt.Sprintf(`"sessionId":%q,"owner":%s,"name":"scout","stream":%q`, childSession, owner, path))
}

// parentOf is a parent's log that opens the child at a path.
func parentOf(path string) []string {
	return []string{
		facts(0, fact("session.started", "")),
		facts(1, fact("call.requested", `"callId":"call_1"`), childOpened(`{"callId":"call_1"}`, path), fact("almanac.page", "")),
		facts(2, turnSettled("completed")),
	}
}

// family is a parent and a child at one Eve.
type family struct {
	parent, child fakeeve.SessionSpec
	remote        bool
	eve           []fakeeve.Option
	config        func(*gateway.Config)
}

func (f *family) start(t *testing.T) *rig.Rig {
	t.Helper()
	c := contractCase{eve: f.eve, config: f.config}
	r := rig.New(t, c.options())
	if f.remote {
		f.parent.Children = []fakeeve.Child{{CallID: childCall, SessionID: childSession}}
	}
	r.Eve.AddSession(session, f.parent)
	if f.child.Log != nil {
		r.Eve.AddSession(childSession, f.child)
	}
	return r
}

// asChild asks for the child, from the beginning.
func asChild() *evev1.SubscribeRequest {
	return &evev1.SubscribeRequest{SessionId: childSession, Child: &evev1.ChildStream{ParentSessionId: session, CallId: childCall}}
}

// finished is a log of lines to which none will be added.
func finished(lines ...string) *fakeeve.MemLog {
	l := fakeeve.NewMemLog(lines...)
	l.End()
	return l
}

// texts are the messages in text, for comparison.
func texts(res rig.Result, version uint32) []string {
	var out []string
	for _, m := range res.Messages {
		out = append(out, textOf(m, version))
	}
	return out
}

// asked are the requests made to Eve, by session: "wrun_1 tail 0".
func asked(r *rig.Rig) []string {
	out := none()
	for _, q := range r.Eve.Requests() {
		out = append(out, q.Session+" "+readsOf([]fakeeve.Request{q}, q.At)[0])
	}
	return out
}

// patient ends a read that would go on for ever.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), forever)
	t.Cleanup(cancel)
	return ctx
}

// A child is read by its own positions from 0, wherever it runs, and moves nothing but its own cursor, which names the
// child and is all that a resume needs.
func TestChild(t *testing.T) {
	for _, remote := range []bool{false, true} {
		for _, version := range []int{27, 26, 21} {
			t.Run(fmt.Sprintf("remote=%v/version=%d", remote, version), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { readChild(t, remote, version) })
			})
		}
	}
}

func readChild(t *testing.T, remote bool, version int) {
	lines, want := numbered(5), pages(0, 5)
	if version < 27 {
		for i := range lines {
			lines[i], want[i] = legacy(i, "almanac.page"), fmt.Sprintf("event %d almanac.page @%d", i, i+1)
		}
	}
	path, route := localPath, fakeeve.RouteStream
	if remote {
		path, route = remotePath, fakeeve.RouteSubagent
	}
	f := family{parent: fakeeve.SessionSpec{Log: finished(parentOf(path)...)}, child: fakeeve.SessionSpec{Log: finished(lines...), Version: version}, remote: remote}
	r := f.start(t)
	defer r.Close()

	// A part of the parent, a part of the child, the child's rest in two ways, the parent's rest.
	parent := r.Subscribe(t.Context(), rig.FromStart(session), func(m *evev1.SubscribeResponse) bool { return m.GetCursor().GetStreamIndex() == 2 })
	n := 0
	part := r.Subscribe(t.Context(), rig.UntilTail(asChild()), func(*evev1.SubscribeResponse) bool { n++; return n == 2 })
	checkMessages(t, "the child's part", asChild(), part)
	at := part.Last().GetCursor()
	if diff := cmp.Diff(&evev1.ChildStream{ParentSessionId: session, CallId: childCall}, at.GetChild(), protocmp.Transform()); diff != "" {
		t.Errorf("the cursor's child (-want +got):\n%s", diff)
	}
	if got := part.Header.Get("eve-stream-version"); !slices.Equal(got, []string{fmt.Sprint(version)}) {
		t.Errorf("header eve-stream-version %q, the child has %d", got, version)
	}
	named := rig.From(at)
	named.SessionId, named.Child, named.Agent = childSession, asChild().GetChild(), rig.Agent
	for name, req := range map[string]*evev1.SubscribeRequest{"by its cursor": rig.From(at), "named again": named} {
		before := len(r.Eve.Requests())
		rest := r.Subscribe(t.Context(), rig.UntilTail(req), nil)
		checkMessages(t, name, req, rest)
		end := []string{"CAUGHT_UP 4 @5", "ENDED BOUND_REACHED @5"}
		if diff := cmp.Diff(join(want, end), append(texts(part, uint32(version)), texts(rest, uint32(version))...)); diff != "" {
			t.Errorf("the child, its rest %s (-want +got):\n%s", name, diff)
		}
		checkRecords(t, name, f.child.Log, version, rest.Records())
		requests := r.Eve.Requests()[before:]
		if len(requests) != 2 || requests[0].Session != session || requests[1].Session != childSession || requests[1].Route != route {
			t.Errorf("%s: asked %v", name, requests)
		}
	}
	rest := r.Subscribe(t.Context(), rig.From(parent.Last().GetCursor()), nil)
	if diff := cmp.Diff([]string{"fact 2.0 turn.settled @3", "CAUGHT_UP 2 @3", "ENDED STREAM_CLOSED @3"}, texts(rest, 27)); diff != "" {
		t.Errorf("the parent's rest (-want +got):\n%s", diff)
	}
}

// What the parent's stream must say so that the child is found: that exactly this call opened exactly this session, or
// a task did that serves the call.
func TestChildFound(t *testing.T) {
	task := fact("task.started", `"taskId":"task_1","startedBy":{"callId":"call_1"},"kind":"agent","name":"scout"`)
	byTask := childOpened(`{"taskId":"task_1"}`, localPath)
	serves := fact("call.started", `"callId":"call_1","taskId":"task_1"`)
	byCall := childOpened(`{"callId":"call_1"}`, localPath)
	agent := `{"type":"agent.started","data":{"callId":"call_1","turnId":"turn_0","name":"scout","sessionId":"wrun_2","streamPath":"/eve/v1/session/wrun_2/stream"},"meta":{"id":"evt_1"}}`
	replace := func(s, old, text string) string { return strings.Replace(s, old, text, 1) }
	tests := []struct {
		name    string
		version int
		lines   []string
		found   bool
	}{
		{"by the call", 27, []string{facts(0, byCall)}, true},
		{"last of many facts", 27, []string{commit(0, "a", "b"), delta("c"), "garbage", facts(3, fact("a", ""), fact("b", ""), byCall)}, true},
		{"by the task that the call started", 27, []string{facts(0, task), facts(1, byTask)}, true},
		{"by the task, all in one commit", 27, []string{facts(0, task, serves, byTask)}, true},
		{"by a task that serves the call", 27, []string{facts(0, replace(task, "call_1", "call_0")), facts(1, serves), facts(2, byTask)}, true},
		{"among other children", 27, []string{facts(0, replace(byCall, childSession, "wrun_3"), replace(byCall, `{"callId":"call_1"}`, `{"callId":"call_2"}`), byCall)}, true},
		{"opened again, later", 27, []string{facts(0, byCall), facts(1, byCall)}, true},
		{"with members this build does not understand", 27, []string{facts(0, replace(byCall, `"name":"scout"`, `"name":{"en":"scout"},"owner":7`)), facts(1, replace(byCall, `"name":"scout"`, `"name":5`))}, true},
		{"by an event of 26", 26, []string{agent}, true},
		{"by an event of 21", 21, []string{legacy(0, "session.started"), agent}, true},
		{"by an event of a remote child of 26, whose URL is not for us", 26, []string{replace(agent, `"name"`, `"remote":{"resolverId":"r","url":"https://remote.test/eve/v1/session/x/stream"},"name"`)}, true},
		{"by an event of 26 in a stream of 27", 27, []string{agent}, true},
		{"by an event of 26 inside a commit of 27", 27, []string{facts(0, replace(agent, `,"meta":{"id":"evt_1"}`, ""))}, true},

		{"nothing happened", 27, nil, false},
		{"nothing opened", 27, numbered(3), false},
		{"another session", 27, []string{facts(0, replace(byCall, childSession, "wrun_3"))}, false},
		{"by another call", 27, []string{facts(0, replace(byCall, childCall, "call_2"))}, false},
		{"by a call that begins like it", 27, []string{facts(0, replace(byCall, childCall, "call_10"))}, false},
		{"by another task", 27, []string{facts(0, replace(task, "task_1", "task_2"), byTask)}, false},
		{"by a task that serves another call", 27, []string{facts(0, replace(task, "call_1", "call_2"), byTask)}, false},
		{"by a task that nothing started", 27, []string{facts(0, byTask)}, false},
		{"by no owner", 27, []string{facts(0, replace(byCall, `{"callId":"call_1"}`, `{}`)), facts(1, replace(byCall, `{"callId":"call_1"}`, `"call_1"`))}, false},
		{"by a task without a name", 27, []string{facts(0, replace(task, "task_1", ""), replace(byTask, "task_1", ""))}, false},
		{"the ids in one fact, the path in another", 27, []string{facts(0, replace(byCall, localPath, "")), facts(1, byCall)}, false},
		{"a preview", 27, []string{`{"progress":` + byCall + `}`}, false},
		{"a type that begins like it", 27, []string{facts(0, replace(byCall, "child.opened", "child.opened.later"))}, false},
		{"a line that cannot be read", 27, []string{byCall + "}"}, false},
		{"an event by another call", 26, []string{replace(agent, childCall, "call_2")}, false},
		{"an event of another session", 26, []string{replace(agent, childSession, "wrun_3")}, false},
		{"an event without a call", 26, []string{replace(agent, `"callId":"call_1",`, "")}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := family{parent: fakeeve.SessionSpec{Log: finished(tt.lines...), Version: tt.version}, child: fakeeve.SessionSpec{Log: finished(numbered(1)...)}}
				r := f.start(t)
				defer r.Close()
				res := r.Subscribe(t.Context(), asChild(), nil)
				if !tt.found {
					checkNotFound(t, r, res)
					return
				}
				if diff := cmp.Diff(join(pages(0, 1), "CAUGHT_UP 0 @1", "ENDED STREAM_CLOSED @1"), texts(res, 27)); diff != "" {
					t.Errorf("messages (-want +got), status %v:\n%s", res.Err, diff)
				}
				if diff := cmp.Diff([]string{"wrun_1 tail 0", "wrun_2 tail 0", "wrun_2 live 0"}, asked(r)); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// checkNotFound holds that a child was refused before Eve was asked for it, and exactly as an unknown session is.
func checkNotFound(t *testing.T, r *rig.Rig, res rig.Result) {
	t.Helper()
	if diff := cmp.Diff([]string{"wrun_1 tail 0"}, asked(r)); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	unknown := r.Subscribe(t.Context(), rig.FromStart("wrun_9"), nil)
	if diff := cmp.Diff(visible(unknown), visible(res)); diff != "" {
		t.Errorf("answer (-unknown session +refused child):\n%s", diff)
	}
	if got, want := statusOf(res.Err), "NOT_FOUND SESSION_NOT_FOUND"; got != want {
		t.Errorf("status %q, want %q", got, want)
	}
	checkStatus(t, "the refused child", res, false)
}

// visible is everything a caller can tell an answer by.
func visible(res rig.Result) map[string]any {
	return map[string]any{"error": fmt.Sprint(res.Err), "status": statusOf(res.Err), "header": res.Header, "trailer": res.Trailer, "messages": texts(res, 27)}
}

// A path in a stream is data: only the stream route of exactly this child, or its relay by exactly this parent, leads
// to a request, and that one is made of ids alone.
func TestChildPath(t *testing.T) {
	refused := []string{
		"", " ", "/", "stream", "eve/v1/session/wrun_2/stream",
		"http://eve.test" + localPath, "https://evil.test" + localPath, "//evil.test" + localPath, `\\evil.test` + localPath, `/\evil.test` + localPath,
		"http:" + localPath, "javascript:alert(1)", "/" + localPath, localPath + "/", localPath + "//", "/eve//v1/session/wrun_2/stream", "/eve/v1/session//wrun_2/stream",
		localPath + "?startIndex=0", localPath + "?", localPath + "#", localPath + "#x", localPath + ";x=1", localPath + "\n", localPath + "\x00", " " + localPath,
		"/eve/v1/session/../session/wrun_2/stream", "/eve/v1/../v1/session/wrun_2/stream", "/eve/v1/session/wrun_3/../wrun_2/stream",
		"/eve/v1/session/./wrun_2/stream", "/eve/v1/session/..;/wrun_2/stream", `/eve/v1\session/wrun_2/stream`, `/eve/v1/session\wrun_2/stream`,
		"/eve/v1/session/%2e%2e/session/wrun_2/stream", "/eve/v1/session/%2E%2E%2Fwrun_2/stream", "/eve/v1/session/wrun_2%2fstream", "/eve/v1/session/x%2f..%2fwrun_2/stream",
		"/eve/v1/session%2Fwrun_2/stream", "/eve/v1/session/%5cwrun_2/stream", "/eve/v1/session/wrun_2%00/stream", "/eve/v1/session/wrun_2%/stream", "/eve/v1/session/wrun_2%zz/stream",
		"/eve/v1/session/%77run_2%20/stream", "/eve/v1/session/%2577run_2/stream", "/eve/v1/session/wrun_2%3fx/stream", "/eve/v1/session/wrun_2%23/stream",
		"/eve/v1/session/wrun_1/stream", "/eve/v1/session/wrun_3/stream", "/eve/v1/session/wrun_20/stream", "/eve/v1/session/WRUN_2/stream", "/eve/v1/session/stream",
		"/eve/v2/session/wrun_2/stream", "/EVE/v1/session/wrun_2/stream", "/api/eve/v1/session/wrun_2/stream", "/eve/v1/session/wrun_2", "/eve/v1/session/wrun_2/cancel",
		"/eve/Scout/v1/session/wrun_2/stream", "/eve/-scout/v1/session/wrun_2/stream", "/eve/a/b/v1/session/wrun_2/stream", "/eve/../v1/session/wrun_2/stream", "/eve/%2e%2e/v1/session/wrun_2/stream",
		"/eve/v1/connections/x/callback/1/wrun_2/stream", "/eve/v1/info",
		"/eve/v1/session/wrun_3/subagents/call_1/wrun_2/stream", "/eve/v1/session/wrun_1/subagents/call_1/wrun_3/stream", "/eve/v1/session/wrun_2/subagents/call_1/wrun_1/stream",
		"/eve/v1/session/wrun_1/subagents//wrun_2/stream", "/eve/v1/session/wrun_1/subagents/../wrun_2/stream", "/eve/v1/session/wrun_1/subagents/%2e%2e/wrun_2/stream",
		"/eve/v1/session/wrun_1/subagents/a%2fb/wrun_2/stream", "/eve/v1/session/wrun_1/subagents/call_1/wrun_2/subagents/x/wrun_2/stream", remotePath + "?follow=1", "//" + remotePath,
		"/eve/v1/session/wrun_1/subagents/call_1/wrun_2%2fstream", "/eve/v1/session/wrun_1/children/call_1/wrun_2/stream",
	}
	for _, path := range refused {
		t.Run(fmt.Sprintf("refused %.60q", path), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := family{parent: fakeeve.SessionSpec{Log: finished(parentOf(path)...)}, child: fakeeve.SessionSpec{Log: finished(numbered(1)...)}, remote: true}
				r := f.start(t)
				defer r.Close()
				checkNotFound(t, r, r.Subscribe(t.Context(), asChild(), nil))
			})
		})
	}

	scout := func(base string) func(*gateway.Config) {
		return func(c *gateway.Config) { c.Agents[0].URL += base }
	}
	accepted := []struct {
		name, path, asked string
		eve               []fakeeve.Option
		config            func(*gateway.Config)
	}{
		{"plain", localPath, localPath, nil, nil},
		{"letters in escapes", "/eve/v1/session/%77run%5F2/stream", localPath, nil, nil},
		{"relayed", remotePath, remotePath, nil, nil},
		{"relayed by letters in escapes", "/eve/v1/session/wrun%5f1/subagents/%63all_1/wrun_2/stream", remotePath, nil, nil},
		{
			"mounted, as its agent is", "/eve/scout/v1/session/wrun_2/stream", "/eve/scout/v1/session/wrun_2/stream",
			[]fakeeve.Option{fakeeve.WithBase("/eve/scout/v1")}, scout("/eve/scout"),
		},
		{
			"the agent is mounted and does not know it", localPath, "/eve/scout/v1/session/wrun_2/stream",
			[]fakeeve.Option{fakeeve.WithBase("/eve/scout/v1")}, scout("/eve/scout/v1"),
		},
		{
			"relayed by a mounted agent", "/eve/scout/v1/session/wrun_1/subagents/call_1/wrun_2/stream", "/eve/scout/v1/session/wrun_1/subagents/call_1/wrun_2/stream",
			[]fakeeve.Option{fakeeve.WithBase("/eve/scout/v1")}, scout("/eve/scout"),
		},
		{"behind a prefix", localPath, "/desk/eve/v1/session/wrun_2/stream", []fakeeve.Option{fakeeve.WithBase("/desk/eve/v1")}, scout("/desk")},
	}
	for _, tt := range accepted {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := family{
					parent: fakeeve.SessionSpec{Log: finished(parentOf(tt.path)...)}, child: fakeeve.SessionSpec{Log: finished(numbered(1)...)},
					remote: true, eve: tt.eve, config: tt.config,
				}
				r := f.start(t)
				defer r.Close()
				res := r.Subscribe(t.Context(), rig.UntilTail(asChild()), nil)
				if diff := cmp.Diff(join(pages(0, 1), "CAUGHT_UP 0 @1", "ENDED BOUND_REACHED @1"), texts(res, 27)); diff != "" {
					t.Fatalf("messages (-want +got), status %v:\n%s", res.Err, diff)
				}
				requests := r.Eve.Requests()
				if got := requests[len(requests)-1].Path; len(requests) != 2 || got != tt.asked {
					t.Errorf("%d requests, the last for %s, want %s", len(requests), got, tt.asked)
				}
			})
		})
	}
	t.Run("mounted elsewhere on the host", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := family{parent: fakeeve.SessionSpec{Log: finished(parentOf("/eve/scout/v1/session/wrun_2/stream")...)}, child: fakeeve.SessionSpec{Log: finished(numbered(1)...)}}
			r := f.start(t)
			defer r.Close()
			res := r.Subscribe(t.Context(), asChild(), nil)
			if got, want := statusOf(res.Err), "NOT_FOUND SESSION_NOT_FOUND"; got != want { // this Eve has no such mount
				t.Errorf("status %q, want %q", got, want)
			}
			if got := r.Eve.Requests()[1].Path; got != "/eve/scout/v1/session/wrun_2/stream" {
				t.Errorf("asked %s", got)
			}
		})
	})
}

// numberedTokens is a header source that never gives the same token twice.
type numberedTokens struct{ n atomic.Int64 }

func (k *numberedTokens) Headers(context.Context, bool) (http.Header, error) {
	return http.Header{"Authorization": {fmt.Sprintf("Bearer token-%d", k.n.Add(1))}}, nil
}

// Every connection, the one to the parent and each of the child's, lease renewals and retries included, carries
// credentials that were resolved for it; a child that runs elsewhere is always asked for through its parent's relay.
func TestChildCredentials(t *testing.T) {
	for _, path := range []string{localPath, remotePath} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := fakeeve.NewMemLog(numbered(2)...)
				f := family{
					parent: fakeeve.SessionSpec{Log: fakeeve.NewMemLog(parentOf(path)...)}, child: fakeeve.SessionSpec{Log: live}, remote: path == remotePath,
					config: func(c *gateway.Config) { c.Agents[0].Headers = &numberedTokens{} },
				}
				r := f.start(t)
				defer r.Close()
				r.Eve.Script(childSession, fakeeve.Faults(fakeeve.Fault{CutAt: fakeeve.AtLine(1, 1), Cut: fakeeve.Abort}, answer(502)))
				time.AfterFunc(150*time.Second, func() { live.Append(facts(2, sessionEnded())); live.End() })
				res := r.Subscribe(patient(t), asChild(), nil)
				want := join(pages(0, 2), "CAUGHT_UP 1 @2", "fact 2.0 session.ended @3 ended", "ENDED SESSION_ENDED @3 ended")
				if diff := cmp.Diff(want, texts(res, 27)); diff != "" {
					t.Errorf("messages (-want +got), status %v:\n%s", res.Err, diff)
				}
				seen := map[string]bool{}
				for i, q := range r.Eve.Requests() {
					token := q.Header.Get("Authorization")
					if seen[token] {
						t.Errorf("request %d: %s is used a second time", i, token)
					}
					seen[token] = true
					if i > 0 && q.Path != path {
						t.Errorf("request %d: asked %s, want %s", i, q.Path, path)
					}
				}
				if len(seen) < 6 { // the parent, four after what went wrong, and two leases' renewals
					t.Errorf("%d requests: %v", len(seen), asked(r))
				}
			})
		})
	}
}

// A request for a child that cannot be meant, or that its cursor contradicts, is refused with the field before Eve is
// asked anything. A child that only the cursor names is looked at no less.
func TestChildInvalid(t *testing.T) {
	named := func(parent, call string) *evev1.SubscribeRequest {
		return &evev1.SubscribeRequest{SessionId: childSession, Child: &evev1.ChildStream{ParentSessionId: parent, CallId: call}}
	}
	at := func(line uint64, slot uint32, child *evev1.ChildStream) *evev1.SubscribeRequest {
		c := rig.At(childSession, 27, line)
		c.StreamEventIndex, c.Child = slot, child
		return rig.From(c)
	}
	both := func(req *evev1.SubscribeRequest, parent, call string) *evev1.SubscribeRequest {
		req.Child = &evev1.ChildStream{ParentSessionId: parent, CallId: call}
		return req
	}
	mine := &evev1.ChildStream{ParentSessionId: session, CallId: childCall}
	const request, cursor = "INVALID_ARGUMENT REQUEST_INVALID field=", "INVALID_ARGUMENT CURSOR_INVALID field=cursor."
	tests := []struct {
		name string
		req  *evev1.SubscribeRequest
		want string
	}{
		{"nothing named", named("", ""), request + "child.parent_session_id"},
		{"no parent", named("", childCall), request + "child.parent_session_id"},
		{"no call", named(session, ""), request + "child.call_id"},
		{"parent that leaves its place", named("..", childCall), request + "child.parent_session_id"},
		{"parent that is a path", named("wrun_1/stream", childCall), request + "child.parent_session_id"},
		{"parent in escapes", named("%2e%2e", childCall), request + "child.parent_session_id"},
		{"call that is a path", named(session, "a/b"), request + "child.call_id"},
		{"call with a query", named(session, "a?b"), request + "child.call_id"},
		{"child without a session", &evev1.SubscribeRequest{Child: mine}, request + "session_id"},
		{"cursor: no call", at(1, 0, &evev1.ChildStream{ParentSessionId: session}), cursor + "child.call_id"},
		{"cursor: parent that leaves its place", at(1, 0, &evev1.ChildStream{ParentSessionId: "..", CallId: childCall}), cursor + "child.parent_session_id"},
		{"cursor: parent that is a path", at(1, 0, &evev1.ChildStream{ParentSessionId: "wrun_1/../wrun_3", CallId: childCall}), cursor + "child.parent_session_id"},
		{"cursor: call that is a path", at(1, 0, &evev1.ChildStream{ParentSessionId: session, CallId: "a/b"}), cursor + "child.call_id"},
		{"another call than the cursor's", both(at(1, 0, mine), session, "call_2"), cursor + "child"},
		{"another parent than the cursor's", both(at(1, 0, mine), "wrun_3", childCall), cursor + "child"},
		{"another than the cursor's, at its beginning", both(at(0, 0, mine), session, "call_2"), cursor + "child"},
		{"a cursor of no child", both(at(1, 0, nil), session, childCall), cursor + "child"},
		{"a cursor of no child, inside its first line", both(at(0, 1, nil), session, childCall), cursor + "child"},
		{"another session than the cursor's", func() *evev1.SubscribeRequest { q := at(1, 0, mine); q.SessionId = "wrun_3"; return q }(), cursor + "session_id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := family{parent: fakeeve.SessionSpec{Log: finished(parentOf(localPath)...)}, child: fakeeve.SessionSpec{Log: finished(numbered(3)...)}}
				r := f.start(t)
				defer r.Close()
				res := r.Subscribe(t.Context(), tt.req, nil)
				if got := statusOf(res.Err); got != tt.want {
					t.Errorf("status %q (%v), want %q", got, res.Err, tt.want)
				}
				checkStatus(t, tt.name, res, false)
				if got := asked(r); len(got) > 0 {
					t.Errorf("asked %v", got)
				}
			})
		})
	}
}

// The state of the parent, and what else can become of a child.
func TestChildStates(t *testing.T) {
	tests := []struct {
		name   string
		change func(*rig.Rig) *evev1.SubscribeRequest
		want   []string
		status string
	}{
		{name: "the parent is unknown", change: func(r *rig.Rig) *evev1.SubscribeRequest {
			r.Eve.RemoveSession(session)
			return asChild()
		}, status: "NOT_FOUND SESSION_NOT_FOUND"},
		{name: "the parent has expired", change: func(r *rig.Rig) *evev1.SubscribeRequest {
			r.Eve.Session(session).Expire()
			return asChild()
		}, status: "OUT_OF_RANGE HISTORY_EXPIRED code=session_expired status=410"},
		{name: "the parent was purged", change: func(r *rig.Rig) *evev1.SubscribeRequest {
			r.Eve.Session(session).MemLog().Purge()
			return asChild()
		}, status: "NOT_FOUND SESSION_NOT_FOUND"},
		{name: "the parent is stranded: its history tells all the same", change: func(r *rig.Rig) *evev1.SubscribeRequest {
			r.Eve.Session(session).Update(func(s *fakeeve.SessionSpec) { s.Stranded = "0.79.0" })
			return asChild()
		}, want: join(pages(0, 3), "CAUGHT_UP 2 @3", "ENDED STREAM_CLOSED @3"), status: "OK"},
		{name: "the parent has lines over the limit", change: func(r *rig.Rig) *evev1.SubscribeRequest {
			r.Eve.Session(session).MemLog().Replace(0, commit(0, strings.Repeat("x", 2000)))
			return asChild()
		}, want: join(pages(0, 3), "CAUGHT_UP 2 @3", "ENDED STREAM_CLOSED @3"), status: "OK"},
		{name: "the parent is cut, and read on", change: func(r *rig.Rig) *evev1.SubscribeRequest {
			r.Eve.Script(session, fakeeve.Faults(fakeeve.Fault{CutAt: fakeeve.AtLine(1, 20), Cut: fakeeve.Abort}, answer(503)))
			return asChild()
		}, want: join(pages(0, 3), "CAUGHT_UP 2 @3", "ENDED STREAM_CLOSED @3"), status: "OK"},
		{name: "the child is unknown", change: func(r *rig.Rig) *evev1.SubscribeRequest {
			r.Eve.RemoveSession(childSession)
			return asChild()
		}, status: "NOT_FOUND SESSION_NOT_FOUND"},
		{name: "the child's history is another than its cursor's", change: func(*rig.Rig) *evev1.SubscribeRequest {
			c := rig.At(childSession, 27, 2)
			c.Anchor, c.Child = "1cAAAAAAAAAAAAAAAA", asChild().GetChild()
			return rig.From(c)
		}, status: "FAILED_PRECONDITION CURSOR_DIVERGED line=1"},
		{name: "from the child's tail", change: func(*rig.Rig) *evev1.SubscribeRequest {
			req := asChild()
			atTail(req)
			return req
		}, want: []string{"POSITIONED @3", "CAUGHT_UP 2 @3", "ENDED STREAM_CLOSED @3"}, status: "OK"},
		{name: "until something in the child, settled before", change: func(r *rig.Rig) *evev1.SubscribeRequest {
			r.Eve.Session(childSession).MemLog().Replace(1, facts(1, settled("d1", "handled")))
			req := asChild()
			req.Until = untilDelivery("d1")(nil).GetUntil()
			atTail(req)
			return req
		}, want: []string{"POSITIONED @3", "CAUGHT_UP 2 @3", "ENDED BOUND_REACHED @3"}, status: "OK"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := family{
					parent: fakeeve.SessionSpec{Log: finished(parentOf(localPath)...)}, child: fakeeve.SessionSpec{Log: finished(numbered(3)...)},
					config: func(c *gateway.Config) { c.MaxLineBytes = 1 << 10 },
				}
				r := f.start(t)
				defer r.Close()
				res := r.Subscribe(patient(t), tt.change(r), nil)
				if got := statusOf(res.Err); got != tt.status {
					t.Errorf("status %q (%v), want %q", got, res.Err, tt.status)
				}
				checkStatus(t, tt.name, res, false)
				if diff := cmp.Diff(tt.want, texts(res, 27)); diff != "" {
					t.Errorf("messages (-want +got):\n%s", diff)
				}
			})
		})
	}
	t.Run("ended: nobody is asked", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := family{parent: fakeeve.SessionSpec{Log: finished(parentOf(localPath)...)}, child: fakeeve.SessionSpec{Log: finished(facts(0, sessionEnded()))}}
			r := f.start(t)
			defer r.Close()
			end := r.Subscribe(t.Context(), asChild(), nil).Last().GetCursor()
			before := len(r.Eve.Requests())
			res := r.Subscribe(t.Context(), rig.From(end), nil)
			if diff := cmp.Diff([]string{"ENDED SESSION_ENDED @1 ended"}, texts(res, 27)); diff != "" || len(r.Eve.Requests()) != before {
				t.Errorf("asked %v, messages (-want +got):\n%s", asked(r)[before:], diff)
			}
		})
	})
}
