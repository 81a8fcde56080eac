package fakeeve

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is a scripted Eve server: an [http.Handler]. All its methods are safe for concurrent use.
type Server struct {
	cfg    config
	ledger ledger

	mu         sync.Mutex
	auth       Authenticator
	sessions   map[string]*Session
	scripts    map[string]Script
	routes     map[Route]func(Request) Fault
	operations map[string]string // operation ids, each with its principal → session id
	minted     int64
}

type config struct {
	version   int
	lease     time.Duration
	heartbeat time.Duration
	base      string
	info      []byte
	agent     Agent
	auth      Authenticator
	receipts  *bool
	endRoutes []Route
}

// Option sets up a [Server].
type Option func(*config)

// WithVersion sets the stream version (21 to 27) of sessions that name none, and with it what kind of server this is
// where kinds differ. Default 27.
func WithVersion(v int) Option { return func(c *config) { c.version = v } }

// WithLease sets how long a response lasts, from its opening. Default 60 s; 0 or less: for ever.
func WithLease(d time.Duration) Option { return func(c *config) { c.lease = d } }

// WithHeartbeat sets the silence after which a heartbeat is sent. Default 10 s; 0 or less: none but the first.
func WithHeartbeat(d time.Duration) Option { return func(c *config) { c.heartbeat = d } }

// WithBase mounts the routes under another path than /eve/v1, such as /eve/tide-desk/v1 (contract 1.1).
func WithBase(path string) Option {
	return func(c *config) { c.base = "/" + strings.Trim(path, "/") }
}

// WithInfo sets the inspection document. Default: a small one of document version 6.
func WithInfo(document string) Option { return func(c *config) { c.info = []byte(document) } }

// WithAuth admits only whom a admits; health stays open (contract 7.2). Default: everyone.
func WithAuth(a Authenticator) Option { return func(c *config) { c.auth = a } }

// WithAgent sets what accepted commands do to a session's log. Default [Echo].
func WithAgent(a Agent) Option { return func(c *config) { c.agent = a } }

// WithReceipts sets whether creates and controls answer with a delivery id (eve 0.84 and later); sends always do.
// Default: at version 27.
func WithReceipts(on bool) Option { return func(c *config) { c.receipts = &on } }

// WithEndRoutes sets which of [RouteReset] and [RouteEnd] exist. Default: both at version 27, reset alone before.
func WithEndRoutes(routes ...Route) Option { return func(c *config) { c.endRoutes = routes } }

// defaultInfo is an inspection document of the version contract 1.2 names, with a few of the real one's fields.
const defaultInfo = `{"agent":{"config":{"logicalPath":"agent.ts"},"model":{"contextWindowTokens":1000000,"id":"acme/brine-2"},` +
	`"name":"tide-desk","nodeId":"__root__"},"capabilities":{"devRoutes":false},"channels":{"routes":[]},"version":6}`

// New makes a server without sessions.
func New(opts ...Option) *Server {
	cfg := config{
		version: 27, lease: 60 * time.Second, heartbeat: 10 * time.Second, base: "/eve/v1", info: []byte(defaultInfo),
		agent: Echo,
	}
	for _, opt := range opts {
		opt(&cfg)
	}
	if cfg.receipts == nil {
		receipts := cfg.version >= 27
		cfg.receipts = &receipts
	}
	if cfg.endRoutes == nil {
		cfg.endRoutes = []Route{RouteReset}
		if cfg.version >= 27 {
			cfg.endRoutes = append(cfg.endRoutes, RouteEnd)
		}
	}
	return &Server{
		cfg: cfg, auth: cfg.auth, sessions: map[string]*Session{}, scripts: map[string]Script{},
		routes: map[Route]func(Request) Fault{}, operations: map[string]string{},
	}
}

// SetAuth replaces the authenticator for later requests; nil admits everyone. An open body stays open, as it does at
// a real server when a token expires (contract 7.2).
func (s *Server) SetAuth(a Authenticator) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auth = a
}

// AddSession adds a session, in place of one with the same id.
func (s *Server) AddSession(id string, spec SessionSpec) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addSession(id, spec)
}

func (s *Server) addSession(id string, spec SessionSpec) *Session {
	if spec.Version == 0 {
		spec.Version = s.cfg.version
	}
	if spec.Log == nil {
		spec.Log = NewMemLog()
	}
	sess := &Session{id: id, server: s, spec: spec, keys: map[string]string{}}
	s.sessions[id] = sess
	return sess
}

// AddTranscript adds a session that plays transcripts (see [Transcript] for their names): its stored lines are those
// of the files together, and the first request that starts at or before the first line of a file gets the file, byte
// for byte, each file once and in order. Lines before the file's first that were asked for too come right behind the
// opening heartbeat; where they are not stored, a position record stands for them. All other requests are served
// from the stored lines, the stream being closed.
func (s *Server) AddTranscript(id string, names ...string) (*Session, error) {
	var files []*TranscriptFile
	for _, name := range names {
		f, err := Transcript(name)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("fakeeve: session %s: no transcript named", id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.addSession(id, SessionSpec{Version: files[0].Version, Log: chain(files)})
	sess.replays = files
	return sess, nil
}

// Session is the session with this id, nil when there is none.
func (s *Server) Session(id string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// Sessions are the ids of all sessions, sorted.
func (s *Server) Sessions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.sessions))
}

// RemoveSession makes a session unknown.
func (s *Server) RemoveSession(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

// Script sets what goes wrong with the stream requests of one session, which need not exist; nil: nothing.
func (s *Server) Script(session string, script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[session] = script
}

// ScriptRoute sets what goes wrong with the requests of any other route. Of the [Fault] only Delay, Status, Header,
// Body and Cut (with CutAt: the answer is lost, after the command took effect) apply. nil: nothing.
func (s *Server) ScriptRoute(route Route, script func(Request) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes[route] = script
}

// mint gives out the next number for ids, so that a run is the same every time.
func (s *Server) mint() int64 {
	s.minted++
	return s.minted
}

// target is where a request goes.
type target struct {
	route         Route
	session       string
	parent, call  string // of a subagent stream
	badID         bool   // an id no store can hold
	wrongMethod   bool   // the path exists for GET alone
	allowedMethod string
}

// match finds the route of a request. Path segments are decoded one by one (contract 1.1).
func (s *Server) match(r *http.Request) target {
	path := strings.TrimSuffix(r.URL.EscapedPath(), "/")
	if path == "" {
		return target{route: RouteHome}
	}
	rest, ok := strings.CutPrefix(path, s.cfg.base+"/")
	if !ok {
		return target{}
	}
	segments := strings.Split(rest, "/")
	for i, segment := range segments {
		decoded, err := url.PathUnescape(segment)
		if err != nil {
			return target{}
		}
		segments[i] = decoded
	}
	get := func(t target) target {
		if r.Method != http.MethodGet && (r.Method != http.MethodHead || t.route != RouteHealth) {
			return target{wrongMethod: r.Method == http.MethodHead, allowedMethod: http.MethodGet}
		}
		return t
	}
	post := func(t target) target {
		if r.Method != http.MethodPost {
			return target{}
		}
		return t
	}
	bad := func(id string) bool {
		return strings.ContainsAny(id, "/\\\x00") || id == ".." || id == "." || len(id) > 200
	}
	switch {
	case len(segments) == 1 && segments[0] == "health":
		return get(target{route: RouteHealth})
	case len(segments) == 1 && segments[0] == "info":
		return get(target{route: RouteInfo})
	case segments[0] != "session":
		return target{}
	case len(segments) == 1:
		return post(target{route: RouteCreate})
	case len(segments) == 2:
		return post(target{route: RouteSend, session: segments[1]})
	case len(segments) == 3 && segments[2] == "stream":
		return get(target{route: RouteStream, session: segments[1], badID: bad(segments[1])})
	case len(segments) == 3:
		route := Route(segments[2])
		controls := append([]Route{RouteCancel, RouteCompact, RouteClear}, s.cfg.endRoutes...)
		if slices.Contains(controls, route) {
			return post(target{route: route, session: segments[1]})
		}
	case len(segments) == 6 && segments[2] == "subagents" && segments[5] == "stream":
		return get(target{route: RouteSubagent, parent: segments[1], call: segments[3], session: segments[4]})
	}
	return target{}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := s.ledger.begin(r)
	t := s.match(r)
	s.ledger.note(rec, func(rec *Request) { rec.Route, rec.Session = t.route, t.session })
	defer s.ledger.note(rec, func(rec *Request) {
		rec.Done = time.Now()
		if rec.End == EndOpen {
			rec.End = EndAnswer
		}
	})
	if r.ProtoMajor == 1 { // what a Node server says (contract O16)
		w.Header().Set("Connection", "keep-alive")
		w.Header().Set("Keep-Alive", "timeout=5")
	}
	x := &exchange{server: s, w: w, r: r, ctx: r.Context(), rec: rec, rc: http.NewResponseController(w)}

	switch {
	case t.route == RouteUnknown && t.wrongMethod && s.cfg.version >= 27:
		w.Header().Set("Allow", t.allowedMethod)
		x.answer(http.StatusMethodNotAllowed, refusal{Error: "Method not allowed."})
		return
	case t.route == RouteUnknown:
		x.noRoute()
		return
	case t.route == RouteHome:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		x.raw(http.StatusOK, []byte("<!doctype html>\n<html lang=\"en\"><title>eve</title></html>\n"))
		return
	}
	if t.route != RouteHealth && !x.admitted() {
		return
	}
	if t.route == RouteStream || t.route == RouteSubagent {
		s.serveStream(x, t)
		return
	}
	if !x.read() || !x.scripted() {
		return
	}
	switch t.route {
	case RouteHealth:
		x.json(http.StatusOK, []byte(`{"ok":true,"status":"ready","workflowId":"workflow//eve//workflowEntry"}`))
	case RouteInfo:
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		x.raw(http.StatusOK, s.cfg.info)
	default:
		s.serveCommand(x, t)
	}
}
