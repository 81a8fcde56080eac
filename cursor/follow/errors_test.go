package follow

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

func (v verdict) String() string { return [...]string{"final", "once more", "again"}[v] }

// TestVerdictOfReasons is the table of api.md section 5.
func TestVerdictOfReasons(t *testing.T) {
	t.Parallel()
	table := []struct {
		code   codes.Code
		reason string
		want   verdict
	}{
		{codes.InvalidArgument, "REQUEST_INVALID", final},
		{codes.Unimplemented, "REQUEST_INVALID", final},
		{codes.InvalidArgument, "CURSOR_INVALID", final},
		{codes.OutOfRange, "CURSOR_AHEAD", final},
		{codes.OutOfRange, "HISTORY_EXPIRED", final},
		{codes.FailedPrecondition, "CURSOR_DIVERGED", final},
		{codes.FailedPrecondition, "STREAM_VERSION_CHANGED", final},
		{codes.Unimplemented, "STREAM_VERSION_UNSUPPORTED", final},
		{codes.FailedPrecondition, "SESSION_STRANDED", final},
		{codes.NotFound, "SESSION_NOT_FOUND", final},
		{codes.FailedPrecondition, "SESSION_NOT_ACTIVE", final},
		{codes.Unavailable, "SESSION_NOT_READY", again},
		{codes.Unauthenticated, "CREDENTIALS_INVALID", final},
		{codes.Unauthenticated, "CREDENTIALS_EXPIRED", onceMore},
		{codes.PermissionDenied, "ACCESS_DENIED", final},
		{codes.Unavailable, "ACCESS_UNDECIDED", again},
		{codes.Internal, "AGENT_REFUSED_CREDENTIALS", final},
		{codes.Unavailable, "AGENT_UNAVAILABLE", again},
		{codes.ResourceExhausted, "AGENT_OVERLOADED", again},
		{codes.FailedPrecondition, "AGENT_CONFLICT", final},
		{codes.FailedPrecondition, "LINE_TOO_LARGE", final},
		{codes.ResourceExhausted, "QUOTA_EXCEEDED", again},
		{codes.ResourceExhausted, "OVERLOADED", again},
		{codes.Aborted, "DRAINING", again},
		{codes.Unavailable, "DRAINING", again},
		{codes.Aborted, "STREAM_MAX_AGE", again},
		{codes.Unknown, "SEND_OUTCOME_UNKNOWN", final},
		{codes.Internal, "INTERNAL", final},
	}
	untested := maps.Clone(evev1.ErrorReason_value)
	delete(untested, evev1.ErrorReason_ERROR_REASON_UNSPECIFIED.String())
	for _, row := range table {
		delete(untested, "ERROR_REASON_"+row.reason)
		for _, retry := range []time.Duration{0, time.Second} {
			if got := verdictOf(&Error{Code: row.code, Reason: row.reason, RetryAfter: retry}); got != row.want {
				t.Errorf("%v %s: %v, want %v", row.code, row.reason, got, row.want)
			}
		}
	}
	if len(untested) > 0 {
		t.Errorf("reasons without a row: %v", slices.Sorted(maps.Keys(untested)))
	}
}

// TestVerdictOfCodes: failures without a reason, or with one of a later gateway.
func TestVerdictOfCodes(t *testing.T) {
	t.Parallel()
	want := map[codes.Code]verdict{
		codes.Canceled: onceMore, codes.Unknown: onceMore, codes.InvalidArgument: final, codes.DeadlineExceeded: onceMore,
		codes.NotFound: final, codes.AlreadyExists: final, codes.PermissionDenied: final, codes.ResourceExhausted: onceMore,
		codes.FailedPrecondition: final, codes.Aborted: again, codes.OutOfRange: final, codes.Unimplemented: final,
		codes.Internal: onceMore, codes.Unavailable: again, codes.DataLoss: final, codes.Unauthenticated: final,
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		w, ok := want[code]
		if !ok {
			t.Errorf("%v has no row", code)
		}
		for _, e := range []*Error{{Code: code}, {Code: code, RetryAfter: time.Second}, {Code: code, Reason: "OF_A_LATER_BUILD"}} {
			if got := verdictOf(e); got != w {
				t.Errorf("%+v: %v, want %v", e, got, w)
			}
		}
		if got := verdictOf(&Error{Code: code, Reason: "OF_A_LATER_BUILD", RetryAfter: time.Second}); got != again {
			t.Errorf("%v with RetryInfo: %v", code, got)
		}
	}
}

func TestNewError(t *testing.T) {
	t.Parallel()
	info := &errdetails.ErrorInfo{Domain: "eve.v1", Reason: "DRAINING"}
	retry := &errdetails.RetryInfo{RetryDelay: durationpb.New(3 * time.Second)}
	tests := []struct {
		name    string
		details []protoadapt.MessageV1
		trailer metadata.MD
		reason  string
		retry   time.Duration
	}{
		{"nothing", nil, nil, "", 0},
		{"details", []protoadapt.MessageV1{info, retry}, nil, "DRAINING", 3 * time.Second},
		{"details win", []protoadapt.MessageV1{info, retry}, metadata.Pairs("eve-error-reason", "X", "eve-retry-after-ms", "9"), "DRAINING", 3 * time.Second},
		{"trailers", nil, metadata.Pairs("eve-error-reason", "DRAINING", "eve-retry-after-ms", "1500"), "DRAINING", 1500 * time.Millisecond},
		{"another domain", []protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: "example.com", Reason: "DRAINING"}}, nil, "", 0},
		{"a negative wait", []protoadapt.MessageV1{info, &errdetails.RetryInfo{RetryDelay: durationpb.New(-time.Second)}}, nil, "DRAINING", 0},
		{"trailers of nonsense", nil, metadata.Pairs("eve-retry-after-ms", "-5"), "", 0},
		{"trailers of nonsense", nil, metadata.Pairs("eve-retry-after-ms", "99999999999999999999"), "", 0},
		{"trailers of nonsense", nil, metadata.Pairs("eve-retry-after-ms", "soon"), "", 0},
	}
	for _, tt := range tests {
		s, err := status.New(codes.Aborted, "told").WithDetails(tt.details...)
		if err != nil {
			t.Fatal(err)
		}
		e := newError(s.Err(), tt.trailer)
		if e.Code != codes.Aborted || e.Reason != tt.reason || e.RetryAfter != tt.retry {
			t.Errorf("%s: %+v", tt.name, e)
		}
		if text := e.Error(); !strings.Contains(text, "Aborted") || !strings.Contains(text, tt.reason) || !strings.HasSuffix(text, ": told") {
			t.Errorf("%s: text %q", tt.name, text)
		}
	}
	plain := errors.New("no status")
	if e := newError(plain, nil); e.Code != codes.Unknown || !errors.Is(e, plain) {
		t.Errorf("%+v", e)
	}
}

// TestBackoffWait: the bounds of each wait, with the random part at both ends.
func TestBackoffWait(t *testing.T) {
	t.Parallel()
	const s = time.Second
	none := func(int64) int64 { return 0 }
	all := func(n int64) int64 { return n - 1 }
	tests := []struct {
		b           Backoff
		row         int
		asked       time.Duration
		least, most time.Duration
	}{
		{Backoff{}, 0, 0, 125 * time.Millisecond, 250 * time.Millisecond},
		{Backoff{}, 3, 0, 1 * s, 2 * s},
		{Backoff{}, math.MaxInt, 0, 5 * s, 10 * s},
		{Backoff{}, 0, 7 * s, 7 * s, 7*s + 125*time.Millisecond},
		{Backoff{}, 100, 7 * s, 7 * s, 12 * s},
		{Backoff{}, 100, 3 * s, 5 * s, 10 * s},
		{Backoff{Base: -1, Max: -1}, 0, 0, 125 * time.Millisecond, 250 * time.Millisecond},
		{Backoff{Base: 30 * s, Max: 10 * s}, 0, 0, 5 * s, 10 * s},
		{Backoff{Base: s, Max: 3 * s}, 1, 0, s, 2 * s},
		{Backoff{Base: s, Max: 3 * s}, 2, 0, 3 * s / 2, 3 * s},
		{Backoff{Base: 1, Max: 1}, 5, 0, 0, 0},
		{Backoff{}, 0, math.MaxInt64, math.MaxInt64 / 2, math.MaxInt64/2 + 125*time.Millisecond},
		{Backoff{Base: s, Max: math.MaxInt64}, 1000, 0, math.MaxInt64 / 2, math.MaxInt64 - 1},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%+v/%d/%v", tt.b, tt.row, tt.asked), func(t *testing.T) {
			t.Parallel()
			tt.b.complete()
			const rounding = 2
			if got := tt.b.wait(tt.row, tt.asked, none); got < tt.least-rounding || got > tt.least {
				t.Errorf("at least %v, want %v", got, tt.least)
			}
			if got := tt.b.wait(tt.row, tt.asked, all); got < tt.most-rounding || got > tt.most {
				t.Errorf("at most %v, want %v", got, tt.most)
			}
		})
	}
}
