package cursor

import "errors"

// The kinds of [Error], to be matched with [errors.Is]. Each error has exactly one.
var (
	// ErrInvalid: the cursor contradicts itself or is out of range, or its encoded form cannot be read.
	ErrInvalid = errors.New("invalid cursor")
	// ErrOtherStream: two cursors are of different agents, sessions or children, and have no order.
	ErrOtherStream = errors.New("cursors of different streams")
	// ErrOtherLine: the line is not the one the cursor stands at.
	ErrOtherLine = errors.New("not the cursor's line")
	// ErrSessionEnded: the cursor has consumed the session's terminal line, and no line behind it belongs to the
	// session.
	ErrSessionEnded = errors.New("session ended")
	// ErrSlotBeyondLine: the cursor stands inside its line, behind more records than the line has. The history is
	// not the one the cursor comes from.
	ErrSlotBeyondLine = errors.New("position beyond the end of its line")
	// ErrVersionInsideLine: the cursor stands inside a line of version 27, and the server now answers with a
	// version whose lines have no inside (contract 6.4).
	ErrVersionInsideLine = errors.New("stream version changed inside a line")
)

// Error is the type of every error of this package.
type Error struct {
	// Field is the path of the field at fault in eve.v1.Cursor, by its proto names: "stream_index" or
	// "child.call_id". Empty when an encoded form could not be read at all.
	Field string
	// Problem says what is wrong with the field, to be read after its name: "is beyond 9007199254740991".
	Problem string

	kind error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Field == "" {
		return "cursor: " + e.Problem
	}
	return "cursor: " + e.Field + " " + e.Problem
}

// Unwrap returns the kind of the error: one of the sentinels.
func (e *Error) Unwrap() error { return e.kind }

func invalid(field, problem string) *Error {
	return &Error{Field: field, Problem: problem, kind: ErrInvalid}
}
