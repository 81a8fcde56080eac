package ingress

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// certElement is one element of x-forwarded-client-cert: what a proxy says of one connection's certificate.
type certElement struct {
	uris, dns []string
}

const (
	maxXFCC         = 16 << 10
	maxXFCCElements = 16
)

// parseXFCC reads the value of an x-forwarded-client-cert entry as Envoy writes it: elements behind commas, each of
// key=value pairs behind semicolons, values in double quotes where they hold a comma, a semicolon or an equals sign,
// with \" for a quote. Whatever else stands there is an error: what could be read in two ways would be read in the
// wrong one.
func parseXFCC(value string) ([]certElement, error) {
	if len(value) > maxXFCC {
		return nil, fmt.Errorf("longer than %d bytes", maxXFCC)
	}
	var list []certElement
	r := xfccReader{rest: value}
	for {
		if len(list) == maxXFCCElements {
			return nil, fmt.Errorf("more than %d elements", maxXFCCElements)
		}
		e, err := r.element()
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", len(list)+1, err)
		}
		list = append(list, e)
		if r.rest == "" {
			return list, nil
		}
		r.rest = r.rest[1:] // the comma
	}
}

type xfccReader struct {
	rest string
}

// element reads pairs up to a comma or the end.
func (r *xfccReader) element() (certElement, error) {
	var e certElement
	seen := map[string]bool{}
	for {
		key, value, err := r.pair()
		if err != nil {
			return e, err
		}
		switch key {
		case "uri":
			if value != "" { // the proxy has nothing to tell
				e.uris = append(e.uris, value)
			}
		case "dns":
			if value != "" {
				e.dns = append(e.dns, value)
			}
		case "by": // the proxy's own names
		case "hash":
			if sum, err := hex.DecodeString(value); err != nil || len(sum) != 32 {
				return e, errors.New("a hash that is none")
			}
			fallthrough
		default:
			if seen[key] {
				return e, errors.New("a key that can stand once stands twice")
			}
			seen[key] = true
		}
		if r.rest == "" || r.rest[0] == ',' {
			return e, nil
		}
		r.rest = r.rest[1:] // the semicolon
	}
}

// pair reads a key, in lower case, and its value; what follows is a semicolon, a comma or the end.
func (r *xfccReader) pair() (key, value string, err error) {
	key, rest, ok := strings.Cut(r.rest, "=")
	if !ok || key == "" || strings.ContainsFunc(key, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') }) {
		return "", "", errors.New("no key where one must stand")
	}
	if strings.HasPrefix(rest, `"`) {
		value, rest, err = unquote(rest[1:])
	} else {
		n := strings.IndexAny(rest, ",;")
		if n < 0 {
			n = len(rest)
		}
		value, rest = rest[:n], rest[n:]
		if strings.ContainsAny(value, `"=`) {
			err = errors.New("a value that must be in quotes is not")
		}
	}
	if err == nil && strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
		err = errors.New("a value with characters that cannot stand there")
	}
	if err == nil && rest != "" && rest[0] != ',' && rest[0] != ';' {
		err = errors.New("text behind a quoted value")
	}
	r.rest = rest
	return strings.ToLower(key), value, err
}

// unquote reads a quoted value, from behind its opening quote to behind its closing one.
func unquote(text string) (value, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return b.String(), text[i+1:], nil
		case '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", "", errors.New("an escape that is none")
			}
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errors.New("a quote is not closed")
}
