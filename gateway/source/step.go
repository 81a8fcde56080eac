package source

import "time"

// StepKind says what a Step is.
type StepKind uint8

const (
	// StepLine: a counted line. Every line from the start on is yielded exactly once, in order, or is in a StepSkipped.
	StepLine StepKind = iota + 1
	// StepPositioned: the relative start is resolved. The first step of a relative read.
	StepPositioned
	// StepSkipped: Eve reported that it skipped lines.
	StepSkipped
	// StepCaughtUp: everything up to the tail of the open has been yielded.
	StepCaughtUp
	// StepVersionChanged: Eve answers with the other generation of the protocol from here on.
	StepVersionChanged
	// StepEnded: nothing follows. The last step.
	StepEnded
)

// End says why a read is complete.
type End uint8

const (
	// SessionEnded: the session's terminal line was yielded, or stands right before the start.
	SessionEnded End = iota + 1
	// BoundReached: the pinned tail was reached.
	BoundReached
	// StreamClosed: Eve closed the stored stream; no end of the session was seen.
	StreamClosed
)

// Step is one step of a read.
type Step struct {
	Kind StepKind
	// Line of a StepLine.
	Line *Line
	// Next is the line number after the step: where the read stands.
	Next uint64
	// From is the first line of a StepSkipped; the range ends before Next.
	From uint64
	// Tail of a StepCaughtUp: the last line that is meant, -1 when there was none.
	Tail int64
	// Version is the stream version of the connection. Set for StepPositioned, StepSkipped, StepVersionChanged.
	Version uint32
	// Before describes the line before a StepPositioned; zero when there is none or it was skipped.
	Before Before
	// End of a StepEnded.
	End End
}

// Before is what a read knows of the line before its start.
type Before struct {
	Identity string
	At       time.Time
	Terminal bool
}
