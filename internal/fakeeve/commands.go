package fakeeve

import "net/http"

// Agent is told of each accepted command and does to the session's log what an agent would, at once or later.
type Agent func(*Session, Command)

// Command is an accepted command.
type Command struct {
	Route      Route
	DeliveryID string
	Body       []byte
}

func (s *Server) serveCommand(x *exchange, t target) {
	x.refuse(http.StatusConflict, "session_not_active", "The session is no longer active.")
}
