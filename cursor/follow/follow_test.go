package follow_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/evegateway/evegateway/cursor"
	"github.com/evegateway/evegateway/cursor/follow"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	unavailable := status.Error(codes.Unavailable, "gone")
	type calls = []func(serverStream) error
	const base = 250 * time.Millisecond
	tests := []struct {
		name  string
		calls calls
		// got are the places of the messages, starts those where the calls began, err the error's text ("" for none).
		got, starts, err string
		// wait is the least time between the first two calls, up to base more is fine.
		wait time.Duration
	}{
		{
			name:  "one call",
			calls: calls{sends(nil, fact(0, 1), fact(1, 0), end(1))},
			got:   "0.1 1.0 1.0", starts: "tail",
		},
		{
			name:  "goes on behind what was handled",
			calls: calls{sends(unavailable, fact(0, 1), fact(0, 2)), sends(unavailable), sends(nil, fact(1, 0), end(1))},
			got:   "0.1 0.2 1.0 1.0", starts: "tail, 0.2, 0.2", wait: base / 2,
		},
		{
			name:  "nothing was handled yet",
			calls: calls{sends(unavailable), sends(nil, end(1))},
			got:   "1.0", starts: "tail, tail", wait: base / 2,
		},
		{
			name:  "waits as long as it is told to",
			calls: calls{sends(reasoned(t, codes.Aborted, "DRAINING", 7*time.Second), fact(1, 0)), sends(nil, end(1))},
			got:   "1.0 1.0", starts: "tail, 1.0", wait: 7 * time.Second,
		},
		{
			name: "waits as long as the trailers say",
			calls: calls{
				func(stream serverStream) error {
					stream.SetTrailer(metadata.Pairs("eve-error-reason", "AGENT_OVERLOADED", "eve-retry-after-ms", "9000"))
					return status.Error(codes.ResourceExhausted, "slow down")
				},
				sends(nil, end(1)),
			},
			got: "1.0", starts: "tail, tail", wait: 9 * time.Second,
		},
		{
			name:  "what will not change",
			calls: calls{sends(reasoned(t, codes.FailedPrecondition, "CURSOR_DIVERGED", 0), fact(1, 0))},
			got:   "1.0", starts: "tail", err: "follow: CURSOR_DIVERGED (FailedPrecondition): as told",
		},
		{
			name:  "what may not change, after something was gained, and then again",
			calls: calls{sends(status.Error(codes.Internal, "reset"), fact(1, 0))},
			got:   "1.0 1.0", starts: "tail, 1.0", err: "follow: Internal: reset", wait: base / 2,
		},
		{
			name:   "what may not change, at once",
			calls:  calls{sends(status.Error(codes.ResourceExhausted, "too large"))},
			starts: "tail", err: "follow: ResourceExhausted: too large",
		},
		{
			name:  "heartbeats gain nothing",
			calls: calls{sends(nil, fact(1, 0)), sends(status.Error(codes.Unknown, "what"), beat(1))},
			got:   "1.0 1.0", starts: "tail, 1.0", err: "follow: Unknown: what", wait: base / 2,
		},
		{
			name: "an open stream that lasted has gained something",
			calls: calls{
				sends(nil, fact(1, 0)),
				then(sends(nil, beat(1)), after(11*time.Second, sends(status.Error(codes.Internal, "reset")))),
				sends(nil, end(1)),
			},
			got: "1.0 1.0 1.0", starts: "tail, 1.0, 1.0", wait: base / 2,
		},
		{
			name:   "an end without an ENDED checkpoint",
			calls:  calls{sends(nil)},
			starts: "tail", err: "follow: Internal: the stream ended without an ENDED checkpoint",
		},
		{
			name:  "an end that breaks off is an end",
			calls: calls{sends(unavailable, fact(1, 0), end(1))},
			got:   "1.0 1.0", starts: "tail",
		},
		{
			name:   "no cursor",
			calls:  calls{sends(nil, &evev1.SubscribeResponse{})},
			starts: "tail", err: "follow: Internal: the gateway broke the rules: cursor: is missing",
		},
		{
			name:  "a cursor that goes back",
			calls: calls{sends(nil, fact(2, 1), fact(2, 0)), sends(nil, fact(1, 9))},
			got:   "2.1", starts: "tail, 2.1", wait: base / 2,
			err: "follow: Internal: the gateway broke the rules: it went from a/s@2.1 v27 back to a/s@1.9 v27",
		},
		{
			name: "a cursor of another session",
			calls: calls{sends(nil, fact(2, 1)), sends(nil, func() *evev1.SubscribeResponse {
				m := fact(3, 0)
				m.Cursor.SessionId = "another"
				return m
			}())},
			got: "2.1", starts: "tail, 2.1", wait: base / 2,
			err: "follow: Internal: the gateway broke the rules: cursor: session_id differs: the cursors are of different streams",
		},
		{
			name: "a cursor of another agent",
			calls: calls{sends(nil, fact(2, 1)), sends(nil, func() *evev1.SubscribeResponse {
				m := fact(3, 0)
				m.Cursor.Agent = "another"
				return m
			}())},
			got: "2.1", starts: "tail, 2.1", wait: base / 2,
			err: "follow: Internal: the gateway broke the rules: cursor: agent differs: the cursors are of different streams",
		},
		{
			name: "a cursor of a child",
			calls: calls{sends(nil, fact(2, 1)), sends(nil, func() *evev1.SubscribeResponse {
				m := fact(3, 0)
				m.Cursor.Child = &evev1.ChildStream{ParentSessionId: "p", CallId: "c"}
				return m
			}())},
			got: "2.1", starts: "tail, 2.1", wait: base / 2,
			err: "follow: Internal: the gateway broke the rules: cursor: child differs: the cursors are of different streams",
		},
		{
			name: "a cursor of no child",
			calls: calls{sends(nil, func() *evev1.SubscribeResponse {
				m := fact(2, 1)
				m.Cursor.Child = &evev1.ChildStream{ParentSessionId: "p", CallId: "c"}
				return m
			}()), sends(nil, func() *evev1.SubscribeResponse {
				m := fact(3, 0)
				return m
			}())},
			got: "2.1", starts: "tail, 2.1", wait: base / 2,
			err: "follow: Internal: the gateway broke the rules: cursor: child differs: the cursors are of different streams",
		},
		{
			name: "silence",
			calls: calls{
				then(sends(nil, fact(1, 0)), after(time.Hour, sends(unavailable))),
				sends(nil, end(1)),
			},
			got: "1.0 1.0", starts: "tail, 1.0", wait: 90*time.Second + base/2,
		},
		{
			name: "silence behind the headers",
			calls: calls{
				func(stream serverStream) error {
					if err := stream.SendHeader(metadata.Pairs("eve-session-id", "s")); err != nil {
						return err
					}
					return after(time.Hour, sends(unavailable))(stream)
				},
				sends(nil, end(1)),
			},
			got: "1.0", starts: "tail, tail", wait: 90*time.Second + base/2,
		},
		{
			name:  "an opening that takes long is no silence",
			calls: calls{after(time.Hour, sends(nil, end(1)))},
			got:   "1.0", starts: "tail",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stub := &stub{calls: tt.calls}
			stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
				req := request()
				var got []string
				var failed error
				for m, err := range follow.New(client, req).Messages(t.Context()) {
					if failed != nil {
						t.Fatalf("goes on after %v", failed)
					}
					if failed = err; err == nil {
						got = append(got, place(m.GetCursor()))
					} else if m != nil {
						t.Errorf("a message with an error: %v", m)
					}
				}
				text := ""
				if failed != nil {
					text = failed.Error()
				}
				if text != tt.err {
					t.Errorf("error %q, want %q", text, tt.err)
				}
				if got := strings.Join(got, " "); got != tt.got {
					t.Errorf("messages %q, want %q", got, tt.got)
				}
				if got := strings.Join(stub.starts, ", "); got != tt.starts {
					t.Errorf("calls began at %q, want %q", got, tt.starts)
				}
				if waits := stub.waits(); len(waits) > 0 && (waits[0] < tt.wait || waits[0] > tt.wait+base) {
					t.Errorf("waited %v, want %v or a little more", waits[0], tt.wait)
				}
				if !proto.Equal(req, request()) {
					t.Error("the request was changed")
				}
			})
		})
	}
}

// TestErrorDetails: the error says what the gateway said, and gRPC's own is inside.
func TestErrorDetails(t *testing.T) {
	t.Parallel()
	stub := &stub{calls: []func(serverStream) error{sends(reasoned(t, codes.OutOfRange, "HISTORY_EXPIRED", 3*time.Second))}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		for _, err := range follow.New(client, request()).Messages(t.Context()) {
			failed, ok := errors.AsType[*follow.Error](err)
			if !ok || failed.Code != codes.OutOfRange || failed.Reason != "HISTORY_EXPIRED" || failed.RetryAfter != 3*time.Second {
				t.Errorf("%#v", err)
			}
			if s, ok := status.FromError(err); !ok || s.Code() != codes.OutOfRange || len(s.Details()) != 2 {
				t.Errorf("status %v", s)
			}
		}
	})
}

// TestNoCredentials: a call that cannot even be begun fails like one that was refused.
func TestNoCredentials(t *testing.T) {
	t.Parallel()
	stub := &stub{calls: []func(serverStream) error{sends(nil, end(1))}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "bad\x00key", "x")
		n := 0
		for _, err := range follow.New(client, request()).Messages(ctx) {
			n++
			if failed, ok := errors.AsType[*follow.Error](err); !ok || failed.Code != codes.Internal {
				t.Errorf("error %v", err)
			}
		}
		if n != 1 || len(stub.starts) != 0 {
			t.Errorf("%d errors, %d calls arrived", n, len(stub.starts))
		}
	})
}

// TestCanceled: wherever a loop is, it ends with the context's error, at once, and yields nothing behind its end.
func TestCanceled(t *testing.T) {
	t.Parallel()
	hour := time.Hour
	tests := []struct {
		name string
		call func(serverStream) error
	}{
		{"opening", after(hour, sends(nil))},
		{"receiving", then(sends(nil, fact(1, 0)), after(hour, sends(nil)))},
		{"waiting", sends(status.Error(codes.Unavailable, "gone"))},
		{"waiting as told", sends(reasoned(t, codes.Unavailable, "DRAINING", hour))},
	}
	for _, tt := range tests {
		for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
			"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Minute, cancel)
				return ctx, cancel
			},
			"timed out": func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Minute)
			},
		} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				stub := &stub{calls: []func(serverStream) error{tt.call}}
				stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
					ctx, cancel := end(t.Context())
					defer cancel()
					began := time.Now()
					var failed error
					for _, err := range follow.New(client, request(), follow.WithSilence(2*hour)).Messages(ctx) {
						if failed != nil {
							t.Errorf("goes on after %v", failed)
						}
						failed = err
					}
					if took := time.Since(began); failed == nil || !errors.Is(failed, ctx.Err()) || took != time.Minute {
						t.Errorf("%v after %v, want %v", failed, took, ctx.Err())
					}
				})
			})
		}
	}
	t.Run("in the body", func(t *testing.T) {
		t.Parallel()
		stub := &stub{calls: []func(serverStream) error{sends(nil, fact(1, 0), fact(2, 0), end(2))}}
		stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var got []string
			f := follow.New(client, request())
			for m, err := range f.Messages(ctx) {
				if err != nil {
					got = append(got, err.Error())
					continue
				}
				got = append(got, place(m.GetCursor()))
				cancel()
				synctest.Wait() // all messages are here
			}
			if got := strings.Join(got, " "); got != "1.0 context canceled" {
				t.Errorf("got %q", got)
			}
			if f.Cursor() != at(1, 0) {
				t.Errorf("acknowledged %v: the message was handled", f.Cursor())
			}
		})
	})
}

// pastDeadline is a context at its deadline, before its timer has fired.
type pastDeadline struct{ context.Context }

func (pastDeadline) Deadline() (time.Time, bool) { return time.Now(), true }

// TestDeadlineFirst: a call that was told of the deadline may end with it before the context does.
func TestDeadlineFirst(t *testing.T) {
	t.Parallel()
	stub := &stub{calls: []func(serverStream) error{sends(nil, end(1))}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		n := 0
		for _, err := range follow.New(client, request()).Messages(pastDeadline{t.Context()}) {
			if n++; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		}
		if n != 1 {
			t.Errorf("%d errors", n)
		}
	})
}

// TestLeft: a loop that is left, or panics, leaves no call behind. The bubble checks the goroutines.
func TestLeft(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	stub := &stub{calls: []func(serverStream) error{func(stream serverStream) error {
		err := stream.Send(fact(1, 0))
		<-stream.Context().Done()
		close(left)
		return err
	}}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		f := follow.New(client, request())
		for _, err := range f.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		<-left
		left = make(chan struct{})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			for _, err := range f.Messages(t.Context()) {
				if err != nil {
					t.Error(err)
				}
				panic("in the body")
			}
		}()
		<-left
		if got := strings.Join(stub.starts, ", "); got != "tail, tail" {
			t.Errorf("calls began at %q: what was left is not handled", got)
		}
	})
}

// TestOneLoop: a second loop at the same time is refused, a later one goes on.
func TestOneLoop(t *testing.T) {
	t.Parallel()
	stub := &stub{calls: []func(serverStream) error{sends(nil, fact(1, 0), fact(2, 0), end(2)), sends(nil, fact(2, 0), end(2))}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		f := follow.New(client, request())
		for m, err := range f.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if place(m.GetCursor()) == "2.0" {
				break
			}
			for _, err := range f.Messages(t.Context()) {
				if err == nil || !strings.Contains(err.Error(), "another loop") {
					t.Errorf("error %v", err)
				}
			}
		}
		for _, err := range f.Messages(t.Context()) {
			if err != nil {
				t.Error(err)
			}
		}
		if got := strings.Join(stub.starts, ", "); got != "tail, 1.0" {
			t.Errorf("calls began at %q", got)
		}
	})
}

// TestStart: where the first call starts, and what the position is before anything was acknowledged.
func TestStart(t *testing.T) {
	t.Parallel()
	nameless := at(7, 2)
	nameless.Agent, nameless.SessionID = "", ""
	withCursor := &evev1.SubscribeRequest{Start: &evev1.SubscribeRequest_Cursor{Cursor: at(3, 0).Proto()}}
	tests := []struct {
		name   string
		req    *evev1.SubscribeRequest
		opts   []follow.Option
		starts string
		cursor cursor.Cursor
	}{
		{"the request's", request(), nil, "tail", cursor.Cursor{}},
		{"no request", nil, nil, "", cursor.Cursor{}},
		{"a cursor in the request", withCursor, nil, "3.0", at(3, 0)},
		{"a cursor", request(), []follow.Option{follow.WithStart(at(7, 2))}, "7.2", at(7, 2)},
		{"a cursor over one", withCursor, []follow.Option{follow.WithStart(at(7, 2))}, "7.2", at(7, 2)},
		{"a cursor without names", request(), []follow.Option{follow.WithStart(nameless)}, "7.2", nameless},
		{"no cursor saved", request(), []follow.Option{follow.WithStart(cursor.Cursor{})}, "tail", cursor.Cursor{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stub := &stub{calls: []func(serverStream) error{sends(nil, fact(8, 0), end(8))}}
			stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
				f := follow.New(client, tt.req, tt.opts...)
				if f.Cursor() != tt.cursor {
					t.Errorf("at %v, want %v", f.Cursor(), tt.cursor)
				}
				for _, err := range f.Messages(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
				}
				if got := strings.Join(stub.starts, ", "); got != tt.starts {
					t.Errorf("calls began at %q, want %q", got, tt.starts)
				}
				want := at(8, 0)
				want.SessionEnded = true
				if f.Cursor() != want {
					t.Errorf("at %v in the end", f.Cursor())
				}
			})
		})
	}
}

// TestStartBeforeFirst: a gateway that starts before the cursor it was given is found out at once.
func TestStartBeforeFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []cursor.Cursor{at(7, 2), {StreamVersion: 27, StreamIndex: 7, StreamEventIndex: 2}} {
		stub := &stub{calls: []func(serverStream) error{sends(nil, fact(7, 1), end(8))}}
		stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
			for m, err := range follow.New(client, request(), follow.WithStart(c)).Messages(t.Context()) {
				if m != nil || err == nil {
					t.Errorf("given %v, error %v", m, err)
				}
			}
		})
	}
}

// TestBackoff: waits double up to the longest, are half random, and begin anew after a call that gained something.
func TestBackoff(t *testing.T) {
	t.Parallel()
	unavailable := reasoned(t, codes.Unavailable, "AGENT_UNAVAILABLE", 0)
	stub := &stub{}
	for range 8 {
		stub.calls = append(stub.calls, sends(unavailable))
	}
	stub.calls = append(stub.calls, sends(unavailable, fact(1, 0)), sends(unavailable, beat(1)), sends(unavailable), sends(nil, end(1)))
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		const seed = 11
		var told []time.Duration
		f := follow.New(client, request(), follow.WithRand(rand.New(rand.NewPCG(seed, seed))),
			follow.WithBackoff(follow.Backoff{Base: time.Second, Max: 20 * time.Second}),
			follow.WithRetryNotice(func(failed *follow.Error, wait time.Duration) {
				if failed.Reason != "AGENT_UNAVAILABLE" {
					t.Errorf("told of %v", failed)
				}
				told = append(told, wait)
			}))
		for _, err := range f.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		halved := 0
		for i, seconds := range []int{1, 2, 4, 8, 16, 20, 20, 20, 1, 2, 4} {
			longest, got := time.Duration(seconds)*time.Second, stub.waits()[i]
			if got < longest/2 || got > longest || got != told[i] {
				t.Errorf("wait %d was %v, told %v, want %v to %v", i, got, told[i], longest/2, longest)
			}
			if got == longest/2 {
				halved++
			}
		}
		if halved > 1 {
			t.Error("nothing is random")
		}
	})
}

// TestAskedToWait: a gateway that asks for less than the backoff does not make it shorter, and one that asks for more
// is not met by all clients in the same moment.
func TestAskedToWait(t *testing.T) {
	t.Parallel()
	stub := &stub{calls: []func(serverStream) error{
		sends(reasoned(t, codes.Unavailable, "DRAINING", time.Millisecond)),
		sends(reasoned(t, codes.Unavailable, "DRAINING", time.Millisecond)),
		sends(reasoned(t, codes.Unavailable, "DRAINING", time.Minute)),
		sends(nil, end(1)),
	}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		f := follow.New(client, request(), follow.WithRand(rand.New(rand.NewPCG(1, 2))),
			follow.WithBackoff(follow.Backoff{Base: 2 * time.Second, Max: 8 * time.Second}))
		for _, err := range f.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []struct{ least, most time.Duration }{
			{time.Second, 2 * time.Second},
			{2 * time.Second, 4 * time.Second},
			{time.Minute + 1, time.Minute + 4*time.Second},
		} {
			if got := stub.waits()[i]; got < want.least || got > want.most {
				t.Errorf("wait %d was %v, want %v to %v", i, got, want.least, want.most)
			}
		}
	})
}

// TestGivesUp: the time to give up after begins anew with whatever is gained, and not with heartbeats.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	unavailable := reasoned(t, codes.Unavailable, "AGENT_UNAVAILABLE", 0)
	stub := &stub{calls: []func(serverStream) error{
		sends(unavailable), sends(unavailable), sends(unavailable), sends(unavailable, fact(1, 0)),
		sends(unavailable, beat(1)),
	}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		var failed error
		for _, err := range follow.New(client, request(), follow.WithBackoff(follow.Backoff{GiveUp: time.Minute})).Messages(t.Context()) {
			failed = err
		}
		if e, ok := errors.AsType[*follow.Error](failed); !ok || e.Reason != "AGENT_UNAVAILABLE" {
			t.Fatalf("error %v", failed)
		}
		if since := time.Since(stub.at[3]); since > time.Minute || since < 50*time.Second {
			t.Errorf("gave up %v after the last gain", since)
		}
	})
}

// TestGivesUpAtOnce: no point in waiting longer than one is willing to go on.
func TestGivesUpAtOnce(t *testing.T) {
	t.Parallel()
	stub := &stub{calls: []func(serverStream) error{sends(reasoned(t, codes.ResourceExhausted, "AGENT_OVERLOADED", time.Hour))}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		began := time.Now()
		for _, err := range follow.New(client, request(), follow.WithBackoff(follow.Backoff{GiveUp: time.Minute})).Messages(t.Context()) {
			if err == nil || time.Since(began) != 0 {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
	})
}

// TestForEver: a gateway that is back after hours is read on.
func TestForEver(t *testing.T) {
	t.Parallel()
	var began time.Time
	stub := &stub{calls: []func(serverStream) error{func(stream serverStream) error {
		if time.Since(began) < 3*time.Hour {
			return status.Error(codes.Unavailable, "gone")
		}
		return stream.Send(end(1))
	}}}
	stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
		began = time.Now()
		for _, err := range follow.New(client, request()).Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if late := time.Since(began) - 3*time.Hour; late < 0 || late > 10*time.Second {
			t.Errorf("back %v after the gateway", late)
		}
	})
}

// TestSilence: what the limit is, and that the time the body takes does not count.
func TestSilence(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		heartbeat time.Duration
		opts      []follow.Option
		want      time.Duration
	}{
		{"the default", 0, nil, 90 * time.Second},
		{"frequent heartbeats", time.Second, nil, 90 * time.Second},
		{"rare heartbeats", time.Minute, nil, 3 * time.Minute},
		{"no heartbeats", 1 << 62, nil, 3 * time.Hour},
		{"as told", time.Minute, []follow.Option{follow.WithSilence(7 * time.Second)}, 7 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stub := &stub{calls: []func(serverStream) error{
				then(sends(nil, fact(1, 0)), after(tt.want-1, sends(nil, fact(2, 0))), after(24*time.Hour, sends(nil))),
				sends(nil, end(2)),
			}}
			stub.inBubble(t, func(t *testing.T, client evev1.StreamServiceClient) {
				req := request()
				if tt.heartbeat > 0 {
					req.HeartbeatInterval = durationpb.New(tt.heartbeat)
				}
				var received time.Time
				opts := append(slices.Clone(tt.opts), follow.WithBackoff(follow.Backoff{Base: 2, Max: 2}),
					follow.WithRetryNotice(func(failed *follow.Error, _ time.Duration) {
						if failed.Code != codes.Unavailable || !strings.Contains(failed.Error(), tt.want.String()) || time.Since(received) != tt.want {
							t.Errorf("%v after %v", failed, time.Since(received))
						}
					}))
				for m, err := range follow.New(client, req, opts...).Messages(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					if place(m.GetCursor()) == "2.0" {
						time.Sleep(2 * tt.want)
					}
					received = time.Now()
				}
				if len(stub.starts) != 2 {
					t.Errorf("%d calls", len(stub.starts))
				}
			})
		})
	}
}
