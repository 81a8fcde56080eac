package ingress

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// claims are the claims of a token. Names are compared exactly, and a name that stands twice makes the token bad: two
// readers must not see two tokens.
type claims map[string]jsontext.Value

func parseClaims(payload []byte) (claims, error) {
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil || c == nil {
		return nil, errors.New("the claims are no JSON object, or name something twice")
	}
	return c, nil
}

// find returns a claim by its name or, where that begins with /, by a JSON pointer. Nil: there is none.
func (c claims) find(name string) jsontext.Value {
	if !strings.HasPrefix(name, "/") {
		return c[name]
	}
	var value jsontext.Value
	for i, token := range strings.Split(name[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if i > 0 {
			if c = nil; json.Unmarshal(value, &c) != nil { // not an object
				return nil
			}
		}
		if value = c[token]; value == nil {
			return nil
		}
	}
	return value
}

// text returns a claim that is a string.
func (c claims) text(name string) (string, bool) {
	var s string
	v := c.find(name)
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return "", false
	}
	return s, true
}

// list returns the values of a claim that is a plain value or a list of these; none where it is missing or null.
func (c claims) list(name string) ([]string, error) {
	v := c.find(name)
	values := []jsontext.Value{v}
	if v.Kind() == 0 || v.Kind() == 'n' {
		return nil, nil
	}
	if v.Kind() == '[' {
		if err := json.Unmarshal(v, &values); err != nil {
			return nil, fmt.Errorf("the claim %s cannot be read", name)
		}
	}
	list := make([]string, 0, len(values))
	for _, v := range values {
		switch v.Kind() {
		case '"':
			var s string
			if err := json.Unmarshal(v, &s); err != nil {
				return nil, fmt.Errorf("the claim %s cannot be read", name)
			}
			list = append(list, s)
		case '0', 't', 'f':
			list = append(list, string(v))
		default:
			return nil, fmt.Errorf("the claim %s is neither a plain value nor a list of these", name)
		}
	}
	return list, nil
}

// time returns a claim that is a time in seconds since 1970 (RFC 7519 section 2); false: there is none.
func (c claims) time(name string) (time.Time, bool, error) {
	v := c.find(name)
	if v == nil {
		return time.Time{}, false, nil
	}
	var seconds float64
	const limit = 253402300800 // year 10000
	if json.Unmarshal(v, &seconds) != nil || v.Kind() != '0' || seconds < 0 || seconds >= limit {
		return time.Time{}, false, fmt.Errorf("the claim %s is no time", name)
	}
	return time.Unix(int64(seconds), 0), true, nil // rounded down: never longer than was said
}
