package rpc

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// Every failure of source has a code and a reason of its own; none falls through to INTERNAL by oversight.
func TestSourceReasons(t *testing.T) {
	seen := map[evev1.ErrorReason]source.Reason{}
	for r := source.Unavailable; r <= source.Rejected; r++ {
		code, reason := sourceCode(r)
		if reason == evev1.ErrorReason_ERROR_REASON_INTERNAL || code == codes.OK {
			t.Errorf("source reason %d has no reason of its own", r)
		}
		if other, twice := seen[reason]; twice {
			t.Errorf("source reasons %d and %d are both %v", other, r, reason)
		}
		seen[reason] = r
	}
	if _, reason := sourceCode(source.Rejected + 1); reason != evev1.ErrorReason_ERROR_REASON_INTERNAL {
		t.Errorf("a source reason past the last is %v: extend this test", reason)
	}
}

func TestErrorStatus(t *testing.T) {
	secret := errors.New("dial 10.0.0.7: token=secret")
	err := toError(fmt.Errorf("opening: %w", &source.Error{
		Reason: source.Overloaded, Message: "the agent asks to slow down", RetryAfter: 1500 * time.Millisecond,
		Meta: map[string]string{"status": "429"}, Err: secret,
	}))
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %T", err)
	}
	s := status.Convert(e.GRPCStatus().Err())
	if s.Code() != codes.ResourceExhausted || s.Message() != "the agent asks to slow down" {
		t.Errorf("status %v", s)
	}
	var info *errdetails.ErrorInfo
	var retry *errdetails.RetryInfo
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.RetryInfo:
			retry = d
		}
	}
	if info.GetReason() != "AGENT_OVERLOADED" || info.GetDomain() != Domain || info.GetMetadata()["status"] != "429" {
		t.Errorf("info %v", info)
	}
	if retry.GetRetryDelay().AsDuration() != 1500*time.Millisecond {
		t.Errorf("retry %v", retry)
	}
	if md := e.trailer(); md.Get(TrailerReason)[0] != "AGENT_OVERLOADED" || md.Get(TrailerRetryAfter)[0] != "1500" {
		t.Errorf("trailers %v", md)
	}
	if !errors.Is(err, secret) {
		t.Error("the cause is lost to the log")
	}
}

func TestToErrorKeepsTheCallersLeaving(t *testing.T) {
	for _, err := range []error{context.Canceled, context.DeadlineExceeded} {
		if got, want := status.Code(toError(fmt.Errorf("reading: %w", err))), status.FromContextError(err).Code(); got != want {
			t.Errorf("%v became %v", err, got)
		}
	}
	var e *Error
	if !errors.As(toError(errors.New("a bug")), &e) || e.Code != codes.Internal {
		t.Error("an unknown error is not INTERNAL")
	}
}
