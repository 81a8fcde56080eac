package source

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Reason says what ended a read or a request for good, after all retries that could help.
type Reason uint8

const (
	// Unavailable: Eve cannot be reached, or answers nonsense, after the retry budget.
	Unavailable Reason = iota + 1
	// NotFound: no such session.
	NotFound
	// Stranded: the session can be followed nowhere; its history can be read bounded.
	Stranded
	// Expired: the history is gone.
	Expired
	// Ahead: the position lies beyond the session's tail.
	Ahead
	// Diverged: the line before the position is not the one that was read.
	Diverged
	// VersionUnsupported: no stream version, or one outside 21..27.
	VersionUnsupported
	// VersionInsideLine: the generation changed while a line was partly consumed.
	VersionInsideLine
	// LineTooLarge: a line over the limit.
	LineTooLarge
	// Refused: Eve refused the gateway's credentials, after one forced refresh.
	Refused
	// Overloaded: Eve asks to slow down (429).
	Overloaded
	// Conflict: a conflict without a reason of its own (409).
	Conflict
	// Rejected: Eve says the request is malformed (400).
	Rejected
)

// Error is the one error type of this package.
type Error struct {
	Reason  Reason
	Message string
	// Meta are facts about the error that are safe to show: numbers, versions, statuses. Never payload.
	Meta map[string]string
	// RetryAfter is how long to wait before a retry can help; zero when unknown or when none can.
	RetryAfter time.Duration
	// Err is the cause. It may quote what Eve sent.
	Err error
	// Cause is what of Err is safe to log: an address that refuses, what of an answer was no stream.
	Cause string
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// nonsense is what makes an answer none that Eve gives, in words of this package.
type nonsense string

func (n nonsense) Error() string { return string(n) }

// safeCause is what of an error can be logged: HTTP errors may quote what the other side sent.
func safeCause(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Error()
	}
	if n, ok := errors.AsType[nonsense](err); ok {
		return n.Error()
	}
	switch {
	case errors.Is(err, errOpenTimeout):
		return errOpenTimeout.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	}
	return fmt.Sprintf("%T", err)
}

func failf(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Message: fmt.Sprintf(format, args...)}
}
