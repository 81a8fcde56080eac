package guarantee

import (
	"bytes"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// Session is what the server has stored of the session that a client reads, and what is known of the server.
type Session struct {
	// Agent and ID are what every cursor must name, and Child what it must name of a child session; nil: none.
	Agent, ID string
	Child     *evev1.ChildStream
	// Histories are what the server had stored, oldest first: one, unless the history was rewritten. At most 64.
	Histories []Log
	// Closed: the last history is complete, no line will follow.
	Closed bool
	// Trimmed tells of a stored line whether the server may have skipped it for some readers. Nil: of those whose kind
	// is [fakeeve.Skipped] alone, which nobody could read.
	Trimmed func(line int64) bool
	// Late is how many places late an event may be told (up to version 26). 0: none is.
	Late int64
	// Crossed: the server changed between the version 27 and earlier ones, so that a position inside a line may be
	// refused.
	Crossed bool
	// MaxLineBytes is the largest line the gateway reads. 0: it reads all.
	MaxLineBytes int
	// MaxHeld bounds [Call.Held]. 0: not checked.
	MaxHeld int64
}

// Log is a stored stream, taken apart line by line by somebody other than the gateway.
type Log interface {
	// Len is the number of lines.
	Len() int64
	// Entry is line i, for 0 <= i < Len().
	Entry(i int64) fakeeve.Entry
}

// Lines is a [Log] in memory: line i is element i, as [fakeeve.Entries] gives them.
type Lines []fakeeve.Entry

// Len implements [Log].
func (l Lines) Len() int64 { return int64(len(l)) }

// Entry implements [Log].
func (l Lines) Entry(i int64) fakeeve.Entry { return l[i] }

// Call is one Subscribe call as its client saw it.
type Call struct {
	// Request is what was asked.
	Request *evev1.SubscribeRequest
	// Messages are all that came, whether they were handled or not.
	Messages []*evev1.SubscribeResponse
	// Err is the status; nil: OK. Left: the client went away, so that Err says nothing.
	Err  error
	Left bool
	// Tail is the last line that was stored when the call was made, -1 when there was none. Known tells whether that is
	// known.
	Tail  int64
	Known bool
	// Forged: the request's cursor was made from one that was handed out by giving it the anchor of another line.
	Forged bool
	// Held is the most bytes that the gateway was seen to take from the server while this client took none.
	Held int64
}

// history is a Log with what the check needs to know of it more than once.
type history struct {
	Log
	terminal int64 // line that ends the session; -1 when there is none
}

func newHistory(l Log) *history {
	h := &history{Log: l, terminal: -1}
	for i := range l.Len() {
		if isTerminal(l.Entry(i)) {
			h.terminal = i
			break
		}
	}
	return h
}

// isTerminal tells whether no record of a later line belongs to the session (contract 4.1, 5.6).
func isTerminal(e fakeeve.Entry) bool {
	for _, r := range e.Records {
		switch {
		case e.Kind == fakeeve.Commit && r.Type == "session.ended",
			e.Kind == fakeeve.Event && (r.Type == "session.completed" || r.Type == "session.failed"):
			return true
		}
	}
	return false
}

// end is the first line that no client is to see.
func (h *history) end() int64 {
	if h.terminal >= 0 {
		return h.terminal + 1
	}
	return h.Len()
}

// common is the number of lines, from the first, that two histories have in common.
func common(a, b Log) int64 {
	n := min(a.Len(), b.Len())
	for i := range n {
		if !bytes.Equal(a.Entry(i).Raw, b.Entry(i).Raw) {
			return i
		}
	}
	return n
}

// slots is the number of records a cursor counts in a line.
func slots(e fakeeve.Entry) int64 {
	if e.Kind == fakeeve.Commit {
		return int64(len(e.Records))
	}
	return 1
}
