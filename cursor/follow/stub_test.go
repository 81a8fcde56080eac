package follow_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/evegateway/evegateway/cursor"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

type serverStream = grpc.ServerStreamingServer[evev1.SubscribeResponse]

// stub is a gateway that answers each call as the next function says, and the calls after that as the last one does.
type stub struct {
	evev1.UnimplementedStreamServiceServer
	calls  []func(serverStream) error
	starts []string    // of the calls, see startOf
	at     []time.Time // of the calls
}

func (s *stub) Subscribe(req *evev1.SubscribeRequest, stream serverStream) error {
	n := len(s.starts)
	s.starts, s.at = append(s.starts, startOf(req)), append(s.at, time.Now())
	return s.calls[min(n, len(s.calls)-1)](stream)
}

// waits are the times between the calls.
func (s *stub) waits() []time.Duration {
	var waits []time.Duration
	for i := 1; i < len(s.at); i++ {
		waits = append(waits, s.at[i].Sub(s.at[i-1]))
	}
	return waits
}

// startOf is where a request starts: "", "tail", or line and slot.
func startOf(req *evev1.SubscribeRequest) string {
	switch s := req.GetStart().(type) {
	case *evev1.SubscribeRequest_Cursor:
		return place(s.Cursor)
	case *evev1.SubscribeRequest_Position:
		return "tail"
	}
	return ""
}

func place(c *evev1.Cursor) string {
	return fmt.Sprintf("%d.%d", c.GetStreamIndex(), c.GetStreamEventIndex())
}

// at is the position (line, slot) of the stub's session.
func at(line uint64, slot uint32) cursor.Cursor {
	return cursor.Cursor{Agent: "a", SessionID: "s", StreamVersion: 27, StreamIndex: line, StreamEventIndex: slot}
}

// fact is a message whose cursor is behind it.
func fact(line uint64, slot uint32) *evev1.SubscribeResponse {
	return &evev1.SubscribeResponse{
		Cursor: at(line, slot).Proto(),
		Item:   &evev1.SubscribeResponse_Fact{Fact: &evev1.Fact{Type: "x"}},
	}
}

func checkpoint(line uint64, reason evev1.CheckpointReason) *evev1.SubscribeResponse {
	return &evev1.SubscribeResponse{
		Cursor: at(line, 0).Proto(),
		Item:   &evev1.SubscribeResponse_Checkpoint{Checkpoint: &evev1.Checkpoint{Reason: reason}},
	}
}

func beat(line uint64) *evev1.SubscribeResponse {
	return checkpoint(line, evev1.CheckpointReason_CHECKPOINT_REASON_HEARTBEAT)
}

func end(line uint64) *evev1.SubscribeResponse {
	m := checkpoint(line, evev1.CheckpointReason_CHECKPOINT_REASON_ENDED)
	m.Cursor.SessionEnded = true
	return m
}

// sends answers a call with messages and then err.
func sends(err error, messages ...*evev1.SubscribeResponse) func(serverStream) error {
	return func(stream serverStream) error {
		for _, m := range messages {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		return err
	}
}

// after waits before it does f.
func after(d time.Duration, f func(serverStream) error) func(serverStream) error {
	return func(stream serverStream) error {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-time.After(d):
			return f(stream)
		}
	}
}

// then does one after the other.
func then(fs ...func(serverStream) error) func(serverStream) error {
	return func(stream serverStream) error {
		for _, f := range fs {
			if err := f(stream); err != nil {
				return err
			}
		}
		return nil
	}
}

// reasoned is an error as a gateway makes it.
func reasoned(t testing.TB, code codes.Code, reason string, retry time.Duration) error {
	t.Helper()
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: "eve.v1", Reason: reason}}
	if retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	}
	s, err := status.New(code, "as told").WithDetails(details...)
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

// connect is a connection to whatever dial reaches, that connects again soon.
func connect(t testing.TB, dial func(context.Context) (net.Conn, error)) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///gateway",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1, MaxDelay: 100 * time.Millisecond}}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// inBubble runs f with a client of the stub, in virtual time; that all goroutines have ended behind it is checked by
// the bubble.
func (s *stub) inBubble(t *testing.T, f func(t *testing.T, client evev1.StreamServiceClient)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		lis := fakeeve.NewPipeListener()
		srv := grpc.NewServer()
		evev1.RegisterStreamServiceServer(srv, s)
		served := make(chan error, 1)
		go func() { served <- srv.Serve(lis) }()
		conn := connect(t, func(ctx context.Context) (net.Conn, error) { return lis.DialContext(ctx, "", "") })
		f(t, evev1.NewStreamServiceClient(conn))
		_ = conn.Close()
		srv.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// request starts at the tail, to be told from a request without a start.
func request() *evev1.SubscribeRequest {
	return &evev1.SubscribeRequest{SessionId: "s", Start: &evev1.SubscribeRequest_Position{Position: evev1.Position_POSITION_TAIL}}
}
