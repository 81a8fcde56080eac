package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/cursor"
	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// Domain is the domain of every ErrorInfo.
const Domain = "eve.v1"

// Trailers that repeat the reason and the retry delay for clients that cannot decode details.
const (
	TrailerReason     = "eve-error-reason"
	TrailerRetryAfter = "eve-retry-after-ms"
)

// Error is an error of the API. It converts to a gRPC status with ErrorInfo, RetryInfo and BadRequest details.
type Error struct {
	Code   codes.Code
	Reason evev1.ErrorReason
	// Message is for people and safe to show: it says what, where, and what to do next.
	Message string
	// Metadata goes into ErrorInfo.
	Metadata map[string]string
	// RetryAfter is set where a retry can help.
	RetryAfter time.Duration
	// Field is the request field at fault, by its proto path.
	Field string
	// Err is the cause. It goes to logs, never to callers.
	Err error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// ReasonName is the reason as it stands in details and trailers.
func (e *Error) ReasonName() string {
	return strings.TrimPrefix(e.Reason.String(), "ERROR_REASON_")
}

// GRPCStatus makes the status that the caller sees.
func (e *Error) GRPCStatus() *status.Status {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: e.ReasonName(), Domain: Domain, Metadata: e.Metadata}}
	if e.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)})
	}
	if e.Field != "" {
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: e.Field, Description: e.Message},
		}})
	}
	s, err := status.New(e.Code, e.Message).WithDetails(details...)
	if err != nil { // a detail that cannot be encoded: the code and the trailers still tell
		return status.New(e.Code, e.Message)
	}
	return s
}

// trailer repeats the essentials of an error in plain text.
func (e *Error) trailer() metadata.MD {
	md := metadata.Pairs(TrailerReason, e.ReasonName())
	if e.RetryAfter > 0 {
		md.Set(TrailerRetryAfter, strconv.FormatInt(e.RetryAfter.Milliseconds(), 10))
	}
	return md
}

func invalid(field, format string, args ...any) *Error {
	return &Error{Code: codes.InvalidArgument, Reason: evev1.ErrorReason_ERROR_REASON_REQUEST_INVALID,
		Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
}

func invalidCursor(field, format string, args ...any) *Error {
	e := invalid(field, format, args...)
	e.Reason = evev1.ErrorReason_ERROR_REASON_CURSOR_INVALID
	return e
}

// sourceCode says which code and reason each failure of source has.
func sourceCode(r source.Reason) (codes.Code, evev1.ErrorReason) {
	switch r {
	case source.NotFound:
		return codes.NotFound, evev1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND
	case source.Stranded:
		return codes.FailedPrecondition, evev1.ErrorReason_ERROR_REASON_SESSION_STRANDED
	case source.Expired:
		return codes.OutOfRange, evev1.ErrorReason_ERROR_REASON_HISTORY_EXPIRED
	case source.Ahead:
		return codes.OutOfRange, evev1.ErrorReason_ERROR_REASON_CURSOR_AHEAD
	case source.Diverged:
		return codes.FailedPrecondition, evev1.ErrorReason_ERROR_REASON_CURSOR_DIVERGED
	case source.VersionUnsupported:
		return codes.Unimplemented, evev1.ErrorReason_ERROR_REASON_STREAM_VERSION_UNSUPPORTED
	case source.VersionInsideLine:
		return codes.FailedPrecondition, evev1.ErrorReason_ERROR_REASON_STREAM_VERSION_CHANGED
	case source.LineTooLarge:
		return codes.FailedPrecondition, evev1.ErrorReason_ERROR_REASON_LINE_TOO_LARGE
	case source.Refused:
		return codes.Internal, evev1.ErrorReason_ERROR_REASON_AGENT_REFUSED_CREDENTIALS
	case source.Overloaded:
		return codes.ResourceExhausted, evev1.ErrorReason_ERROR_REASON_AGENT_OVERLOADED
	case source.Conflict:
		return codes.FailedPrecondition, evev1.ErrorReason_ERROR_REASON_AGENT_CONFLICT
	case source.Rejected:
		return codes.InvalidArgument, evev1.ErrorReason_ERROR_REASON_REQUEST_INVALID
	case source.Unavailable:
		return codes.Unavailable, evev1.ErrorReason_ERROR_REASON_AGENT_UNAVAILABLE
	}
	return codes.Internal, evev1.ErrorReason_ERROR_REASON_INTERNAL
}

// toError maps any error to one of the API. A context's error stays what it is: the caller has left, or its
// deadline has.
func toError(err error) error {
	var own *Error
	var src *source.Error
	var cur *cursor.Error
	var refused *auth.Error
	switch {
	case err == nil, errors.As(err, &own):
		return err
	case errors.As(err, &src) && src.Reason == source.NotFound:
		return noSession(err)
	case errors.As(err, &src) && !errors.As(err, &refused):
		code, reason := sourceCode(src.Reason)
		return &Error{Code: code, Reason: reason, Message: src.Message, Metadata: maps.Clone(src.Meta),
			RetryAfter: src.RetryAfter, Err: err}
	case errors.As(err, &refused): // in a source.Error: the caller's own token, passed through, and the caller's to mend
		return refusal(refused, err)
	case errors.As(err, &cur):
		field := "cursor"
		if cur.Field != "" {
			field += "." + cur.Field
		}
		e := invalidCursor(field, "%s", cur.Problem)
		if errors.Is(err, cursor.ErrVersionInsideLine) {
			e.Code, e.Reason = codes.FailedPrecondition, evev1.ErrorReason_ERROR_REASON_STREAM_VERSION_CHANGED
		}
		return e
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	if _, ok := status.FromError(err); ok && !errors.Is(err, io.EOF) {
		return err // of grpc itself: the stream is broken
	}
	return internal("", err)
}

// noSession is the answer for a session that is unknown, or hidden from the caller: nothing tells one from the other.
func noSession(cause error) *Error {
	return &Error{Code: codes.NotFound, Reason: evev1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND, Message: "no such session", Err: cause}
}

// refusal maps a decision of auth.
func refusal(r *auth.Error, err error) *Error {
	e := &Error{Message: r.Message, Err: err}
	switch r.Reason {
	case auth.Unauthenticated:
		e.Code, e.Reason = codes.Unauthenticated, evev1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID
	case auth.Expired:
		e.Code, e.Reason = codes.Unauthenticated, evev1.ErrorReason_ERROR_REASON_CREDENTIALS_EXPIRED
	case auth.Denied:
		e.Code, e.Reason = codes.PermissionDenied, evev1.ErrorReason_ERROR_REASON_ACCESS_DENIED
	case auth.Hidden:
		return noSession(err)
	case auth.Unavailable:
		e.Code, e.Reason = codes.Unavailable, evev1.ErrorReason_ERROR_REASON_ACCESS_UNDECIDED
		e.RetryAfter = time.Second
	}
	return e
}

// internal is a bug: the caller gets an id to quote, the log the rest.
func internal(id string, err error) *Error {
	e := &Error{Code: codes.Internal, Reason: evev1.ErrorReason_ERROR_REASON_INTERNAL,
		Message: "the gateway failed; quote the id when reporting it", Err: err}
	if id != "" {
		e.Metadata = map[string]string{"id": id}
	}
	return e
}
