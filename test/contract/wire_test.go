package contract_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/rig"
)

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, errors.New("not bytes")
	}
	return b, nil
}

func (rawCodec) Unmarshal(b []byte, v any) error {
	m, ok := v.(*evev1.SubscribeResponse)
	if !ok {
		return errors.New("not a response")
	}
	return proto.Unmarshal(b, m)
}

// Bytes that are no request never reach the gateway: grpc-go itself refuses them, in words of its own, and they do no
// harm to the connection or to anyone else on it.
func TestRequestNotReadable(t *testing.T) {
	big, err := proto.Marshal(&evev1.SubscribeRequest{SessionId: strings.Repeat("a", 100_000)})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		request []byte
		status  string
	}{
		{"no message", []byte{0xff, 0xff, 0xff}, "INTERNAL"},
		{"half a field", []byte{0x12, 0x10, 'w'}, "INTERNAL"},
		{"not UTF-8", []byte{0x12, 0x02, 0xff, 0xfe}, "INTERNAL"},
		{"far too large", big, "RESOURCE_EXHAUSTED"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := contractCase{lines: numbered(1)}
				r := rig.New(t, c.options())
				defer r.Close()
				r.Eve.AddSession(session, c.spec())
				desc := &grpc.StreamDesc{ServerStreams: true}
				stream, err := r.Conn.NewStream(t.Context(), desc, evev1.StreamService_Subscribe_FullMethodName, grpc.ForceCodec(rawCodec{}))
				if err != nil {
					t.Fatal(err)
				}
				if err := stream.SendMsg(tt.request); err != nil {
					t.Fatal(err)
				}
				if err := stream.CloseSend(); err != nil {
					t.Fatal(err)
				}
				var m evev1.SubscribeResponse
				err = stream.RecvMsg(&m)
				if got := statusOf(err); got != tt.status {
					t.Errorf("status %q (%v), want %q", got, err, tt.status)
				}
				if n := len(r.Eve.Requests()); n != 0 {
					t.Errorf("%d requests upstream", n)
				}
				if res := r.Subscribe(t.Context(), rig.FromStart(session), nil); res.Err != nil {
					t.Errorf("the next request on the same connection: %v", res.Err)
				}
			})
		})
	}
}

// Fields of a later version of the API are no mistake.
func TestRequestUnknownFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := contractCase{lines: numbered(1)}
		r := rig.New(t, c.options())
		defer r.Close()
		r.Eve.AddSession(session, c.spec())
		req := rig.FromStart(session)
		req.ProtoReflect().SetUnknown(bytes.Join([][]byte{{0xfa, 0x3f, 0x02, 'h', 'i'}}, nil)) // field 1023
		res := r.Subscribe(t.Context(), req, nil)
		if res.Err != nil || len(res.Records()) != 1 {
			t.Errorf("%d records, %v", len(res.Records()), res.Err)
		}
	})
}
