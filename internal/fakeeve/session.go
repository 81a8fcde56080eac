package fakeeve

import (
	"sync"
	"time"
)

// SessionSpec describes a session.
type SessionSpec struct {
	// Version is its stream version, 21 to 27; 0: the server's.
	Version int
	// Log is its stored stream; nil: an empty [MemLog].
	Log Log
	// Stranded, when not empty, says that the run that owns the session was built by that eve version and can never
	// execute here: following it is refused, recorded history can be read (contract O17).
	Stranded string
	// NotReady is how many sends are refused because the command inbox is not up yet (contract 1.4).
	NotReady int
	// Children are the remote children that can be read through this session (contract 1.10).
	Children []Child
	// OpenCost passes for each stored line before a stream request is answered (contract O5: 80 µs on a real server).
	OpenCost time.Duration
	// Quirks are how older servers differ.
	Quirks Quirks
}

// Child is a remote child of a session: a session of the same fake server, readable through its parent.
type Child struct {
	CallID, SessionID string
}

// Quirks are the ways in which servers differ that are not told by the stream version.
type Quirks struct {
	// TailInformational: includeTailIndex adds the header and bounds nothing (before eve 0.44.3).
	TailInformational bool
	// IgnoresFollow: the follow parameter is unknown (before eve 0.76).
	IgnoresFollow bool
	// HonoursAhead: a following read from beyond the tail waits for the line it asked for. Real servers send from
	// their tail on instead, and hang when the stream is closed (contract O3).
	HonoursAhead bool
	// ForwardsFollow: the relay of a remote child passes follow on (not so in 0.80.1, contract 1.10).
	ForwardsFollow bool
}

// Session is one session of a [Server].
type Session struct {
	id     string
	server *Server

	// Under the server's mutex.
	spec    SessionSpec
	replays []*TranscriptFile // not played yet
	expired bool
	keys    map[string]string // idempotency keys → delivery ids

	echoing sync.Mutex
	echoed  int // turns that Echo has written
}

// ID is the session's id.
func (s *Session) ID() string { return s.id }

// Log is the session's stored stream.
func (s *Session) Log() Log { return s.Spec().Log }

// MemLog is the session's stored stream if it is one in memory, else nil.
func (s *Session) MemLog() *MemLog {
	l, _ := s.Log().(*MemLog)
	return l
}

// Append adds lines to the session's log; it panics when that cannot grow. It returns the number of the first.
func (s *Session) Append(lines ...string) int64 { return s.MemLog().Append(lines...) }

// Spec is the session's description as it stands.
func (s *Session) Spec() SessionSpec {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return s.spec
}

// Update changes the session's description for later requests: another version or another log after an upgrade or a
// restore from a backup, a session that becomes stranded. Open bodies go on as they were opened.
func (s *Session) Update(f func(*SessionSpec)) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	f(&s.spec)
}

// Expire makes later stream requests answer 410 (contract O14) and commands find no active session.
func (s *Session) Expire() {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.expired = true
}

// CutAll ends every open stream body of the session now.
func (s *Session) CutAll(how How) {
	s.server.cut(how, func(b *body) bool { return b.rec.Session == s.id })
}

// active tells whether the session takes commands. The caller holds the server's mutex.
func (s *Session) active() bool {
	_, ended := watch(s.spec.Log)
	return !ended && !s.expired
}

// resolve gives the first line a query asks for, and the tail. While a transcript is still to be played, its last line
// is the tail. The caller holds the server's mutex.
func (s *Session) resolve(q StreamQuery) (start, tail int64) {
	length := s.spec.Log.Len()
	if len(s.replays) > 0 {
		length = s.replays[0].Tail + 1
	}
	return q.resolve(length), length - 1
}

// replay takes the transcript that a request from line start gets verbatim, nil for none. The caller holds the
// server's mutex.
func (s *Session) replay(start int64) *TranscriptFile {
	if len(s.replays) == 0 || start > s.replays[0].Start {
		return nil
	}
	f := s.replays[0]
	s.replays = s.replays[1:]
	return f
}
