package ingress

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/evegateway/evegateway/auth"
)

const (
	fetchTimeout = 10 * time.Second
	// retryFetch is the least time between two attempts while there are no keys at all.
	retryFetch = time.Second
	// maxDocument bounds what is read of an issuer's answer.
	maxDocument = 1 << 20
	minRSABits  = 2048
)

// keySet holds the keys of one issuer. They are fetched when first needed, when they have become old, and when a token
// names one that is not among them: the last at most once in a while, however many such tokens come, because everyone
// can make them.
type keySet struct {
	ctx                        context.Context
	client                     *http.Client
	log                        *slog.Logger
	issuer, fixed              string
	refetch, refresh, maxStale time.Duration

	mu      sync.Mutex
	keys    []publicKey
	fetched time.Time // when keys were; zero: never
	failed  bool      // the last attempt
	after   time.Time // no attempt of any kind before
	unknown time.Time // no attempt for an unknown key before
	url     string    // where the keys are, once discovered
	running *fetching
}

// publicKey is a key that an issuer publishes for verifying.
type publicKey struct {
	id, algorithm string // empty: not said
	key           crypto.PublicKey
}

// fetching is an attempt; done is closed behind it.
type fetching struct {
	done chan struct{}
}

// find returns the keys that can have signed a token: those with its key id or, where it names none, all that fit its
// algorithm. fresh asks for keys that were fetched after the call, as far as the rate allows. None: the issuer has no
// such key. The error, Unavailable, says that it cannot be known.
func (s *keySet) find(ctx context.Context, id, algorithm string, fresh bool) ([]crypto.PublicKey, error) {
	s.mu.Lock()
	now, found := time.Now(), s.match(id, algorithm)
	if s.usable(now) && len(found) > 0 && !fresh {
		if now.Sub(s.fetched) >= s.refresh {
			s.start(now) // and nobody waits
		}
		s.mu.Unlock()
		return found, nil
	}
	wait := s.running
	switch {
	case !s.usable(now):
		wait = s.start(now)
	case wait == nil && !now.Before(s.unknown):
		s.unknown = now.Add(s.refetch)
		wait = s.start(now)
	}
	s.mu.Unlock()
	if wait != nil {
		select {
		case <-wait.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	found = s.match(id, algorithm)
	if !s.usable(time.Now()) || len(found) == 0 && s.failed {
		return nil, auth.Refuse(auth.Unavailable, "the keys of the token's issuer cannot be fetched now: try again later",
			fmt.Errorf("issuer %s: no keys to verify with", s.issuer))
	}
	return found, nil
}

// usable says whether there are keys that are not too old.
func (s *keySet) usable(now time.Time) bool {
	return !s.fetched.IsZero() && now.Sub(s.fetched) < s.maxStale
}

func (s *keySet) match(id, algorithm string) []crypto.PublicKey {
	var list []crypto.PublicKey
	for _, k := range s.keys {
		if (id == "" || k.id == id) && (k.algorithm == "" || k.algorithm == algorithm) && fits(k.key, algorithm) {
			list = append(list, k.key)
		}
	}
	return list
}

// fits says whether a key is of an algorithm's kind.
func fits(key crypto.PublicKey, algorithm string) bool {
	switch key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")
	case *ecdsa.PublicKey:
		return strings.HasPrefix(algorithm, "ES")
	case ed25519.PublicKey:
		return algorithm == oidc.EdDSA
	}
	return false
}

// start begins an attempt, unless one is running or the last one was only just; it returns what is running, if
// anything. The lock is held.
func (s *keySet) start(now time.Time) *fetching {
	if s.running != nil || now.Before(s.after) {
		return s.running
	}
	f := &fetching{done: make(chan struct{})}
	s.running = f
	go func() {
		keys, err := s.fetch()
		s.mu.Lock()
		defer s.mu.Unlock()
		defer close(f.done)
		now := time.Now()
		s.running = nil
		if err == nil {
			s.keys, s.fetched, s.failed = keys, now, false
			return
		}
		s.after = now.Add(retryFetch)
		if s.usable(now) {
			s.after = now.Add(s.refetch) // no hurry
		}
		s.url = "" // they may have moved
		if !s.failed {
			s.log.LogAttrs(s.ctx, slog.LevelError, "keys of an issuer cannot be fetched: it is asked again and again",
				slog.String("issuer", s.issuer), slog.String("problem", err.Error()))
		}
		s.failed = true
	}()
	return f
}

// fetch fetches the keys. Nothing else touches url meanwhile but under the lock, behind it.
func (s *keySet) fetch() ([]publicKey, error) {
	ctx, cancel := context.WithTimeout(s.ctx, fetchTimeout)
	defer cancel()
	s.mu.Lock()
	target := s.url
	s.mu.Unlock()
	if target == "" {
		var err error
		if target, err = s.discover(ctx); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.url = target
		s.mu.Unlock()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("building the request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Cache-Control", "no-cache")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetching the keys: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetching the keys from %s: status %d", target, resp.StatusCode)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("fetching the keys from %s: %w", target, err)
	}
	keys, err := parseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("the keys from %s: %w", target, err)
	}
	return keys, nil
}

// discover asks the issuer where its keys are.
func (s *keySet) discover(ctx context.Context) (string, error) {
	if s.fixed != "" {
		return s.fixed, nil
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, s.client), s.issuer)
	if err != nil {
		return "", fmt.Errorf("discovery: %.300w", err) // the answer may be a whole page
	}
	var document struct {
		KeysURL string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return "", errors.New("discovery: a document that cannot be read")
	}
	from, err := url.Parse(s.issuer)
	if err != nil {
		return "", errors.New("discovery: the issuer is no URL")
	}
	if err := checkOrigin(document.KeysURL, from); err != nil {
		return "", fmt.Errorf("discovery: the place of the keys: %w", err)
	}
	return document.KeysURL, nil
}

// parseKeys reads a JSON Web Key Set. What is no public key for verifying, or of a kind that is not known, is left out
// (RFC 7517 section 5).
func parseKeys(text []byte) ([]publicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, errors.New("no JSON Web Key Set")
	}
	var list []publicKey
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(raw, &k) != nil || !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" {
			continue
		}
		if r, ok := k.Key.(*rsa.PublicKey); ok && r.N.BitLen() < minRSABits {
			continue
		}
		list = append(list, publicKey{id: k.KeyID, algorithm: k.Algorithm, key: k.Key})
	}
	return list, nil
}

// limited bounds the bodies of answers.
type limited struct {
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxDocument)
	}
	return resp, err
}
