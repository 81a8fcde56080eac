package auth

import (
	"errors"
	"fmt"
)

// Reason says why a call is refused.
type Reason uint8

const (
	// Unauthenticated: no credential that the gateway takes, or one that does not hold. CREDENTIALS_INVALID.
	Unauthenticated Reason = iota + 1
	// Expired: the credential has run out; a new one helps. CREDENTIALS_EXPIRED.
	Expired
	// Denied: the caller is known and may not. ACCESS_DENIED.
	Denied
	// Hidden: the session is not the caller's. Answer exactly as for one that does not exist: SESSION_NOT_FOUND.
	Hidden
	// Unavailable: it cannot be decided now, because something that knows is out of reach. A retry can help.
	Unavailable
)

func (r Reason) String() string {
	switch r {
	case Unauthenticated:
		return "unauthenticated"
	case Expired:
		return "expired"
	case Denied:
		return "denied"
	case Hidden:
		return "hidden"
	case Unavailable:
		return "unavailable"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Error is why a call is refused.
type Error struct {
	Reason Reason
	// Message tells the caller what is wrong and what to do. It holds nothing secret and nothing of other callers.
	Message string
	// Err is the cause, for logs: never a token, but names of the configuration.
	Err error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// Refuse makes an Error.
func Refuse(r Reason, message string, cause error) *Error {
	return &Error{Reason: r, Message: message, Err: cause}
}

// ReasonOf is the reason of an Error in err's chain. Any other error is Unavailable: what failed has not been decided,
// and what has not been decided is refused.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return Unavailable
}
