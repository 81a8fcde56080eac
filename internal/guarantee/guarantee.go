package guarantee

import (
	"errors"
	"fmt"
)

// The guarantees. Each text is the promise; a [Violation] is the one it breaks.
var (
	ErrOrdered = errors.New("ordered: records come in the order in which they are stored, by line and by slot")
	ErrUnique  = errors.New("unique: no record comes again behind a cursor that has consumed it")
	ErrGapless = errors.New("gapless or told: what is stored and wanted comes, or a checkpoint or an error says that it does not")
	// ErrResumable is broken by an error only where nothing happened to the history before the cursor.
	ErrResumable    = errors.New("resumable: every cursor that was handed out can be read from")
	ErrVerified     = errors.New("verified: a stream never goes on with another history than the one it began")
	ErrAtomicEnd    = errors.New("atomic end: a response that says why it ended has everything up to there, the commit that ended it whole")
	ErrBookmarkable = errors.New("bookmarkable: all that a message's cursor counts as consumed was delivered, filtered or reported, and no more was")
	ErrBounded      = errors.New("bounded: no message is larger than asked for, and no slow client makes the gateway hoard")
	ErrIsolated     = errors.New("isolated: nothing comes that is not of the session that was asked for")
)

// All are the guarantees, in the order in which they are told.
func All() []error {
	return []error{
		ErrOrdered, ErrUnique, ErrGapless, ErrResumable, ErrVerified, ErrAtomicEnd, ErrBookmarkable, ErrBounded, ErrIsolated,
	}
}

// Violation is one broken promise.
type Violation struct {
	// Guarantee is one of [All].
	Guarantee error
	// Call is the index of the call, and Message that of the message, or the number of messages where the end of the
	// call is what is wrong.
	Call, Message int
	// Detail says what was expected and what came. It names types and coordinates, never payload.
	Detail string
}

// String says where which promise was broken, and how.
func (v Violation) String() string {
	return fmt.Sprintf("call %d, message %d: %s (%v)", v.Call, v.Message, v.Detail, v.Guarantee)
}
