package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

const (
	// heartbeatWanted is what is asked for; a gateway may make up to a minute of it, so silenceLimit, after which a
	// stream counts as broken, is longer.
	heartbeatWanted = 10 * time.Second
	silenceLimit    = 90 * time.Second

	backoffBase = 250 * time.Millisecond
	backoffCap  = 10 * time.Second

	// messageBytes is the largest record to receive, and messageMargin what a message may have around it.
	messageBytes  = 16 << 20
	messageMargin = 64 << 10
)

// dial makes a client of the gateway at an address. It connects when it is used.
func dial(server string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(server, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(messageBytes + messageMargin)),
		// The default would wait for up to two minutes after a gateway is back.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: backoffBase, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 10 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	}, opts...)...)
	if err != nil {
		return nil, usagef("the gateway's address: %w", err)
	}
	return conn, nil
}

// follower reads one session to the end that its request names, in as many calls as it takes.
type follower struct {
	client evev1.StreamServiceClient
	// request is the first call's; later ones start behind the last message that was handled.
	request *evev1.SubscribeRequest
	// handle is given every message. Its error ends everything; the cursor does not move over that message.
	handle func(*evev1.SubscribeResponse) error
	// retrying is told why a call failed and how long it will be until the next. Nil: nobody is.
	retrying func(f *failure, wait time.Duration)
	// retryFor is how long to go on trying while nothing is received. 0: for ever.
	retryFor time.Duration
}

// run returns nil after the ENDED checkpoint, a *failure when a call failed for good, and the error of handle.
func (f *follower) run(ctx context.Context) error {
	req, ok := proto.Clone(f.request).(*evev1.SubscribeRequest)
	if !ok {
		return errors.New("no request")
	}
	if req.GetHeartbeatInterval() == nil {
		req.HeartbeatInterval = durationpb.New(heartbeatWanted)
	}
	if req.GetMaxMessageBytes() == 0 {
		req.MaxMessageBytes = messageBytes
	}
	var attempt int
	var since time.Time // of the first failure in a row
	for {
		received, err := f.call(ctx, req)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		failed, ok := errors.AsType[*failure](err)
		if !ok || !failed.retryable() {
			return err
		}
		if received || since.IsZero() {
			attempt, since = 0, time.Now()
		}
		// Half of the delay is random, so that clients of one gateway do not come back as one.
		wait := min(backoffBase<<min(attempt, 10), backoffCap)
		wait = max(wait/2+rand.N(wait/2+1), failed.retryAfter) //nolint:gosec // jitter
		if f.retryFor > 0 && time.Since(since)+wait > f.retryFor {
			return err
		}
		if f.retrying != nil {
			f.retrying(failed, wait)
		}
		attempt++
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

var (
	errSilent   = errors.New("the gateway has fallen silent")
	errNoEnd    = errors.New("the gateway ended the stream without an ENDED checkpoint")
	errNoCursor = errors.New("the gateway sent a message without a cursor")
)

// call makes one call. It moves the start of req behind each message that was handled, and tells whether there was one.
func (f *follower) call(ctx context.Context, req *evev1.SubscribeRequest) (received bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := f.client.Subscribe(ctx, req)
	if err != nil {
		return false, newFailure(err, nil)
	}
	// Runs while a message is waited for, but not for the first: opening a long session takes its time, and keepalive
	// watches the connection.
	silence := time.AfterFunc(silenceLimit, func() { cancel(errSilent) })
	defer silence.Stop()
	ended := false
	for {
		if !received {
			silence.Stop()
		}
		m, err := stream.Recv()
		switch {
		case ended:
			return received, nil // however the call ended, the reading is complete
		case errors.Is(err, io.EOF):
			return received, &failure{message: errNoEnd.Error(), err: errNoEnd}
		case err != nil && errors.Is(context.Cause(ctx), errSilent):
			return received, &failure{message: errSilent.Error(), err: errSilent, broken: true}
		case err != nil:
			return received, newFailure(err, stream.Trailer())
		case m.GetCursor() == nil:
			return received, &failure{message: errNoCursor.Error(), err: errNoCursor}
		}
		silence.Stop()
		if err := f.handle(m); err != nil {
			return received, err
		}
		received = true
		req.Start = &evev1.SubscribeRequest_Cursor{Cursor: m.GetCursor()}
		ended = m.GetCheckpoint().GetReason() == evev1.CheckpointReason_CHECKPOINT_REASON_ENDED
		silence.Reset(silenceLimit)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// boundOf is the bound that a value of --until names.
func boundOf(until string) (*evev1.Until, error) {
	switch until {
	case "end":
		return nil, nil
	case "tail":
		return &evev1.Until{Bound: &evev1.Until_Tail_{Tail: &evev1.Until_Tail{}}}, nil
	case "turn":
		return &evev1.Until{Bound: &evev1.Until_TurnEnd_{TurnEnd: &evev1.Until_TurnEnd{}}}, nil
	}
	return nil, fmt.Errorf("unknown bound %q", until)
}
