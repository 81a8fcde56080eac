package auth

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// BearerFile authenticates requests to Eve with the token in a file. The file is read for every request, so a
// rotated token is used at once. The token is trimmed; an empty one sends no header (contract 7.1).
type BearerFile struct {
	path string
}

// NewBearerFile returns the source of a token file; it fails when the file cannot be read now.
func NewBearerFile(path string) (*BearerFile, error) {
	b := &BearerFile{path: path}
	if _, err := b.token(); err != nil {
		return nil, err
	}
	return b, nil
}

// Headers returns the authorization header. It never answers from a cache, so refresh changes nothing.
func (b *BearerFile) Headers(context.Context, bool) (http.Header, error) {
	token, err := b.token()
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h, nil
}

func (b *BearerFile) token() (string, error) {
	text, err := os.ReadFile(b.path)
	if err != nil {
		return "", fmt.Errorf("reading the bearer token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("reading the bearer token: %s holds something that is no token", b.path)
	}
	return token, nil
}
