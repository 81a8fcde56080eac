package source

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// FuzzChildVia holds that a path found in a stream leads nowhere but to the stream route of the child, or to its relay
// by the parent, on the agent's own host, whatever the path says (contract G27); and that no such path is refused.
func FuzzChildVia(f *testing.F) {
	for _, p := range []string{
		"/eve/v1/session/child/stream", "/eve/scout/v1/session/child/stream", "/eve/v1/session/parent/subagents/call/child/stream",
		"/eve/v1/session/%63hild/stream", "/eve/v1/session/parent/subagents/call%3A1/child/stream",
		"https://evil.test/eve/v1/session/child/stream", "//evil.test/eve/v1/session/child/stream", `\\evil.test\eve/v1/session/child/stream`,
		"/eve/v1/session/../child/stream", "/eve/v1/session/%2e%2e/stream", "/eve/v1/session/child%2fstream", "/eve/v1/session/child%5c/stream",
		"/eve/v1/session/child/stream?x=1", "/eve/v1/session/child/stream#x", "/eve/v1/session/other/stream", "/eve/v1/session/child/stream\n",
		"/eve/v1/session/other/subagents/call/child/stream", "/eve/v1/session/parent/subagents/../child/stream", "/eve//v1/session/child/stream",
	} {
		f.Add(p, "parent", "child")
	}
	f.Add("/eve/v1/session/parent/subagents/a/b/stream", "parent", "a/b")
	f.Add("/eve/v1/session/../stream", "..", "..")
	f.Add("/eve/v1/session//stream", "", "")

	const host = "https://eve.test"
	var bases []*endpoint
	for _, base := range []string{host, host + "/eve/desk", host + "/apps/x?key=1"} {
		e, err := newEndpoint(base)
		if err != nil {
			f.Fatal(err)
		}
		bases = append(bases, e)
	}
	f.Fuzz(func(t *testing.T, p, parent, child string) {
		via, ok := ChildVia(p, parent, child)
		if want := leadsTo(p, parent, child); ok != want {
			t.Fatalf("%q of parent %q and child %q is let through: %v, want %v", p, parent, child, ok, want)
		}
		if !ok {
			return
		}
		for _, e := range bases {
			checkChildURL(t, e, via, parent, child)
		}
	})
}

// leadsTo is the rule said a second time, by segments.
func leadsTo(p, parent, child string) bool {
	raw := strings.Split(p, "/")
	segments := make([]string, 0, len(raw))
	for _, s := range raw {
		decoded, err := url.PathUnescape(s)
		if err != nil {
			return false
		}
		segments = append(segments, decoded)
	}
	if len(raw) < 2 || raw[0] != "" || raw[1] != "eve" {
		return false
	}
	raw, segments = raw[2:], segments[2:]
	if len(raw) > 1 && raw[1] == "v1" && regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`).MatchString(raw[0]) {
		raw, segments = raw[1:], segments[1:]
	}
	var names, ids []string // of the rest, in turn
	for i := range raw {
		switch {
		case i == 2 || len(raw) > 4 && (i == 4 || i == 5):
			ids = append(ids, segments[i])
		default:
			names = append(names, raw[i])
		}
	}
	for _, id := range ids {
		if !ValidID(id) {
			return false
		}
	}
	switch len(raw) {
	case 4:
		return slices.Equal(names, []string{"v1", "session", "stream"}) && ids[0] == child
	case 7:
		return slices.Equal(names, []string{"v1", "session", "subagents", "stream"}) && ids[0] == parent && ids[2] == child
	}
	return false
}

// checkChildURL holds that the URL built for a child is on the agent's host and path, and names the child and no way out.
func checkChildURL(t *testing.T, e *endpoint, via *Via, parent, child string) {
	t.Helper()
	built := e.stream(child, via, nil)
	u, err := url.Parse(built)
	if err != nil {
		t.Fatalf("%q: %v", built, err)
	}
	if u.Scheme != "https" || u.Host != "eve.test" || u.User != nil || u.Fragment != "" || u.RawQuery != e.query.Encode() {
		t.Errorf("%s leads elsewhere", built)
	}
	if path.Clean(u.Path) != u.Path || strings.ContainsAny(u.Path, "\\%?#") {
		t.Errorf("%s has a way out", built)
	}
	want := "/v1/session/" + child + "/stream"
	if via.Parent != "" {
		want = "/v1/session/" + parent + "/subagents/" + via.CallID + "/" + child + "/stream"
	}
	if !strings.HasSuffix(u.Path, want) || strings.HasPrefix(e.path, "/apps") && !strings.HasPrefix(u.Path, "/apps/x/eve/") {
		t.Errorf("%s is not the stream of %s", built, child)
	}
}
