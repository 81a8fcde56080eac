package ingress

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/internal/reload"
)

// token is a static token: whose it is, and its hash.
type token struct {
	sum       [sha256.Size]byte
	principal auth.Principal
}

// tokens are the static tokens of a file, re-read as it changes. A file that becomes bad changes nothing until it is
// repaired; an empty one lets nobody in.
type tokens struct {
	file *reload.Files[[]token]
}

func newTokens(path string, log *slog.Logger) (*tokens, error) {
	file, err := reload.New("token file", []string{path}, func(texts [][]byte) ([]token, error) { return parseTokens(texts[0]) }, log)
	if err != nil {
		return nil, err
	}
	return &tokens{file: file}, nil
}

// find returns whose token it is. All tokens are compared, so that time tells nothing.
func (t *tokens) find(text string) (auth.Principal, bool) {
	sum := sha256.Sum256([]byte(text))
	list, found := t.file.Get(), -1
	for i := range list {
		if subtle.ConstantTimeCompare(sum[:], list[i].sum[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return auth.Principal{}, false
	}
	return list[found].principal, true
}

var (
	namePattern      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@:/+-]{0,254}$`)
	attributePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)
)

// ParseTokens checks the text of a token file: a token a line, as
//
//	name sha256:<hex> [attribute=value ...]
//
// The hash is of the token without a line feed: printf %s "$token" | sha256sum. It is not salted, so tokens must be
// random, 128 bits at least, and not words. A name may have several tokens, to replace one without a gap; an attribute
// given several times has several values. Empty lines and lines that begin with # are comments.
func ParseTokens(text []byte) error {
	_, err := parseTokens(text)
	return err
}

func parseTokens(text []byte) ([]token, error) {
	var list []token
	seen := map[[sha256.Size]byte]bool{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		t, err := parseToken(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if seen[t.sum] {
			return nil, fmt.Errorf("line %d: the token of another line", number)
		}
		seen[t.sum] = true
		list = append(list, t)
	}
	return list, nil
}

// parseToken reads the fields of a line. Its errors quote none of them: a token may stand there in the clear.
func parseToken(fields []string) (token, error) {
	if !namePattern.MatchString(fields[0]) {
		return token{}, errors.New("the first field is no name")
	}
	if len(fields) < 2 {
		return token{}, errors.New("no hash: want name sha256:<hex>")
	}
	digits, ok := strings.CutPrefix(fields[1], "sha256:")
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != sha256.Size {
		return token{}, fmt.Errorf("the second field is not sha256: and %d hexadecimal digits; never write a token itself", 2*sha256.Size)
	}
	t := token{sum: [sha256.Size]byte(sum), principal: auth.Principal{
		ID: fields[0], Issuer: auth.IssuerTokens, Kind: auth.KindToken, Attributes: map[string][]string{},
	}}
	for i, field := range fields[2:] {
		name, value, ok := strings.Cut(field, "=")
		if !ok || value == "" || !attributePattern.MatchString(name) {
			return token{}, fmt.Errorf("field %d is no attribute: want name=value", i+3)
		}
		t.principal.Attributes[name] = append(t.principal.Attributes[name], value)
	}
	return t, nil
}
