package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// bare is a service that sends messages which a gateway has sent before, again and again: the limit of any gateway.
type bare struct {
	mu   sync.Mutex
	sent sentBefore
}

type sentBefore struct {
	messages []*evev1.SubscribeResponse // records only
	encoded  []*message                 // the same
	end      *evev1.SubscribeResponse
}

// newBare serves the same messages twice: in the default codec, and encoded beforehand. An order with an address gets
// the messages from the gateway there.
func newBare(ctx context.Context) (answer, player, error) {
	b := &bare{}
	plain, err := b.serve(ctx, b.sendPlain)
	if err != nil {
		return answer{}, nil, err
	}
	pre, err := b.serve(ctx, b.sendEncoded, grpc.ForceServerCodecV2(encoded{}))
	if err != nil {
		return answer{}, nil, err
	}
	return answer{Address: plain, Encoded: pre}, func(ctx context.Context, o order) (answer, error) {
		return answer{}, b.load(ctx, o)
	}, nil
}

// serve serves Subscribe on a port of its own until the process ends.
func (b *bare) serve(ctx context.Context, handler grpc.StreamHandler, opts ...grpc.ServerOption) (string, error) {
	srv := grpc.NewServer(opts...)
	srv.RegisterService(&grpc.ServiceDesc{
		ServiceName: evev1.StreamService_ServiceDesc.ServiceName,
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{{StreamName: "Subscribe", Handler: handler, ServerStreams: true}},
	}, b)
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = srv.Serve(lis) }()
	return lis.Addr().String(), nil
}

// load reads the messages of a session from a gateway.
func (b *bare) load(ctx context.Context, o order) error {
	conn, err := dial(o.Address, nil)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := evev1.NewStreamServiceClient(conn).Subscribe(ctx, &evev1.SubscribeRequest{
		SessionId: o.ID, Payload: evev1.Payload(o.Payload),
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", o.ID, err)
	}
	var sent sentBefore
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", o.ID, err)
		}
		if m.GetCheckpoint() != nil {
			sent.end = m
			continue
		}
		text, err := proto.Marshal(m)
		if err != nil {
			return err
		}
		sent.messages, sent.encoded = append(sent.messages, m), append(sent.encoded, &message{text})
	}
	if len(sent.messages) == 0 || sent.end == nil {
		return fmt.Errorf("%s has no records", o.ID)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = sent
	return nil
}

func (b *bare) sendPlain(_ any, stream grpc.ServerStream) error {
	n, sent, err := b.asked(stream)
	if err != nil {
		return err
	}
	for i := range n {
		if err := stream.SendMsg(sent.messages[i%len(sent.messages)]); err != nil {
			return err
		}
	}
	return stream.SendMsg(sent.end)
}

func (b *bare) sendEncoded(_ any, stream grpc.ServerStream) error {
	n, sent, err := b.asked(stream)
	if err != nil {
		return err
	}
	for i := range n {
		if err := stream.SendMsg(sent.encoded[i%len(sent.encoded)]); err != nil {
			return err
		}
	}
	return stream.SendMsg(sent.end)
}

// bareID is the id of a session of so many records.
func bareID(records int64) string { return fmt.Sprintf("wrun_bare_%d", records) }

// asked is how many records a call asks for, and which.
func (b *bare) asked(stream grpc.ServerStream) (n int, sent sentBefore, err error) {
	var req evev1.SubscribeRequest
	if err := stream.RecvMsg(&req); err != nil {
		return 0, sent, err
	}
	if _, err := fmt.Sscanf(req.GetSessionId(), "wrun_bare_%d", &n); err != nil {
		return 0, sent, fmt.Errorf("session %q: %w", req.GetSessionId(), err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent.end == nil {
		return 0, sent, errors.New("no messages were loaded")
	}
	return n, b.sent, nil
}
