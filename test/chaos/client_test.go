package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/guarantee"
	"github.com/evegateway/evegateway/internal/rig"
)

// client is one reader of a session. It reads through an agent of its own name, so that its connections can be told
// from those of others at the server.
type client struct {
	name    string
	session *stored
	faults  *faults
	conns   int

	calls   []guarantee.Call
	running *call         // nil: none
	at      *evev1.Cursor // of the last message handled; nil: none
}

// call is a Subscribe call that goes on.
type call struct {
	request   *evev1.SubscribeRequest
	began     int64 // tail of the session
	forged    bool
	rewritten bool // the session was, since
	calm      bool // nothing went wrong any more when it was made
	detour    bool // what comes is not handled: the client goes on elsewhere
	cancel    context.CancelFunc
	done      chan struct{}

	mu       sync.Mutex
	allowed  int // messages to take, -1 all
	more     chan struct{}
	messages []*evev1.SubscribeResponse
	err      error

	held int64 // see guarantee.Call
}

// begin makes a call.
func (c *client) begin(r *rig.Rig, req *evev1.SubscribeRequest, allowed int) *call {
	ctx, cancel := context.WithCancel(context.Background())
	k := &call{
		request: req, began: int64(c.session.n) - 1, cancel: cancel, done: make(chan struct{}), allowed: allowed,
		more: make(chan struct{}, 1),
	}
	c.running = k
	go func() {
		defer close(k.done)
		k.read(ctx, r.Client)
	}()
	return k
}

func (k *call) read(ctx context.Context, service evev1.StreamServiceClient) {
	stream, err := service.Subscribe(ctx, k.request)
	for err == nil {
		if !k.wait(ctx) {
			err = ctx.Err()
			break
		}
		var m *evev1.SubscribeResponse
		if m, err = stream.Recv(); err == nil {
			k.mu.Lock()
			k.messages = append(k.messages, m)
			k.mu.Unlock()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !errors.Is(err, io.EOF) {
		k.err = err
	}
}

// wait waits until one more message may be taken.
func (k *call) wait(ctx context.Context) bool {
	for {
		k.mu.Lock()
		allowed := k.allowed
		if allowed > 0 {
			k.allowed--
		}
		k.mu.Unlock()
		if allowed != 0 {
			return true
		}
		select {
		case <-k.more:
		case <-ctx.Done():
			return false
		}
	}
}

// allow lets n more messages be taken, -1 all, 0 none.
func (k *call) allow(n int) {
	k.mu.Lock()
	if k.allowed = n; n > 0 {
		k.allowed = n
	}
	k.mu.Unlock()
	select {
	case k.more <- struct{}{}:
	default:
	}
}

// over tells whether the call has ended.
func (k *call) over() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// end takes the call for over: left by the client, or ended by itself. handled is how many of its messages the client
// has handled, -1 all.
func (c *client) end(handled int) guarantee.Call {
	k := c.running
	left := !k.over()
	k.cancel()
	<-k.done
	c.running = nil
	done := guarantee.Call{
		Request: k.request, Messages: k.messages, Err: k.err, Left: left, Tail: k.began, Known: !k.rewritten, Forged: k.forged, Held: k.held,
	}
	c.calls = append(c.calls, done)
	if handled < 0 {
		handled = len(k.messages)
	}
	if handled > 0 && !k.detour {
		c.at = k.messages[handled-1].GetCursor()
	}
	return done
}

// resume is a request for what follows the last message handled, and nothing else.
func (c *client) resume() *evev1.SubscribeRequest {
	req := rig.FromStart(c.session.id)
	if c.at != nil {
		req = rig.From(c.at)
	}
	req.Agent = c.name
	return req
}

// ask draws a request. forged and detour are as in call.
func (c *client) ask(rnd *rand.Rand) (req *evev1.SubscribeRequest, forged, detour bool) {
	req = c.resume()
	switch d := rnd.IntN(100); {
	case d < 4 && c.at.GetAnchor() != "" && !c.at.GetSessionEnded() && !c.session.crossed && !c.session.skips:
		req = rig.From(forge(c.at))
		req.Agent, forged, detour = c.name, true, true
	case d < 8 && !c.session.behind && !c.session.late:
		detour = true
		req.Start = &evev1.SubscribeRequest_Position{Position: evev1.Position_POSITION_TAIL}
		if rnd.IntN(2) == 0 {
			req.Start = &evev1.SubscribeRequest_LastLines{LastLines: uint32(1 + rnd.IntN(20))}
		}
		req.SessionId = c.session.id
	}
	req.Filter = pick(rnd, nil, nil, nil, nil,
		&evev1.Filter{ExcludeProgress: true},
		&evev1.Filter{ExcludeTypes: []string{"turn.*", "message.*"}},
		&evev1.Filter{IncludeTypes: []string{"turn.*"}},
		&evev1.Filter{IncludeTypes: []string{"x.*", "turn.settled"}, ExcludeTypes: []string{"x.last"}},
		&evev1.Filter{IncludeTypes: []string{"session.*"}},
		&evev1.Filter{IncludeTypes: []string{"nothing.here"}})
	switch rnd.IntN(5) {
	case 0:
		req = rig.UntilTail(req)
	case 1:
		req.Until = &evev1.Until{Bound: &evev1.Until_TurnEnd_{TurnEnd: &evev1.Until_TurnEnd{}}}
	}
	req.Payload = evev1.Payload(rnd.IntN(5))
	if c.session.late && req.GetPayload() == evev1.Payload_PAYLOAD_NONE {
		req.Payload = evev1.Payload_PAYLOAD_RAW // what is late is recognised by what it says
	}
	req.OnOversizeLine = pick(rnd, evev1.OnOversizeLine_ON_OVERSIZE_LINE_FAIL, evev1.OnOversizeLine_ON_OVERSIZE_LINE_SKIP)
	if rnd.IntN(3) == 0 {
		req.HeartbeatInterval = durationpb.New(pick(rnd, time.Second, 7*time.Second, time.Minute))
	}
	if rnd.IntN(4) == 0 {
		req.MaxMessageBytes = 4096
	}
	return req, forged, detour
}

// forge gives a cursor the anchor of a line that does not exist.
func forge(c *evev1.Cursor) *evev1.Cursor {
	f := proto.CloneOf(c)
	b := []byte(f.GetAnchor())
	for i := 2; i < len(b); i++ { // behind the scheme and the kind
		switch b[i] {
		case 'A':
			b[i] = 'B'
		case '.':
		default:
			b[i] = 'A'
		}
	}
	f.Anchor = string(b)
	return f
}

func requestText(req *evev1.SubscribeRequest) string {
	text := "from the beginning"
	switch s := req.GetStart().(type) {
	case *evev1.SubscribeRequest_Cursor:
		text = fmt.Sprintf("from %d.%d", s.Cursor.GetStreamIndex(), s.Cursor.GetStreamEventIndex())
		if s.Cursor.GetSessionEnded() {
			text += " behind the end"
		}
	case *evev1.SubscribeRequest_Position:
		text = "from the tail"
	case *evev1.SubscribeRequest_LastLines:
		text = fmt.Sprintf("last %d lines", s.LastLines)
	}
	rest := proto.CloneOf(req)
	rest.Start = nil
	return fmt.Sprintf("%s %v", text, rest)
}
