package source

import (
	"net/url"
	"regexp"
)

// Via is the route to a child session (contract 1.10, 4.7). It is rebuilt from ids: no path found in a stream is
// ever dialed as it is.
type Via struct {
	// Mount is the route prefix the parent named for its agent, such as /eve/scout/v1; /eve/v1 is the agent's own.
	Mount string
	// Parent and CallID are set when the child runs elsewhere and is relayed by the parent's server.
	Parent, CallID string
}

var childPath = regexp.MustCompile(`^(/eve(?:/[a-z0-9][a-z0-9_-]*)?/v1)/session/([^/]+)(?:/subagents/([^/]+)/([^/]+))?/stream$`)

// ChildVia reads the stream path that a parent names for its child. It accepts a plain path that is the stream route
// of exactly that child, or its relay by exactly that parent, and nothing else (contract G27).
func ChildVia(path, parent, child string) (*Via, bool) {
	m := childPath.FindStringSubmatch(path)
	if m == nil {
		return nil, false
	}
	ids := make([]string, 0, 3)
	for _, segment := range m[2:] {
		id, err := url.PathUnescape(segment)
		if err != nil || id != "" && !ValidID(id) {
			return nil, false
		}
		ids = append(ids, id)
	}
	switch relayed := ids[2] != ""; {
	case !relayed && ids[0] == child:
		return &Via{Mount: m[1]}, true
	case relayed && ids[2] == child && ids[0] == parent:
		return &Via{Mount: m[1], Parent: parent, CallID: ids[1]}, true
	}
	return nil, false
}

// stream returns the URL of a session's stream.
func (e *endpoint) stream(session string, via *Via, params url.Values) string {
	segments := []string{"session", session, "stream"}
	mount := ""
	if via != nil {
		if via.Parent != "" {
			segments = []string{"session", via.Parent, "subagents", via.CallID, session, "stream"}
		}
		if via.Mount != "/eve/v1" {
			mount = via.Mount
		}
	}
	return e.build(mount, params, segments)
}
