package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// reading is what a reader saw.
type reading struct {
	// Records is how many messages held a record, and Bytes how long those were, gRPC's five bytes not counted.
	Records, Bytes int64
	// Elapsed is the time from the first call to the last end.
	Elapsed time.Duration
}

// read reads a session to its end, as often as it is told to. It takes messages apart only as far as telling records
// from checkpoints takes, so that it keeps up with a gateway; that the last of them says that everything before was
// sent is checked.
func read(ctx context.Context, o order) (answer, error) {
	conn, err := dial(o.Address, encoded{})
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = conn.Close() }()
	var a answer
	began := time.Now()
	for range max(1, o.Reads) {
		if err := readOnce(ctx, conn, o, &a.reading); err != nil {
			return a, fmt.Errorf("reading %s: %w", o.ID, err)
		}
	}
	a.Elapsed = time.Since(began)
	return a, nil
}

func readOnce(ctx context.Context, conn *grpc.ClientConn, o order, r *reading) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, evev1.StreamService_Subscribe_FullMethodName)
	if err != nil {
		return err
	}
	req := &evev1.SubscribeRequest{SessionId: o.ID, Payload: evev1.Payload(o.Payload)}
	if err := errors.Join(stream.SendMsg(req), stream.CloseSend()); err != nil {
		return err
	}
	var m message
	var checkpoint []byte
	for {
		if err := stream.RecvMsg(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		number, err := itemOf(m.bytes)
		if err != nil {
			return err
		}
		if number == checkpointField {
			checkpoint = append(checkpoint[:0], m.bytes...)
			continue
		}
		r.Records++
		r.Bytes += int64(len(m.bytes))
	}
	var last evev1.SubscribeResponse
	if err := proto.Unmarshal(checkpoint, &last); err != nil {
		return fmt.Errorf("the last checkpoint: %w", err)
	}
	end, at := last.GetCheckpoint().GetEnd(), last.GetCursor()
	if end != evev1.EndReason_END_REASON_SESSION_ENDED || int64(at.GetStreamIndex()) != o.Session.Lines { //nolint:gosec // a safe integer
		return fmt.Errorf("the stream ended with %v at line %d", end, at.GetStreamIndex())
	}
	return nil
}

// checkpointField is the number of SubscribeResponse.checkpoint.
const checkpointField = 6

// itemOf is the number of the field of SubscribeResponse.item in a message.
func itemOf(b []byte) (protowire.Number, error) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return 0, protowire.ParseError(n)
		}
		if number > 1 { // behind the cursor
			return number, nil
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return 0, protowire.ParseError(n)
		}
		b = b[n:]
	}
	return 0, errors.New("a message without an item")
}

// dial connects to a gRPC server on loopback.
func dial(address string, codec encoding.CodecV2) (*grpc.ClientConn, error) {
	opts := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	call := []grpc.CallOption{grpc.MaxCallRecvMsgSize(math.MaxInt32)}
	if codec != nil {
		call = append(call, grpc.ForceCodecV2(codec))
	}
	return grpc.NewClient(address, append(opts, grpc.WithDefaultCallOptions(call...))...)
}

// message is an encoded message. Its bytes are good until it is received into again.
type message struct{ bytes []byte }

// encoded is the default codec, except that a message comes and goes as it is.
type encoded struct{}

// Name implements encoding.CodecV2.
func (encoded) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (encoded) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *message:
		return mem.BufferSlice{mem.SliceBuffer(v.bytes)}, nil
	case proto.Message:
		b, err := proto.Marshal(v)
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	}
	return nil, fmt.Errorf("cannot encode a %T", v)
}

// Unmarshal implements encoding.CodecV2.
func (encoded) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *message:
		n := data.Len()
		if cap(v.bytes) < n {
			v.bytes = make([]byte, n, 2*n)
		}
		v.bytes = v.bytes[:n]
		data.CopyTo(v.bytes)
		return nil
	case proto.Message:
		return proto.Unmarshal(data.Materialize(), v)
	}
	return fmt.Errorf("cannot decode into a %T", v)
}
