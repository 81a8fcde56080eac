package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/evegateway/evegateway/auth/egress"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/guarantee"
)

// verifyCommand reads a session through a gateway in pieces, and straight from its agent, and compares.
type verifyCommand struct {
	Session       string `arg:"" help:"The session's id."`
	Server        string `default:"127.0.0.1:7443" placeholder:"ADDRESS" help:"Address of the gateway, default ${default}."`
	Agent         string `placeholder:"NAME" help:"The agent, where the gateway has several."`
	EveURL        string `name:"eve-url" required:"" placeholder:"URL" help:"Base URL of the agent, to read the session without the gateway."`
	EveBearerFile string `placeholder:"FILE" help:"File with the bearer token for the agent, read for every request."`
	Rounds        int    `default:"3" placeholder:"N" help:"How often to read the session through the gateway, each time in other pieces; default ${default}."`
	Seed          uint64 `placeholder:"N" help:"Where to stop and resume; by default another each time, which is printed."`
}

// Run implements the command.
func (c *verifyCommand) Run(ctx context.Context, p *process) error {
	if c.Rounds < 1 {
		return usagef("--rounds is %d, want at least 1", c.Rounds)
	}
	eve, err := c.eve()
	if err != nil {
		return err
	}
	conn, err := dial(c.Server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if c.Seed == 0 {
		c.Seed = rand.Uint64() //nolint:gosec // where to stop is no secret
	}
	fmt.Fprintf(p.stdout, "session %s, seed %d\n", c.Session, c.Seed)
	v := &verification{
		client: evev1.NewStreamServiceClient(conn), eve: eve, session: c.Session, agent: c.Agent, found: map[error][]string{},
		rnd: rand.New(rand.NewPCG(c.Seed, 0)), //nolint:gosec // the same again for the same seed
	}
	if err := v.run(ctx, c.Rounds); err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	return v.report(p.stdout)
}

// eve is the agent, to be read without the gateway.
func (c *verifyCommand) eve() (*guarantee.Server, error) {
	s := &guarantee.Server{URL: c.EveURL}
	if c.EveBearerFile == "" {
		return s, nil
	}
	bearer, err := egress.New(egress.Config{Bearer: egress.File(c.EveBearerFile)})
	if err != nil {
		return nil, fmt.Errorf("--eve-bearer-file: %w", err)
	}
	s.Headers = func(ctx context.Context) (http.Header, error) { return bearer.Headers(ctx, false) }
	return s, nil
}

// verification is a run of the command.
type verification struct {
	client  evev1.StreamServiceClient
	eve     *guarantee.Server
	session string
	agent   string // empty until a cursor names it
	rnd     *rand.Rand

	direct          guarantee.Direct // what was read without the gateway
	calls, messages int
	found           map[error][]string // violations, by guarantee
}

// run reads, each round first through the gateway, up to the tail at that time, and then straight what is new: so
// whatever came through the gateway is in what was read straight.
func (v *verification) run(ctx context.Context, rounds int) error {
	for n := range rounds {
		tail, err := v.eve.Tail(ctx, v.session)
		if err != nil {
			return err
		}
		calls, err := v.round(ctx, n, tail)
		if err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
		if err := v.eve.Read(ctx, v.session, &v.direct); err != nil {
			return err
		}
		v.judge(n, calls)
	}
	return nil
}

// judge compares what came in a round with what is stored.
func (v *verification) judge(n int, calls []guarantee.Call) {
	s := guarantee.Session{Agent: v.agent, ID: v.session, Histories: []guarantee.Log{v.direct.Lines}, Closed: true}
	for _, broken := range guarantee.Check(s, calls) {
		v.found[broken.Guarantee] = append(v.found[broken.Guarantee], fmt.Sprintf("round %d, %v", n+1, broken))
	}
	v.calls += len(calls)
	for _, c := range calls {
		v.messages += len(c.Messages)
	}
}

const (
	// maxPieces is how many calls a round may take; it draws pieces so that it takes a fraction of that.
	maxPieces = 500
	// maxFailures is how many calls in a row may fail because something is not available.
	maxFailures = 8
	// nothingFor is how long a call may bring nothing but heartbeats; opening a long session takes its time.
	nothingFor = 5 * time.Minute
)

// round reads the session once, in pieces: it stops anywhere, resumes there or a bit before, filters or not. The first
// round reads everything in one piece. Calls that break a promise are no error here, the report tells them.
func (v *verification) round(ctx context.Context, n int, tail int64) ([]guarantee.Call, error) {
	var calls []guarantee.Call
	var at *evev1.Cursor
	failures := 0
	for len(calls) < maxPieces {
		stop := -1
		if n > 0 {
			stop = 1 + v.rnd.IntN(int(max(8, min(tail/8, 5000))))
		}
		call, ended := v.call(ctx, v.request(at, n), stop, tail)
		calls = append(calls, call)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(call.Messages) > 0 {
			at, failures = call.Messages[v.handled(len(call.Messages), n, ended)].GetCursor(), 0
		}
		switch {
		case ended, call.Err == nil && !call.Left, strings.HasPrefix(guarantee.Reason(call.Err), "CURSOR_"):
			return calls, nil
		case call.Left:
			if forged := forgedCursor(at); forged != nil && v.rnd.IntN(10) == 0 {
				call, _ := v.call(ctx, v.request(forged, n), -1, tail)
				call.Forged = true
				calls = append(calls, call)
			}
		case !passes(call.Err) || failures == maxFailures:
			return nil, fmt.Errorf("the gateway: %s", callText(call.Err))
		default:
			failures++
			if err := sleep(ctx, time.Duration(failures)*500*time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
	return nil, fmt.Errorf("the gateway does not come to the end of the session in %d calls", maxPieces)
}

// callText is the status of a call for people.
func callText(err error) string {
	s := status.Convert(err)
	if reason := guarantee.Reason(err); reason != "" {
		return fmt.Sprintf("%s (%v): %s", reason, s.Code(), s.Message())
	}
	return fmt.Sprintf("%v: %s", s.Code(), s.Message())
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handled is the index of the last message that counts as handled, of n that came: usually the last.
func (v *verification) handled(n, round int, ended bool) int {
	if round == 0 || ended || v.rnd.IntN(3) > 0 {
		return n - 1
	}
	return v.rnd.IntN(n)
}

// passes tells whether a failure passes, so that another call may do better.
func passes(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.ResourceExhausted:
		return true
	default:
		return false
	}
}

// request is one for what follows a cursor, or for everything, up to the tail.
func (v *verification) request(at *evev1.Cursor, round int) *evev1.SubscribeRequest {
	req := &evev1.SubscribeRequest{
		Agent: v.agent, SessionId: v.session, MaxMessageBytes: messageBytes,
		OnOversizeLine: evev1.OnOversizeLine_ON_OVERSIZE_LINE_SKIP,
		Until:          &evev1.Until{Bound: &evev1.Until_Tail_{Tail: &evev1.Until_Tail{}}},
		Payload:        evev1.Payload_PAYLOAD_RAW,
	}
	if at != nil {
		req.Start = &evev1.SubscribeRequest_Cursor{Cursor: at}
	}
	if round > 0 {
		switch v.rnd.IntN(6) {
		case 0:
			req.Filter = &evev1.Filter{ExcludeProgress: true}
		case 1:
			req.Filter = &evev1.Filter{IncludeTypes: []string{"session.*", "turn.*"}}
		case 2:
			req.Payload = evev1.Payload_PAYLOAD_RAW_AND_TYPED
		}
	}
	return req
}

// call makes a call and leaves it after so many messages; -1: stays to its end. ended tells whether that was an ENDED
// checkpoint.
func (v *verification) call(ctx context.Context, req *evev1.SubscribeRequest, stop int, tail int64) (call guarantee.Call, ended bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nothing := time.AfterFunc(nothingFor, cancel)
	defer nothing.Stop()
	call = guarantee.Call{Request: req, Tail: tail, Known: true}
	stream, err := v.client.Subscribe(ctx, req)
	for err == nil {
		var m *evev1.SubscribeResponse
		if m, err = stream.Recv(); err != nil {
			break
		}
		call.Messages = append(call.Messages, m)
		if v.agent == "" {
			v.agent = m.GetCursor().GetAgent()
		}
		reason := m.GetCheckpoint().GetReason()
		if reason != evev1.CheckpointReason_CHECKPOINT_REASON_HEARTBEAT {
			nothing.Reset(nothingFor)
		}
		ended = reason == evev1.CheckpointReason_CHECKPOINT_REASON_ENDED
		if len(call.Messages) == stop && !ended {
			call.Left = true
			return call, false
		}
	}
	if !errors.Is(err, io.EOF) {
		call.Err = err
	}
	return call, ended && call.Err == nil
}

// forgedCursor is a cursor that says that another line stands before it; nil when that cannot be told of this one.
func forgedCursor(at *evev1.Cursor) *evev1.Cursor {
	if len(at.GetAnchor()) < 3 || at.GetSessionEnded() {
		return nil
	}
	forged := proto.CloneOf(at)
	anchor := []byte(at.GetAnchor())
	for i := 2; i < len(anchor); i++ { // behind what says how it was made
		if anchor[i] != '.' {
			anchor[i] = 'A' + (anchor[i]+1)%26
		}
	}
	forged.Anchor = string(anchor)
	return forged
}

// maxShown is how many violations of one guarantee are shown.
const maxShown = 5

// report says of each guarantee whether it held.
func (v *verification) report(w io.Writer) error {
	fmt.Fprintf(w, "%d lines of version %d at the agent; %d messages in %d calls at the gateway\n",
		len(v.direct.Lines), v.direct.Version, v.messages, v.calls)
	for _, g := range guarantee.All() {
		found := v.found[g]
		verdict := "PASS"
		if len(found) > 0 {
			verdict = "FAIL"
		}
		fmt.Fprintf(w, "%s  %v\n", verdict, g)
		for _, text := range found[:min(len(found), maxShown)] {
			fmt.Fprintf(w, "      %s\n", printable(text))
		}
		if more := len(found) - maxShown; more > 0 {
			fmt.Fprintf(w, "      and %d more\n", more)
		}
	}
	if len(v.found) > 0 {
		return errReported
	}
	return nil
}
