package rpc

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/evegateway/evegateway/cursor"
	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/gateway/translate"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// findChild reads the parent's stream until it finds where the child was opened, and returns the route to the child.
// The right to read a child is the right to read the parent whose stream really opened it; Eve itself checks nothing
// for local children.
func findChild(ctx context.Context, log Log, child cursor.Child, session string) (*source.Via, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parent, err := log.Open(ctx, source.Request{Session: child.ParentSessionID, Bounded: true, SkipOversize: true})
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	search := childSearch{child: child, session: session, calls: map[string]map[string]bool{}}
	for {
		step, err := parent.Next()
		if errors.Is(err, io.EOF) {
			return nil, noSession("the parent has opened no such child")
		}
		if err != nil {
			return nil, err
		}
		if step.Kind != source.StepLine {
			continue
		}
		if opened := search.line(step.Line); opened != nil {
			via, ok := source.ChildVia(opened.GetStreamPath(), child.ParentSessionID, session)
			if !ok {
				return nil, noSession("the parent names a stream that is not the child's")
			}
			return via, nil
		}
	}
}

func noSession(cause string) *Error {
	return &Error{Code: codes.NotFound, Reason: evev1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND,
		Message: "no such session", Err: errors.New(cause)}
}

// childSearch looks for the opening of one child.
type childSearch struct {
	child   cursor.Child
	session string
	calls   map[string]map[string]bool // task to the calls it serves
}

// line returns the opening of the child if the line has it.
func (s *childSearch) line(l *source.Line) *evev1.ChildOpened {
	for slot := range l.Records {
		r := &l.Records[slot]
		switch r.Type {
		case "task.started", "call.started", "child.opened":
			if l.Kind != source.Commit {
				continue
			}
			var m evev1.SubscribeResponse
			translate.Item(&m, l, slot, false, time.Time{}, translate.Form{Typed: true})
			if o := s.fact(m.GetFact()); o != nil {
				return o
			}
		case "agent.started":
			if o := s.event(r.Data); o != nil {
				return o
			}
		}
	}
	return nil
}

func (s *childSearch) fact(f *evev1.Fact) *evev1.ChildOpened {
	switch d := f.GetData().(type) {
	case *evev1.Fact_TaskStarted:
		s.serves(d.TaskStarted.GetTaskId(), d.TaskStarted.GetStartedByCallId())
	case *evev1.Fact_CallStarted:
		s.serves(d.CallStarted.GetTaskId(), d.CallStarted.GetCallId())
	case *evev1.Fact_ChildOpened:
		o := d.ChildOpened
		owner := o.GetOwner()
		if o.GetSessionId() == s.session && (owner.GetCallId() == s.child.CallID || s.calls[owner.GetTaskId()][s.child.CallID]) {
			return o
		}
	}
	return nil
}

func (s *childSearch) serves(task, call string) {
	if task == "" {
		return
	}
	if s.calls[task] == nil {
		s.calls[task] = map[string]bool{}
	}
	s.calls[task][call] = true
}

// event reads agent.started of the versions up to 26.
func (s *childSearch) event(data []byte) *evev1.ChildOpened {
	var d struct {
		CallID     string `json:"callId"`
		SessionID  string `json:"sessionId"`
		StreamPath string `json:"streamPath"`
	}
	// A record of another shape opens nothing.
	if json.Unmarshal(data, &d, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return nil
	}
	if d.CallID != s.child.CallID || d.SessionID != s.session {
		return nil
	}
	return &evev1.ChildOpened{SessionId: d.SessionID, StreamPath: d.StreamPath}
}
