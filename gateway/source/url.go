package source

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// endpoint builds the URLs of one agent (contract 1.1).
type endpoint struct {
	base  url.URL
	path  string // escaped, without a trailing slash
	query url.Values
}

var agentMount = regexp.MustCompile(`^/eve/[a-z0-9][a-z0-9_-]*(/v1)?$`)

// newEndpoint parses an agent's base URL: http or https, a host, perhaps a base path, perhaps query parameters that
// go with every request. A base path of exactly /eve/<agent> (or /eve/<agent>/v1) mounts the routes of a named agent.
func newEndpoint(base string) (*endpoint, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, errors.New("agent URL: not a URL") // the text may hold secrets
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("agent URL: scheme %q, want http or https", u.Scheme)
	case u.Host == "":
		return nil, errors.New("agent URL: no host")
	case u.User != nil:
		return nil, errors.New("agent URL: credentials do not belong into the URL: configure them")
	case u.Fragment != "":
		return nil, errors.New("agent URL: a fragment is never sent")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("agent URL: malformed query")
	}
	e := &endpoint{base: url.URL{Scheme: u.Scheme, Host: u.Host}, path: strings.TrimRight(u.EscapedPath(), "/"), query: query}
	return e, nil
}

// build returns the URL of a route: segments are escaped one by one, params win over the base's query. mount is the
// route prefix of another agent on the same host, or empty for the agent's own.
func (e *endpoint) build(mount string, params url.Values, segments []string) string {
	var b strings.Builder
	b.WriteString(e.base.String())
	switch named := agentMount.MatchString(e.path); {
	case mount != "" && named:
		b.WriteString(mount)
	case mount != "":
		b.WriteString(e.path + mount)
	case named:
		b.WriteString(strings.TrimSuffix(e.path, "/v1") + "/v1")
	default:
		b.WriteString(e.path + "/eve/v1")
	}
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	query := url.Values{}
	maps.Copy(query, e.query)
	maps.Copy(query, params)
	if len(query) > 0 {
		b.WriteString("?" + query.Encode())
	}
	return b.String()
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@~-]{0,255}$`)

// ValidID says whether an id may stand in a path: Eve answers others with nonsense, so they are refused before any
// request (contract O9).
func ValidID(id string) bool {
	return idPattern.MatchString(id) && !strings.Contains(id, "..")
}

// streamParams are the parameters of the stream route (contract 1.9). Numbers are plain decimals: Eve refuses every
// other spelling (O8).
func streamParams(start int64, bounded bool) url.Values {
	v := url.Values{}
	if start != 0 {
		v.Set("startIndex", strconv.FormatInt(start, 10))
	}
	if bounded {
		// follow=false alone would do on new servers; a stranded session refuses the tail without it (O17), an old
		// server knows only the tail.
		v.Set("includeTailIndex", "1")
		v.Set("follow", "false")
	}
	if start >= 0 {
		v.Set("streamControlVersion", "1")
	}
	return v
}

// codePattern matches the stable words of Eve's error bodies that are safe to show.
var codePattern = regexp.MustCompile(`^[A-Za-z0-9_.+-]{1,64}$`)
