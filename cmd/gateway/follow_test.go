package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// answer is what a stub does with a call.
type answer func(serverStream) error

type serverStream = grpc.ServerStreamingServer[evev1.SubscribeResponse]

// stubGateway answers each call for a session as the next function says, and knows where each call started.
type stubGateway struct {
	evev1.UnimplementedStreamServiceServer
	calls  []answer
	starts []string
	times  []time.Time
}

func (s *stubGateway) Subscribe(req *evev1.SubscribeRequest, stream serverStream) error {
	n := len(s.starts)
	s.starts = append(s.starts, startOf(req))
	s.times = append(s.times, time.Now())
	if n >= len(s.calls) {
		return status.Error(codes.Internal, "one call too many")
	}
	return s.calls[n](stream)
}

func startOf(req *evev1.SubscribeRequest) string {
	switch s := req.GetStart().(type) {
	case *evev1.SubscribeRequest_Cursor:
		return fmt.Sprint(s.Cursor.GetStreamIndex())
	case *evev1.SubscribeRequest_Position:
		return "tail"
	}
	return ""
}

// at is a message with the cursor (line, 0).
func at(line uint64) *evev1.SubscribeResponse {
	return &evev1.SubscribeResponse{
		Cursor: &evev1.Cursor{Agent: "a", SessionId: "s", StreamVersion: 27, StreamIndex: line},
		Item:   &evev1.SubscribeResponse_Fact{Fact: &evev1.Fact{Type: "x"}},
	}
}

func ended(line uint64) *evev1.SubscribeResponse {
	m := at(line)
	m.Item = &evev1.SubscribeResponse_Checkpoint{Checkpoint: &evev1.Checkpoint{
		Reason: evev1.CheckpointReason_CHECKPOINT_REASON_ENDED, End: evev1.EndReason_END_REASON_SESSION_ENDED,
	}}
	return m
}

// sends is an answer of messages that then ends the call with err.
func sends(err error, messages ...*evev1.SubscribeResponse) answer {
	return func(stream serverStream) error {
		for _, m := range messages {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		return err
	}
}

// reasoned is an error of the gateway, with details.
func reasoned(t *testing.T, code codes.Code, reason string, retry time.Duration) error {
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

// inBubble runs f with a client of the stub, in virtual time.
func inBubble(t *testing.T, stub *stubGateway, f func(t *testing.T, client evev1.StreamServiceClient)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		lis := fakeeve.NewPipeListener()
		// As strict about pings as the gateway is.
		srv := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second}))
		evev1.RegisterStreamServiceServer(srv, stub)
		served := make(chan error, 1)
		go func() { served <- srv.Serve(lis) }()
		conn, err := dial("passthrough:///gateway", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return lis.DialContext(ctx, "", "")
		}))
		if err != nil {
			t.Fatal(err)
		}
		f(t, evev1.NewStreamServiceClient(conn))
		_ = conn.Close()
		srv.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// collect is a follower's handle that keeps the lines of the cursors.
func collect(lines *[]string) func(*evev1.SubscribeResponse) error {
	return func(m *evev1.SubscribeResponse) error {
		*lines = append(*lines, fmt.Sprint(m.GetCursor().GetStreamIndex()))
		return nil
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	unavailable := status.Error(codes.Unavailable, "gone")
	tests := []struct {
		name  string
		calls []answer
		// lines handled, and where the calls started.
		lines, starts string
		// wait is the least time between the first two calls.
		wait time.Duration
		err  string // "" for none
	}{
		{
			name:  "one call",
			calls: []answer{sends(nil, at(1), at(2), ended(2))},
			lines: "1 2 2", starts: "tail",
		},
		{
			name:  "resumes behind what was handled",
			calls: []answer{sends(unavailable, at(1), at(2)), sends(unavailable), sends(nil, at(3), ended(3))},
			lines: "1 2 3 3", starts: "tail, 2, 2", wait: backoffBase / 2,
		},
		{
			name:  "nothing handled yet",
			calls: []answer{sends(unavailable), sends(nil, ended(1))},
			lines: "1", starts: "tail, tail", wait: backoffBase / 2,
		},
		{
			name: "waits as long as it is told to",
			calls: []answer{
				sends(reasoned(t, codes.Aborted, "DRAINING", 7*time.Second), at(1)), sends(nil, ended(1)),
			},
			lines: "1 1", starts: "tail, 1", wait: 7 * time.Second,
		},
		{
			name: "waits as long as a trailer says",
			calls: []answer{
				func(stream serverStream) error {
					stream.SetTrailer(metadata.Pairs("eve-error-reason", "AGENT_OVERLOADED", "eve-retry-after-ms", "9000"))
					return status.Error(codes.ResourceExhausted, "slow down")
				},
				sends(nil, ended(1)),
			},
			lines: "1", starts: "tail, tail", wait: 9 * time.Second,
		},
		{
			name: "what will not change is not asked again",
			calls: []answer{
				sends(reasoned(t, codes.FailedPrecondition, "CURSOR_DIVERGED", 0), at(1)),
			},
			lines: "1", starts: "tail", err: "CURSOR_DIVERGED (FailedPrecondition): as told",
		},
		{
			name: "a message too large for this client is not asked for again",
			calls: []answer{
				sends(status.Error(codes.ResourceExhausted, "too large")),
			},
			starts: "tail", err: "ResourceExhausted: too large",
		},
		{
			name:  "an end that is none",
			calls: []answer{sends(nil, at(1))},
			lines: "1", starts: "tail", err: errNoEnd.Error(),
		},
		{
			name:  "no cursor",
			calls: []answer{sends(nil, &evev1.SubscribeResponse{})},
			err:   errNoCursor.Error(), starts: "tail",
		},
		{
			name:  "an end that breaks off is an end",
			calls: []answer{sends(unavailable, at(1), ended(1))},
			lines: "1 1", starts: "tail",
		},
		{
			name: "silence",
			calls: []answer{
				func(stream serverStream) error {
					err := stream.Send(at(1))
					<-stream.Context().Done()
					return err
				},
				sends(nil, ended(1)),
			},
			lines: "1 1", starts: "tail, 1", wait: silenceLimit,
		},
		{
			name: "a first message that takes long is no silence",
			calls: []answer{
				func(stream serverStream) error {
					if err := sleep(stream.Context(), 10*silenceLimit); err != nil {
						return err
					}
					return stream.Send(ended(1))
				},
			},
			lines: "1", starts: "tail",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stub := &stubGateway{calls: tt.calls}
			inBubble(t, stub, func(t *testing.T, client evev1.StreamServiceClient) {
				var lines []string
				f := follower{client: client, handle: collect(&lines), request: &evev1.SubscribeRequest{
					SessionId: "s", Start: &evev1.SubscribeRequest_Position{Position: evev1.Position_POSITION_TAIL},
				}}
				err := f.run(t.Context())
				if tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				if got := strings.Join(lines, " "); got != tt.lines {
					t.Errorf("handled %q, want %q", got, tt.lines)
				}
				if got := strings.Join(stub.starts, ", "); got != tt.starts {
					t.Errorf("calls started at %q, want %q", got, tt.starts)
				}
				if f.request.GetCursor() != nil {
					t.Error("the request was changed")
				}
				if tt.wait > 0 && len(stub.times) > 1 {
					if got := stub.times[1].Sub(stub.times[0]); got < tt.wait || got > tt.wait+backoffCap {
						t.Errorf("called again after %v, want %v or a little more", got, tt.wait)
					}
				}
			})
		})
	}
}

// TestFollowGivesUp: the time to give up after begins anew with whatever is received.
func TestFollowGivesUp(t *testing.T) {
	t.Parallel()
	unavailable := reasoned(t, codes.Unavailable, "AGENT_UNAVAILABLE", 0)
	stub := &stubGateway{}
	for range 6 {
		stub.calls = append(stub.calls, sends(unavailable))
	}
	stub.calls = append(stub.calls, sends(unavailable, at(1)))
	for range 100 {
		stub.calls = append(stub.calls, sends(unavailable))
	}
	inBubble(t, stub, func(t *testing.T, client evev1.StreamServiceClient) {
		var lines []string
		retries := 0
		f := follower{
			client: client, handle: collect(&lines), request: &evev1.SubscribeRequest{SessionId: "s"}, retryFor: time.Minute,
			retrying: func(f *failure, wait time.Duration) {
				if retries++; f.reason != "AGENT_UNAVAILABLE" || wait <= 0 || wait > backoffCap {
					t.Errorf("trying again in %v after %v", wait, f)
				}
			},
		}
		err := f.run(t.Context())
		if failed, ok := errors.AsType[*failure](err); !ok || failed.reason != "AGENT_UNAVAILABLE" {
			t.Fatalf("error %v", err)
		}
		if since := time.Since(stub.times[6]); since > time.Minute || since < time.Minute-backoffCap {
			t.Errorf("gave up %v after the last message", since)
		}
		if want := len(stub.starts) - 1; retries != want || len(lines) != 1 {
			t.Errorf("%d retries and %d messages in %d calls", retries, len(lines), want+1)
		}
	})
}

// TestFollowForEver: a gateway that is back after an hour is read on.
func TestFollowForEver(t *testing.T) {
	t.Parallel()
	began := time.Time{}
	stub := &stubGateway{}
	stub.calls = make([]answer, 10_000)
	for i := range stub.calls {
		stub.calls[i] = func(stream serverStream) error {
			if time.Since(began) < time.Hour {
				return status.Error(codes.Unavailable, "gone")
			}
			return stream.Send(ended(1))
		}
	}
	inBubble(t, stub, func(t *testing.T, client evev1.StreamServiceClient) {
		began = time.Now()
		var lines []string
		f := follower{client: client, handle: collect(&lines), request: &evev1.SubscribeRequest{SessionId: "s"}}
		if err := f.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(began) - time.Hour; late > backoffCap {
			t.Errorf("back %v after the gateway", late)
		}
	})
}

// TestFollowHandleFails: what could not be handled is not behind the cursor, and the error is handle's.
func TestFollowHandleFails(t *testing.T) {
	t.Parallel()
	stub := &stubGateway{calls: []answer{sends(nil, at(1), at(2), ended(2))}}
	inBubble(t, stub, func(t *testing.T, client evev1.StreamServiceClient) {
		full := errors.New("disk full")
		f := follower{client: client, request: &evev1.SubscribeRequest{SessionId: "s"}, handle: func(m *evev1.SubscribeResponse) error {
			if m.GetCursor().GetStreamIndex() == 2 {
				return full
			}
			return nil
		}}
		if err := f.run(t.Context()); !errors.Is(err, full) || len(stub.starts) != 1 {
			t.Errorf("error %v after %d calls", err, len(stub.starts))
		}
	})
}

// TestFollowInterrupted: a follower that waits to try again ends at once.
func TestFollowInterrupted(t *testing.T) {
	t.Parallel()
	stub := &stubGateway{calls: []answer{
		sends(reasoned(t, codes.Unavailable, "DRAINING", time.Hour)),
	}}
	inBubble(t, stub, func(t *testing.T, client evev1.StreamServiceClient) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		f := follower{
			client: client, request: &evev1.SubscribeRequest{SessionId: "s"}, handle: func(*evev1.SubscribeResponse) error { return nil },
			retrying: func(*failure, time.Duration) { time.AfterFunc(time.Second, cancel) },
		}
		if err := f.run(ctx); !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
	})
}

// TestFailureNext: for every reason there is something to do.
func TestFailureNext(t *testing.T) {
	t.Parallel()
	for _, name := range evev1.ErrorReason_name {
		f := &failure{code: codes.FailedPrecondition, reason: strings.TrimPrefix(name, "ERROR_REASON_")}
		if f.next() == "" {
			t.Errorf("%s: nothing to do", name)
		}
	}
	tests := []struct {
		f    *failure
		want string
	}{
		{&failure{code: codes.InvalidArgument, reason: "REQUEST_INVALID", fields: []string{"until.turn_end"}}, "does not take until.turn_end"},
		{&failure{code: codes.Unimplemented}, "check that --server is a gateway"},
		{&failure{code: codes.Unavailable}, "check that a gateway listens there"},
		{&failure{code: codes.Unknown}, "run this again"},
	}
	for _, tt := range tests {
		if got := tt.f.next(); !strings.Contains(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.f, got, tt.want)
		}
	}
}
