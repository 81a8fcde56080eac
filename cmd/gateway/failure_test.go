package main

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/evegateway/evegateway/cursor/follow"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// TestNextStep: whatever went wrong, there is something to do.
func TestNextStep(t *testing.T) {
	t.Parallel()
	for _, name := range evev1.ErrorReason_name {
		if nextStep(&follow.Error{Code: codes.FailedPrecondition, Reason: strings.TrimPrefix(name, "ERROR_REASON_")}) == "" {
			t.Errorf("%s: nothing to do", name)
		}
	}
	tests := []struct {
		failed follow.Error
		want   string
	}{
		{follow.Error{Code: codes.FailedPrecondition, Reason: "CURSOR_DIVERGED"}, "remove the cursor file"},
		{follow.Error{Code: codes.FailedPrecondition, Reason: "SESSION_STRANDED"}, "--until tail"},
		{follow.Error{Code: codes.Unimplemented}, "check that --server is a gateway"},
		{follow.Error{Code: codes.Unavailable}, "check that a gateway listens there"},
		{follow.Error{Code: codes.Unknown}, "run this again"},
	}
	for _, tt := range tests {
		if got := nextStep(&tt.failed); !strings.Contains(got, tt.want) {
			t.Errorf("%v %s: %q, want %q", tt.failed.Code, tt.failed.Reason, got, tt.want)
		}
	}
}
