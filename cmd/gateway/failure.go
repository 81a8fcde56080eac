package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// failure is a call that failed, taken apart.
type failure struct {
	code codes.Code
	// reason is the gateway's, a name of eve.v1.ErrorReason without its prefix; empty when it did not come from one.
	reason  string
	message string
	// fields of the request that are at fault.
	fields []string
	// retryAfter is how long to wait at least, if the gateway says so.
	retryAfter time.Duration
	// broken: no status came at all.
	broken bool
	err    error
}

// newFailure takes the details of a status, or else the trailers that repeat them.
func newFailure(err error, trailer metadata.MD) *failure {
	s := status.Convert(err)
	f := &failure{code: s.Code(), message: s.Message(), err: err}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == "eve.v1" {
				f.reason = d.GetReason()
			}
		case *errdetails.RetryInfo:
			f.retryAfter = d.GetRetryDelay().AsDuration()
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				f.fields = append(f.fields, v.GetField())
			}
		}
	}
	if v := trailer.Get("eve-error-reason"); f.reason == "" && len(v) > 0 {
		f.reason = v[0]
	}
	if v := trailer.Get("eve-retry-after-ms"); f.retryAfter == 0 && len(v) > 0 {
		if ms, err := strconv.ParseUint(v[0], 10, 31); err == nil {
			f.retryAfter = time.Duration(ms) * time.Millisecond
		}
	}
	return f
}

func (f *failure) Error() string {
	switch {
	case f.reason != "":
		return fmt.Sprintf("%s (%s): %s", f.reason, f.code, f.message)
	case f.code == codes.OK:
		return f.message
	}
	return fmt.Sprintf("%s: %s", f.code, f.message)
}

func (f *failure) Unwrap() error { return f.err }

// retryable tells whether the same call can do better a little later.
func (f *failure) retryable() bool {
	switch f.code {
	case codes.Unavailable, codes.Aborted:
		return true
	case codes.ResourceExhausted:
		return f.reason != "" // else a message was too large for this client, and will be again
	default:
		return f.broken
	}
}

// next says what to do about it.
func (f *failure) next() string {
	switch f.reason {
	case "CURSOR_INVALID":
		return "the saved cursor is not one of this session; name the session it is of, or another --cursor-file"
	case "CURSOR_AHEAD":
		return "the session is shorter than what was read of it, as after a restore; to read it anew, remove the cursor file"
	case "CURSOR_DIVERGED":
		return "the session's history is not the one that was read; to read it anew, remove the cursor file"
	case "HISTORY_EXPIRED":
		return "what was not read is lost; to start anew, if the session goes on, remove the cursor file"
	case "STREAM_VERSION_CHANGED":
		return "the agent was moved to another version of Eve while a line was half read; to read it anew, remove the cursor file"
	case "STREAM_VERSION_UNSUPPORTED":
		return "this gateway cannot read that version of Eve; use a newer gateway"
	case "SESSION_STRANDED":
		return "the session can go on nowhere; its history can be read with --until tail"
	case "SESSION_NOT_FOUND":
		return "check the session's id, and that the gateway is in front of its agent"
	case "CREDENTIALS_INVALID", "CREDENTIALS_EXPIRED", "ACCESS_DENIED":
		return "ask whoever runs the gateway for access"
	case "AGENT_REFUSED_CREDENTIALS":
		return "the agent refuses the gateway: check --eve-bearer-file of gateway serve"
	case "AGENT_UNAVAILABLE":
		return "check that the agent runs and that --eve-url of gateway serve leads to it; then run this again"
	case "LINE_TOO_LARGE":
		return "raise --max-line-bytes of gateway serve"
	case "INTERNAL":
		return "report it with the id in the gateway's log"
	}
	switch {
	case len(f.fields) > 0:
		return "the gateway does not take " + strings.Join(f.fields, ", ") + " as it was asked for"
	case f.code == codes.Unimplemented:
		return "check that --server is a gateway"
	case f.retryable():
		return "check that a gateway listens there; then run this again"
	}
	return "run this again; what was read is not lost"
}
