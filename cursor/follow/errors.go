package follow

import (
	"fmt"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// Error is a call that failed. It unwraps to the error of gRPC, whose [status.FromError] has all the details.
type Error struct {
	// Code is the status code. It is UNAVAILABLE for a call that fell silent, and INTERNAL for one that broke the rules
	// of the API.
	Code codes.Code
	// Reason is a name of eve.v1.ErrorReason without its prefix, such as CURSOR_DIVERGED, known to this build or not.
	// Empty: the failure is not the gateway's, but that of a connection or of something in between.
	Reason string
	// RetryAfter is how long the gateway asks to wait. 0: it does not.
	RetryAfter time.Duration

	err error
}

// Error implements error.
func (e *Error) Error() string {
	message := status.Convert(e.err).Message()
	if e.Reason == "" {
		return fmt.Sprintf("follow: %v: %s", e.Code, message)
	}
	return fmt.Sprintf("follow: %s (%v): %s", e.Reason, e.Code, message)
}

// Unwrap returns the error of gRPC.
func (e *Error) Unwrap() error { return e.err }

// newError takes apart the error of a call: the details of its status, or else the trailers that repeat them, since
// not everything between a gateway and its clients lets details through.
func newError(err error, trailer metadata.MD) *Error {
	s := status.Convert(err)
	e := &Error{Code: s.Code(), err: err}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == "eve.v1" {
				e.Reason = d.GetReason()
			}
		case *errdetails.RetryInfo:
			e.RetryAfter = max(0, d.GetRetryDelay().AsDuration())
		}
	}
	if v := trailer.Get("eve-error-reason"); e.Reason == "" && len(v) > 0 {
		e.Reason = v[0]
	}
	if v := trailer.Get("eve-retry-after-ms"); e.RetryAfter == 0 && len(v) > 0 {
		if ms, err := strconv.ParseUint(v[0], 10, 40); err == nil {
			e.RetryAfter = time.Duration(ms) * time.Millisecond
		}
	}
	return e
}

// verdict is what a failure means for the next call.
type verdict uint8

const (
	// final: the next call would fail the same way.
	final verdict = iota
	// onceMore: the next call may do better, if this one did well at first.
	onceMore
	// again: what is wrong can pass.
	again
)

// verdictOf decides by the reason; by the code when there is none, or one that this build does not know.
func verdictOf(e *Error) verdict {
	reason, known := evev1.ErrorReason_value["ERROR_REASON_"+e.Reason]
	switch {
	case known:
		return ofReason(evev1.ErrorReason(reason))
	case e.Reason != "" && e.RetryAfter > 0:
		return again // RetryInfo is there where a retry can help
	}
	return ofCode(e.Code)
}

// ofReason is the table of api.md section 5, with the reasons that eve.v1.ErrorReason has beyond it.
func ofReason(r evev1.ErrorReason) verdict {
	switch r {
	case evev1.ErrorReason_ERROR_REASON_AGENT_UNAVAILABLE,
		evev1.ErrorReason_ERROR_REASON_AGENT_OVERLOADED,
		evev1.ErrorReason_ERROR_REASON_SESSION_NOT_READY,
		evev1.ErrorReason_ERROR_REASON_ACCESS_UNDECIDED,
		evev1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED,
		evev1.ErrorReason_ERROR_REASON_OVERLOADED,
		evev1.ErrorReason_ERROR_REASON_DRAINING,
		evev1.ErrorReason_ERROR_REASON_STREAM_MAX_AGE:
		return again
	case evev1.ErrorReason_ERROR_REASON_CREDENTIALS_EXPIRED:
		return onceMore // the next call may carry a new credential
	case evev1.ErrorReason_ERROR_REASON_UNSPECIFIED,
		evev1.ErrorReason_ERROR_REASON_REQUEST_INVALID,
		evev1.ErrorReason_ERROR_REASON_CURSOR_INVALID,
		evev1.ErrorReason_ERROR_REASON_CURSOR_AHEAD,
		evev1.ErrorReason_ERROR_REASON_HISTORY_EXPIRED,
		evev1.ErrorReason_ERROR_REASON_CURSOR_DIVERGED,
		evev1.ErrorReason_ERROR_REASON_STREAM_VERSION_CHANGED,
		evev1.ErrorReason_ERROR_REASON_STREAM_VERSION_UNSUPPORTED,
		evev1.ErrorReason_ERROR_REASON_SESSION_STRANDED,
		evev1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND,
		evev1.ErrorReason_ERROR_REASON_SESSION_NOT_ACTIVE,
		evev1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID,
		evev1.ErrorReason_ERROR_REASON_ACCESS_DENIED,
		evev1.ErrorReason_ERROR_REASON_AGENT_REFUSED_CREDENTIALS,
		evev1.ErrorReason_ERROR_REASON_AGENT_CONFLICT,
		evev1.ErrorReason_ERROR_REASON_LINE_TOO_LARGE,
		evev1.ErrorReason_ERROR_REASON_SEND_OUTCOME_UNKNOWN,
		evev1.ErrorReason_ERROR_REASON_INTERNAL:
	}
	return final
}

// ofCode is for failures that do not come from a gateway: grpc-go's own, and those of proxies.
func ofCode(c codes.Code) verdict {
	switch c {
	case codes.Unavailable, codes.Aborted:
		return again
	case codes.Internal, codes.Unknown, codes.Canceled, codes.DeadlineExceeded, codes.ResourceExhausted:
		// A stream that was reset, a proxy's time limit, a connection that was closed; or a message that cannot be
		// received, and never will be.
		return onceMore
	default:
		return final
	}
}
