// Package rig runs a whole gateway in front of a fake Eve, in memory: real HTTP and real gRPC over pipes, so that it
// works inside a testing/synctest bubble, where time is virtual. Tests of promises made to clients stand on it.
package rig

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/evegateway/evegateway/cursor"
	"github.com/evegateway/evegateway/gateway"
	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// Agent is the name of the rig's only agent.
const Agent = "tide"

// Rig is a gateway in front of a fake Eve.
type Rig struct {
	Eve    *fakeeve.Server
	Server *gateway.Server
	Client evev1.StreamServiceClient
	Conn   *grpc.ClientConn

	t    testing.TB
	eve  *fakeeve.Running
	stop func()
}

// Options adjust a rig.
type Options struct {
	Config func(*gateway.Config)
	Source func(*source.Config)
	Eve    []fakeeve.Option
	// Log gets the whole of the gateway's log as JSON. Nil: the test's output gets warnings and errors.
	Log io.Writer
}

// New starts a rig; it is torn down when the test (or the bubble's function) calls Close. Call it inside the bubble.
func New(t testing.TB, o Options) *Rig {
	t.Helper()
	r := &Rig{t: t, Eve: fakeeve.New(o.Eve...)}
	r.eve = fakeeve.StartPipe(r.Eve)
	r.Start(o)
	return r
}

// Start starts a gateway in front of the rig's Eve: the first, or another one after StopGateway.
func (r *Rig) Start(o Options) {
	r.t.Helper()
	transport := source.NewTransport(r.eve.Transport.DialContext)
	cfg := gateway.Config{Agents: []gateway.Agent{{Name: Agent, URL: r.eve.URL, Transport: transport, Tune: o.Source}}}
	cfg.Logger = slog.New(slog.NewTextHandler(r.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	if o.Log != nil {
		cfg.Logger = slog.New(slog.NewJSONHandler(o.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if o.Config != nil {
		o.Config(&cfg)
	}
	server, err := gateway.New(cfg)
	if err != nil {
		r.t.Fatalf("starting the gateway: %v", err)
	}
	lis := fakeeve.NewPipeListener()
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///gateway", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, a string) (net.Conn, error) { return lis.DialContext(ctx, "tcp", a) }))
	if err != nil {
		r.t.Fatalf("dialing the gateway: %v", err)
	}
	r.Server, r.Conn, r.Client = server, conn, evev1.NewStreamServiceClient(conn)
	r.stop = func() {
		_ = conn.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		server.Shutdown(ctx)
		if err := <-served; err != nil {
			r.t.Errorf("serving: %v", err)
		}
		transport.CloseIdleConnections()
	}
}

// StopGateway ends the gateway at once.
func (r *Rig) StopGateway() { r.stop() }

// StopEve ends the rig's Eve: connections are refused from here on.
func (r *Rig) StopEve() { r.eve.Close() }

// Close ends everything.
func (r *Rig) Close() {
	r.stop()
	r.eve.Close()
}

// Result is everything one Subscribe call gave.
type Result struct {
	Messages []*evev1.SubscribeResponse
	At       []time.Time // when each message came
	Header   metadata.MD
	Trailer  metadata.MD
	Err      error // nil for status OK
	Complete bool  // the stream came to its end; stop did not leave it
}

// Subscribe reads a stream to its end, or until stop says that the message was one too many to go on.
func (r *Rig) Subscribe(ctx context.Context, req *evev1.SubscribeRequest, stop func(*evev1.SubscribeResponse) bool) Result {
	r.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var res Result
	stream, err := r.Client.Subscribe(ctx, req)
	if err != nil {
		return Result{Err: err}
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) || err != nil {
			if !errors.Is(err, io.EOF) {
				res.Err = err
			}
			res.Header, _ = stream.Header()
			res.Trailer = stream.Trailer()
			res.Complete = true
			return res
		}
		res.Messages, res.At = append(res.Messages, m), append(res.At, time.Now())
		if stop != nil && stop(m) {
			res.Header, _ = stream.Header()
			return res
		}
	}
}

// Records are the messages that carry a record or an unreadable line.
func (r Result) Records() []*evev1.SubscribeResponse {
	var out []*evev1.SubscribeResponse
	for _, m := range r.Messages {
		if m.GetCheckpoint() == nil {
			out = append(out, m)
		}
	}
	return out
}

// Checkpoints are the checkpoints, in order.
func (r Result) Checkpoints() []*evev1.Checkpoint {
	var out []*evev1.Checkpoint
	for _, m := range r.Messages {
		if c := m.GetCheckpoint(); c != nil {
			out = append(out, c)
		}
	}
	return out
}

// Last is the last message; nil when there was none.
func (r Result) Last() *evev1.SubscribeResponse {
	if len(r.Messages) == 0 {
		return nil
	}
	return r.Messages[len(r.Messages)-1]
}

// FromStart is a request for a session from its beginning.
func FromStart(session string) *evev1.SubscribeRequest {
	return &evev1.SubscribeRequest{SessionId: session}
}

// From is a request that resumes after c.
func From(c *evev1.Cursor) *evev1.SubscribeRequest {
	return &evev1.SubscribeRequest{Start: &evev1.SubscribeRequest_Cursor{Cursor: c}}
}

// UntilTail bounds a request at the tail.
func UntilTail(req *evev1.SubscribeRequest) *evev1.SubscribeRequest {
	req.Until = &evev1.Until{Bound: &evev1.Until_Tail_{Tail: &evev1.Until_Tail{}}}
	return req
}

// At is a cursor at the start of a line, without an anchor.
func At(session string, version uint32, line uint64) *evev1.Cursor {
	return cursor.Cursor{Agent: Agent, SessionID: session, StreamVersion: version, StreamIndex: line}.Proto()
}
