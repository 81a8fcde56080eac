package fakeeve

import (
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Route is one of the server's routes.
type Route string

// The routes (contract 1.2).
const (
	RouteUnknown  Route = ""
	RouteHome     Route = "home"
	RouteHealth   Route = "health"
	RouteInfo     Route = "info"
	RouteCreate   Route = "create"
	RouteSend     Route = "send" // messages and answers
	RouteCancel   Route = "cancel"
	RouteCompact  Route = "compact"
	RouteClear    Route = "clear"
	RouteReset    Route = "reset"
	RouteEnd      Route = "end"
	RouteStream   Route = "stream"
	RouteSubagent Route = "subagent" // the relayed stream of a remote child
)

// End is how a response ended.
type End string

// The ends.
const (
	EndOpen     End = ""         // it has not
	EndAnswer   End = "answer"   // an ordinary answer, not a stream
	EndBound    End = "bound"    // a bounded body that is complete
	EndLease    End = "lease"    // the lease was over
	EndStream   End = "stream"   // the stored stream is closed and was sent to its end
	EndVerbatim End = "verbatim" // a verbatim body that is complete
	EndCut      End = "cut"      // a fault or CutAll
	EndGone     End = "gone"     // the client went away, or its connection failed
)

// Request is one request the server has seen, and what became of it.
type Request struct {
	// N numbers the requests of the server, from 0.
	N int
	// Method, Path (as sent, escaped), Query and Header are the request's own.
	Method, Path string
	Query        url.Values
	Header       http.Header
	// Body is the body of a POST, at most its first MiB.
	Body []byte
	// Route is where it went, and Session the session it names; of a relayed child the child.
	Route   Route
	Session string
	// Principal is who asked; "local" on a server that authenticates nobody.
	Principal string
	// Conn is the number of this stream request among those of its session, -1 for other requests.
	Conn int
	// At is when it arrived, Done when it was over (zero while it is not).
	At, Done time.Time
	// Status is what was answered, 0 before that.
	Status int
	// Following is set on a stream response without a bound.
	Following bool
	// From is the stored line the response was to start with. Lines is how many stored lines were begun, a line that
	// was cut included, and Bytes how many bytes of body were sent.
	From, Lines, Bytes int64
	// End is how the response ended.
	End End
}

// ledger holds all requests of a server.
type ledger struct {
	mu       sync.Mutex
	requests []*Request
	conns    map[string]int // stream requests by session
	open     map[string]int // open stream bodies by session
	peak     map[string]int
	bodies   map[*body]struct{}
}

func (l *ledger) begin(r *http.Request) *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	rec := &Request{
		N: len(l.requests), Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.Query(), Header: r.Header.Clone(),
		Conn: -1, At: time.Now(),
	}
	l.requests = append(l.requests, rec)
	return rec
}

// note changes a record under the lock.
func (l *ledger) note(rec *Request, f func(*Request)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(rec)
}

// connect gives a stream request its number.
func (l *ledger) connect(rec *Request) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		l.conns = map[string]int{}
	}
	rec.Conn = l.conns[rec.Session]
	l.conns[rec.Session]++
	return rec.Conn
}

func (l *ledger) opened(b *body) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bodies == nil {
		l.bodies, l.open, l.peak = map[*body]struct{}{}, map[string]int{}, map[string]int{}
	}
	l.bodies[b] = struct{}{}
	id := b.rec.Session
	l.open[id]++
	l.peak[id] = max(l.peak[id], l.open[id])
}

func (l *ledger) closed(b *body) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.bodies, b)
	l.open[b.rec.Session]--
}

// Requests are all requests so far, oldest first, as they stand now.
func (s *Server) Requests() []Request {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	out := make([]Request, len(s.ledger.requests))
	for i, rec := range s.ledger.requests {
		out[i] = *rec
	}
	return out
}

// StreamRequests are the requests for one session's stream, oldest first.
func (s *Server) StreamRequests(session string) []Request {
	var out []Request
	for _, r := range s.Requests() {
		if r.Session == session && r.Conn >= 0 {
			out = append(out, r)
		}
	}
	return out
}

// OpenBodies counts the stream bodies that are open now, over all sessions.
func (s *Server) OpenBodies() int {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return len(s.ledger.bodies)
}

// OpenBodiesOf counts the open stream bodies of one session, and the most it ever had at a time.
func (s *Server) OpenBodiesOf(session string) (now, peak int) {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return s.ledger.open[session], s.ledger.peak[session]
}

// CutAll ends every open stream body now: a server that is stopped, or a proxy that is.
func (s *Server) CutAll(how How) { s.cut(how, func(*body) bool { return true }) }

// cut ends the open bodies that match.
func (s *Server) cut(how How, match func(*body) bool) {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	for b := range s.ledger.bodies {
		if match(b) {
			b.interrupt(how)
		}
	}
}
