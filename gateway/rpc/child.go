package rpc

import (
	"context"
	"errors"
	"io"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/cursor"
	"github.com/evegateway/evegateway/gateway/source"
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
	search := childSearch{child: child, session: session, calls: map[text]map[text]bool{}}
	for {
		step, err := parent.Next()
		if errors.Is(err, io.EOF) {
			return nil, hidden("the parent has opened no such child")
		}
		if err != nil {
			return nil, err
		}
		if step.Kind != source.StepLine {
			continue
		}
		if path, opened := search.line(step.Line); opened {
			via, ok := source.ChildVia(path, child.ParentSessionID, session)
			if !ok {
				return nil, hidden("the parent names a stream that is not the child's")
			}
			return via, nil
		}
	}
}

// hidden refuses a child; it is answered as an unknown session is.
func hidden(cause string) error {
	return auth.Refuse(auth.Hidden, "no such child", errors.New(cause))
}

// childSearch looks for the opening of one child.
type childSearch struct {
	child   cursor.Child
	session string
	calls   map[text]map[text]bool // task to the calls it serves
}

// childData are the members of payloads that matter here: those of child.opened, of what says which calls a task
// serves, and of agent.started of the versions up to 26.
type childData struct {
	SessionID  text               `json:"sessionId"`
	CallID     text               `json:"callId"`
	TaskID     text               `json:"taskId"`
	Owner      object[childOwner] `json:"owner"`
	StartedBy  object[childOwner] `json:"startedBy"`
	Stream     text               `json:"stream"`
	StreamPath text               `json:"streamPath"`
}

type childOwner struct {
	CallID text `json:"callId"`
	TaskID text `json:"taskId"`
}

// line returns the path to the child if the line opens it.
func (s *childSearch) line(l *source.Line) (path string, opened bool) {
	if l.Kind == source.Progress { // a preview opens nothing
		return "", false
	}
	for i := range l.Records {
		switch r := &l.Records[i]; r.Type {
		case "task.started":
			d := readPayload[childData](r.Data)
			s.serves(d.TaskID, d.StartedBy.members.CallID)
		case "call.started":
			d := readPayload[childData](r.Data)
			s.serves(d.TaskID, d.CallID)
		case "child.opened":
			d := readPayload[childData](r.Data)
			if owner := d.Owner.members; s.is(d.SessionID, owner.CallID) || s.is(d.SessionID, s.servedBy(owner.TaskID)) {
				return string(d.Stream), true
			}
		case "agent.started":
			if d := readPayload[childData](r.Data); s.is(d.SessionID, d.CallID) {
				return string(d.StreamPath), true
			}
		}
	}
	return "", false
}

func (s *childSearch) is(session, call text) bool {
	return string(session) == s.session && string(call) == s.child.CallID
}

func (s *childSearch) serves(task, call text) {
	if s.calls[task] == nil {
		s.calls[task] = map[text]bool{}
	}
	s.calls[task][call] = true
}

// servedBy is the call that is searched for if the task serves it.
func (s *childSearch) servedBy(task text) text {
	if call := text(s.child.CallID); task != "" && s.calls[task][call] {
		return call
	}
	return ""
}
