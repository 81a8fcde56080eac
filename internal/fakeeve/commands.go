package fakeeve

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Agent is told of each accepted command before it is answered, and does to the session's log what a real agent would:
// at once, or later from a goroutine of its own. See [Echo], [Scripted] and [Silent].
type Agent func(*Session, Command)

// Command is an accepted command (contract 1.4 to 1.7). What a command means is left to the [Agent].
type Command struct {
	// Route says what it is: RouteCreate, RouteSend (a message or answers), RouteCancel, RouteCompact, RouteClear,
	// RouteReset or RouteEnd.
	Route Route
	// DeliveryID is the id the receipt names, or would name.
	DeliveryID string
	// Principal is who sent it; "local" on a server that authenticates nobody.
	Principal string
	// Text is the message, its text parts joined by line ends. Empty for other commands and for a prewarm.
	Text string
	// HasMessage tells a create with a message from a prewarm, and a message from answers.
	HasMessage bool
	// Body is the request's body as sent; empty when there was none.
	Body []byte
}

const (
	// bodyKept is how much of a request's body its [Request] keeps.
	bodyKept = 1 << 20
	// uploadLimit is the most bytes of an inline file (contract G1).
	uploadLimit = 26214400
)

// receipt is the answer to a command; its members are in the order of the real server's.
type receipt struct {
	OK                bool   `json:"ok"`
	SessionID         string `json:"sessionId,omitempty"`
	PreviousSessionID string `json:"previousSessionId,omitempty"`
	Status            string `json:"status"`
	DeliveryID        string `json:"deliveryId,omitempty"`
}

// violation is one inline file that is refused.
type violation struct {
	ByteLength int    `json:"byteLength"`
	Filename   string `json:"filename,omitempty"`
	Kind       string `json:"kind"`
	Limit      int    `json:"limit"`
	MediaType  string `json:"mediaType"`
}

// badRequest is why a body is refused.
type badRequest struct {
	status     int
	text       string
	violations []violation
}

func bad(format string, args ...any) *badRequest {
	return &badRequest{status: http.StatusBadRequest, text: fmt.Sprintf(format, args...)}
}

// serveCommand answers R3 to R8.
func (s *Server) serveCommand(x *exchange, t target) {
	cmd := Command{Route: t.route, Body: x.body, Principal: x.principal()}
	body, refused := readBody(x.body, t.route)
	if refused == nil {
		refused = cmd.validate(body)
	}
	if refused != nil {
		x.answer(refused.status, struct {
			Error      string      `json:"error"`
			OK         bool        `json:"ok"`
			Violations []violation `json:"violations,omitempty"`
		}{refused.text, false, refused.violations})
		return
	}
	if t.route == RouteCreate {
		s.serveCreate(x, cmd, body)
		return
	}
	s.serveControl(x, t.session, cmd, body)
}

// read reads the request's body, and tells whether it came. Only then does net/http notice a client that goes away.
func (x *exchange) read() bool {
	body, err := io.ReadAll(x.r.Body)
	x.body = body
	x.server.ledger.note(x.rec, func(rec *Request) {
		if len(body) > 0 {
			rec.Body = body[:min(len(body), bodyKept)]
		}
		if err != nil {
			rec.End = EndGone
		}
	})
	return err == nil
}

func (x *exchange) principal() string {
	x.server.ledger.mu.Lock()
	defer x.server.ledger.mu.Unlock()
	return x.rec.Principal
}

// readBody reads a command's body: a JSON object, which all but a send may leave out.
func readBody(raw []byte, route Route) (object, *badRequest) {
	if len(raw) == 0 && route != RouteSend {
		return object{}, nil
	}
	if !jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return nil, bad("Invalid JSON body.")
	}
	body, ok := readObject(raw)
	if !ok {
		return nil, bad("Expected a JSON object.")
	}
	return body, nil
}

// validate checks a body as the real server does, in its words, and takes from it what the command holds.
func (c *Command) validate(body object) *badRequest {
	if _, ok := body["continuationToken"]; ok {
		return bad("Session-ID routes do not accept 'continuationToken'.")
	}
	optional := func(name string) *badRequest {
		if _, ok := body[name]; !ok {
			return nil
		}
		if text, ok := body.str(name); !ok || text == "" {
			return bad("Expected '%s' to be a non-empty string.", name)
		}
		return nil
	}
	switch c.Route {
	case RouteCreate:
		return c.validateCreate(body, optional)
	case RouteSend:
		return c.validateSend(body, optional)
	case RouteCancel:
		return optional("turnId")
	case RouteReset, RouteEnd:
		return optional("reason")
	default:
		return nil
	}
}

func (c *Command) validateCreate(body object, optional func(string) *badRequest) *badRequest {
	if _, ok := body["inputResponses"]; ok {
		return bad("'inputResponses' is only accepted for an existing session.")
	}
	if _, ok := body["stubs"]; ok {
		return &badRequest{status: http.StatusForbidden, text: "Tool stubbing is not permitted for this caller."}
	}
	if refused := optional("operationId"); refused != nil {
		return refused
	}
	if _, ok := body["operationId"]; ok && c.Principal == "" {
		return bad("'operationId' needs an authenticated caller.")
	}
	if message, ok := body["message"]; ok {
		return c.message(message, bad("Expected 'message' to be non-empty when provided."))
	}
	for _, name := range []string{"clientContext", "callback", "outputSchema"} {
		if _, ok := body[name]; ok {
			return bad("Creating a session without a message does not accept 'clientContext', 'callback', or 'outputSchema'.")
		}
	}
	return nil
}

func (c *Command) validateSend(body object, optional func(string) *badRequest) *badRequest {
	if _, ok := body["stubs"]; ok {
		return bad("'stubs' is only accepted when creating a session.")
	}
	message, hasMessage := body["message"]
	responses, hasResponses := body["inputResponses"]
	switch {
	case hasMessage && hasResponses:
		return bad("'message' and 'inputResponses' are mutually exclusive.")
	case !hasMessage && !hasResponses:
		return bad("Expected a non-empty 'message' or a non-empty 'inputResponses' array.")
	}
	if refused := optional("idempotencyKey"); refused != nil {
		return refused
	}
	if policy, ok := body.str("turnPolicy"); body["turnPolicy"] != nil && (!ok || policy != "steer" && policy != "queue") {
		return bad("Expected 'turnPolicy' to be either 'queue' or 'steer'.")
	}
	if hasMessage {
		return c.message(message, bad("Expected a non-empty 'message' or a non-empty 'inputResponses' array."))
	}
	if responses.Kind() != '[' || len(readArray(responses)) == 0 {
		return bad("Expected 'inputResponses' to be a non-empty array.")
	}
	for _, entry := range readArray(responses) {
		if !validResponse(entry) {
			return bad("Expected every 'inputResponses' entry to match the HITL response schema.")
		}
	}
	return nil
}

// validResponse checks one answer: strict, any extra key is an error (contract 1.6).
func validResponse(raw jsontext.Value) bool {
	entry, ok := readObject(raw)
	if !ok {
		return false
	}
	for name := range entry {
		if _, ok := entry.str(name); !ok || name != "requestId" && name != "optionId" && name != "text" {
			return false
		}
	}
	_, ok = entry["requestId"]
	return ok
}

// message reads a message: a string, or an array of parts.
func (c *Command) message(raw jsontext.Value, empty *badRequest) *badRequest {
	c.HasMessage = true
	switch raw.Kind() {
	case '"':
		text, _ := jsontext.AppendUnquote(nil, raw)
		if c.Text = string(text); c.Text == "" {
			return empty
		}
		return nil
	case '[':
		parts := readArray(raw)
		if len(parts) == 0 {
			return empty
		}
		var texts []string
		for _, part := range parts {
			text, refused := readPart(part)
			if refused != nil {
				return refused
			}
			if text != "" {
				texts = append(texts, text)
			}
		}
		c.Text = strings.Join(texts, "\n")
		return nil
	default:
		return bad("Expected 'message' to be a string or an array of text/file parts.")
	}
}

// readPart reads a message part; the text of a file part is empty.
func readPart(raw jsontext.Value) (string, *badRequest) {
	part, _ := readObject(raw)
	typ, _ := part.str("type")
	switch typ {
	case "text":
		text, ok := part.str("text")
		if !ok || text == "" {
			return "", bad("Expected a text part to have a non-empty 'text'.")
		}
		return text, nil
	case "file":
		mediaType, ok := part.str("mediaType")
		data, hasData := part.str("data")
		if !ok || !hasData {
			return "", bad("Expected a file part to have a 'mediaType' and 'data'.")
		}
		name, _ := part.str("filename")
		size := inlineSize(data)
		if size <= uploadLimit {
			return "", nil
		}
		return "", &badRequest{
			status: http.StatusRequestEntityTooLarge,
			text:   fmt.Sprintf("%s (%d bytes) exceeds the %d-byte upload limit.", name, size, uploadLimit),
			violations: []violation{{
				ByteLength: size, Filename: name, Kind: "too-large", Limit: uploadLimit, MediaType: mediaType,
			}},
		}
	default:
		return "", bad("Unsupported message part type %q. Use 'text' or 'file'.", typ)
	}
}

// inlineSize is the size of a file's bytes when they are in data, 0 when it is a URL.
func inlineSize(data string) int {
	if rest, ok := strings.CutPrefix(data, "data:"); ok {
		_, data, _ = strings.Cut(rest, ",")
	} else if strings.Contains(data, "://") {
		return 0
	}
	return base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "=")))
}

// serveCreate answers R3.
func (s *Server) serveCreate(x *exchange, cmd Command, body object) {
	operation := ""
	if id, ok := body.str("operationId"); ok {
		operation = cmd.Principal + "\x00" + id
	}
	s.mu.Lock()
	id, repeated := s.operations[operation] // "" is never in it
	if !repeated {
		id = fmt.Sprintf("wrun_%026d", s.mint())
		if operation != "" {
			s.operations[operation] = id
		}
		sess := s.addSession(id, SessionSpec{})
		cmd.DeliveryID = s.mintDelivery()
		s.mu.Unlock()
		s.cfg.agent(sess, cmd)
		s.mu.Lock()
	}
	answer := receipt{OK: true, SessionID: id, Status: "accepted"}
	if *s.cfg.receipts && cmd.HasMessage {
		answer.DeliveryID = cmd.DeliveryID
	}
	s.mu.Unlock()
	s.ledger.note(x.rec, func(rec *Request) { rec.Session = id })
	x.accept(http.StatusAccepted, id, answer)
}

// mintDelivery makes a delivery id. The caller holds the mutex.
func (s *Server) mintDelivery() string {
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", s.mint())
}

// accept answers a command.
func (x *exchange) accept(status int, session string, answer receipt) {
	x.w.Header().Set("Cache-Control", "no-store")
	if session != "" {
		x.w.Header().Set("X-Eve-Session-Id", session)
	}
	x.answer(status, answer)
}

// serveControl answers R4 to R8: all commands to a session that exists.
func (s *Server) serveControl(x *exchange, id string, cmd Command, body object) {
	s.mu.Lock()
	sess := s.sessions[id]
	active := sess != nil && sess.active()
	stranded, notReady := "", false
	if sess != nil {
		stranded = sess.spec.Stranded
		if notReady = cmd.Route == RouteSend && sess.spec.NotReady > 0; notReady {
			sess.spec.NotReady--
		}
	}
	ending := cmd.Route == RouteReset || cmd.Route == RouteEnd

	switch {
	case active && stranded != "" && (cmd.Route == RouteSend || cmd.Route == RouteClear):
		s.mu.Unlock()
		x.w.Header().Set("Cache-Control", "no-store")
		x.answer(http.StatusConflict, refusal{
			Code: "session_stranded", Error: "This session is no longer available.", EveVersion: stranded,
		})
		return
	case cmd.Route == RouteSend && !active:
		s.mu.Unlock()
		x.refuse(http.StatusConflict, "session_not_active", "The session is no longer active.")
		return
	case cmd.Route == RouteSend && notReady:
		s.mu.Unlock()
		x.refuse(http.StatusConflict, "session_not_ready", "The session is not ready yet.")
		return
	case !active || stranded != "" && !ending:
		s.mu.Unlock()
		status := "no_active_session"
		if cmd.Route == RouteCancel {
			status = "no_active_turn"
		}
		x.accept(http.StatusOK, "", receipt{OK: true, Status: status})
		return
	}

	key, _ := body.str("idempotencyKey")
	known, repeated := sess.keys[key]
	if repeated = repeated && key != "" && sess.spec.Version >= 27; repeated {
		cmd.DeliveryID = known
	} else {
		cmd.DeliveryID = s.mintDelivery()
		sess.keys[key] = cmd.DeliveryID
	}
	if ending {
		sess.spec.Stranded = "" // the session is over, and its history can be read by all (capture stranded/010)
	}
	s.mu.Unlock()
	if !repeated {
		s.cfg.agent(sess, cmd)
	}

	answer := receipt{OK: true, SessionID: id, Status: "accepted"}
	if *s.cfg.receipts || cmd.Route == RouteSend {
		answer.DeliveryID = cmd.DeliveryID
	}
	switch {
	case cmd.Route == RouteSend:
		x.accept(http.StatusAccepted, id, answer)
	case ending:
		answer.SessionID, answer.PreviousSessionID, answer.Status = "", id, "reset"
		x.accept(http.StatusOK, "", answer)
	default:
		x.accept(http.StatusAccepted, "", answer)
	}
}
