package rpc

import (
	"time"

	"github.com/evegateway/evegateway/cursor"
	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/gateway/translate"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// Limits bound what a request can ask for.
type Limits struct {
	// HeartbeatDefault is the heartbeat interval of requests that name none; HeartbeatMin and HeartbeatMax clamp it.
	HeartbeatDefault, HeartbeatMin, HeartbeatMax time.Duration
}

const (
	defaultMessageBytes = 4 << 20
	minMessageBytes     = 4 << 10
)

// plan is a validated SubscribeRequest.
type plan struct {
	agent    string
	cursor   cursor.Cursor // where to start, names resolved
	relative bool
	last     uint32
	tail     bool      // until.tail
	until    *boundary // until.delivery_id and until.turn_end
	filter   filter
	skip     bool // oversize lines
	form     translate.Form
	beat     time.Duration
	maxBytes int
}

// planOf validates a request. resolve turns the agent's name, perhaps empty, into a configured one.
func planOf(req *evev1.SubscribeRequest, limits Limits, resolve func(name string) (string, error)) (*plan, error) {
	p := &plan{form: translate.FormOf(req.GetPayload()), maxBytes: defaultMessageBytes, beat: limits.HeartbeatDefault}
	if err := p.options(req, limits); err != nil {
		return nil, err
	}
	if err := p.start(req, resolve); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *plan) options(req *evev1.SubscribeRequest, limits Limits) error {
	if err := p.bound(req.GetUntil()); err != nil {
		return err
	}
	var err error
	if p.filter, err = newFilter(req.GetFilter()); err != nil {
		return err
	}
	if n := req.GetMaxMessageBytes(); n != 0 {
		if n < minMessageBytes {
			return invalid("max_message_bytes", "is %d, want at least %d", n, minMessageBytes)
		}
		p.maxBytes = int(min(n, 1<<30))
	}
	if d := req.GetHeartbeatInterval(); d != nil {
		if err := d.CheckValid(); err != nil || d.AsDuration() <= 0 {
			return invalid("heartbeat_interval", "want a positive duration")
		}
		p.beat = min(max(d.AsDuration(), limits.HeartbeatMin), limits.HeartbeatMax)
	}
	switch v := req.GetOnOversizeLine(); v {
	case evev1.OnOversizeLine_ON_OVERSIZE_LINE_UNSPECIFIED, evev1.OnOversizeLine_ON_OVERSIZE_LINE_FAIL:
	case evev1.OnOversizeLine_ON_OVERSIZE_LINE_SKIP:
		p.skip = true
	default:
		return invalid("on_oversize_line", "unknown value %d", v)
	}
	if v := req.GetPayload(); v < 0 || v > evev1.Payload_PAYLOAD_NONE {
		return invalid("payload", "unknown value %d", v)
	}
	return nil
}

func (p *plan) bound(u *evev1.Until) error {
	switch b := u.GetBound().(type) {
	case *evev1.Until_Tail_:
		p.tail = true
	case *evev1.Until_DeliveryId:
		if b.DeliveryId == "" || len(b.DeliveryId) > cursor.MaxName {
			return invalid("until.delivery_id", "want an id of 1 to %d bytes", cursor.MaxName)
		}
		p.until = &boundary{delivery: b.DeliveryId}
	case *evev1.Until_TurnEnd_:
		p.until = &boundary{}
	default:
		if u != nil {
			return invalid("until", "names no bound; leave it unset to follow the session")
		}
	}
	return nil
}

// start resolves names and the starting position.
func (p *plan) start(req *evev1.SubscribeRequest, resolve func(string) (string, error)) error {
	agent, session := req.GetAgent(), req.GetSessionId()
	switch s := req.GetStart().(type) {
	case *evev1.SubscribeRequest_Cursor:
		c, err := cursor.FromProto(s.Cursor)
		if err != nil {
			return toError(err)
		}
		if agent != "" && c.Agent != "" && agent != c.Agent {
			return invalidCursor("cursor.agent", "is another one than the request's agent")
		}
		if session != "" && c.SessionID != "" && session != c.SessionID {
			return invalidCursor("cursor.session_id", "is another one than the request's session_id")
		}
		if agent == "" {
			agent = c.Agent
		}
		if session == "" {
			session = c.SessionID
		}
		p.cursor = c
	case *evev1.SubscribeRequest_Position:
		switch s.Position {
		case evev1.Position_POSITION_UNSPECIFIED:
		case evev1.Position_POSITION_TAIL:
			p.relative = true
		default:
			return invalid("position", "unknown value %d", s.Position)
		}
	case *evev1.SubscribeRequest_LastLines:
		if s.LastLines == 0 || s.LastLines > 1<<31-1 {
			return invalid("last_lines", "is %d, want 1 to %d; for none, use POSITION_TAIL", s.LastLines, 1<<31-1)
		}
		p.relative, p.last = true, s.LastLines
	}
	if err := p.child(req); err != nil {
		return err
	}
	if session == "" {
		return invalid("session_id", "is missing")
	}
	if !source.ValidID(session) {
		if req.GetSessionId() == "" {
			return invalidCursor("cursor.session_id", "is no session id")
		}
		return invalid("session_id", "is no session id")
	}
	name, err := resolve(agent)
	if err != nil {
		if req.GetAgent() == "" && agent != "" {
			return invalidCursor("cursor.agent", "is no agent of this gateway")
		}
		return err
	}
	p.agent, p.cursor.Agent, p.cursor.SessionID = name, name, session
	return nil
}

// child takes the child from the request, where it must agree with the cursor's, or from the cursor.
func (p *plan) child(req *evev1.SubscribeRequest) error {
	child, field, refuse := p.cursor.Child, "cursor.child", invalidCursor
	if req.GetChild() != nil {
		child = cursor.Child{ParentSessionID: req.GetChild().GetParentSessionId(), CallID: req.GetChild().GetCallId()}
		field, refuse = "child", invalid
	} else if child.IsZero() {
		return nil
	}
	if !source.ValidID(child.ParentSessionID) {
		return refuse(field+".parent_session_id", "is no session id")
	}
	if !source.ValidID(child.CallID) {
		return refuse(field+".call_id", "is no call id")
	}
	if _, begun := p.cursor.LastLine(); p.cursor.Child != child && (begun || !p.cursor.Child.IsZero()) {
		return invalidCursor("cursor.child", "is another one than the request's child")
	}
	p.cursor.Child = child
	return nil
}

// rights is the session whose readers may read this one: a child is its parent's.
func (p *plan) rights() string {
	if !p.cursor.Child.IsZero() {
		return p.cursor.Child.ParentSessionID
	}
	return p.cursor.SessionID
}

// request is what to ask the session's log for.
func (p *plan) request() source.Request {
	c := p.cursor
	return source.Request{
		Session:      c.SessionID,
		Relative:     p.relative,
		Last:         p.last,
		Bounded:      p.tail,
		SkipOversize: p.skip,
		Start: source.Place{
			Line: c.StreamIndex, Begun: c.StreamEventIndex > 0, Anchor: c.Anchor, Version: c.StreamVersion,
		},
	}
}
