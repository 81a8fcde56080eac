package source

import "time"

// Kind says what a counted line is (contract 2.2, 5.1, 6.4).
type Kind uint8

const (
	// Unreadable is a counted line that is none of the others.
	Unreadable Kind = iota
	// Commit is a protocol-27 line of facts.
	Commit
	// Progress is a protocol-27 line with one preview record.
	Progress
	// Event is a line of protocol 21 to 26: one event.
	Event
)

// Flaw says why a line is unreadable.
type Flaw uint8

const (
	// NoFlaw: the line is readable.
	NoFlaw Flaw = iota
	// InvalidJSON: not JSON as JavaScript reads it, or nested too deep.
	InvalidJSON
	// NotAnObject: JSON, but no object.
	NotAnObject
	// UnknownShape: an object of no known kind.
	UnknownShape
	// MalformedPosition: a position record whose next is no safe integer.
	MalformedPosition
	// TooLarge: over the line limit, skipped on request.
	TooLarge
)

// Line is one counted line of a session's stored stream. It is immutable once yielded, and everything in it
// aliases Raw: keep a Line or drop it, never write to it.
type Line struct {
	// Number is the line's place in the stored stream, from 0.
	Number uint64
	// Place is how many lines were consumed before this one: Number, except for an event up to version 26 that a
	// live stream delivered out of its stored order (contract O4). The position of a reader counts places.
	Place uint64
	// Version is the stream version of the connection that brought the line, 21 to 27.
	Version uint32
	// Kind says which of the fields below are meaningful.
	Kind Kind
	// Terminal: no record of a later line belongs to the session (contract 4.1, 5.6).
	Terminal bool
	// Raw is the line without its line end. nil for TooLarge.
	Raw []byte
	// Size is the length of the line without its line end, in bytes; that of Raw unless the line is TooLarge.
	Size int64
	// Records are the line's records in order: a commit's facts, or the one record of a progress or event line.
	Records []Record
	// At is a commit's time. Zero when AtText is not RFC 3339, and for all other kinds.
	At time.Time
	// AtText is a commit's time as written.
	AtText string
	// Identity is the anchor of the line (api.md, "Verified"): equal for two spellings of the same line, different
	// for different lines. Empty when the line cannot be identified.
	Identity string
	// Anchor is what a reader must remember to verify the position behind the line: Identity and, up to version 26,
	// marks of the lines consumed before it. Set on yielded lines.
	Anchor string
	// Flaw and Detail say what is wrong with an Unreadable line; Detail never quotes it.
	Flaw   Flaw
	Detail string
}

// Scope names the owners of a record; empty fields are absent.
type Scope struct {
	TurnID, RunID, TaskID, ChangeID string
}

// Record is one record of a line.
type Record struct {
	// Type is the name on the wire.
	Type string
	// Raw is the record as the server wrote it: one fact, one progress record, or one whole event.
	Raw []byte
	// Data is the value of the record's data member as written; nil when there is none.
	Data []byte
	// Scope is the record's scope; HasScope tells an empty one from none. Protocol 27 only.
	Scope    Scope
	HasScope bool
	// Meta is set for events that have one. Protocol 21 to 26 only.
	Meta *Meta
}

// Meta is what an event of protocol 21 to 26 says about itself.
type Meta struct {
	// ID is minted once when the event is written; empty below version 20.
	ID string
	// At is the time of writing; zero when AtText is not RFC 3339.
	At time.Time
	// AtText is the time as written.
	AtText string
	// DeliveryIDs are the deliveries the event belongs to.
	DeliveryIDs []string
}
