package authtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Audience is the audience of tokens that ask for none.
const Audience = "gateway"

// Issuer is an OpenID Connect issuer: discovery, keys, tokens. Safe for concurrent use.
type Issuer struct {
	// URL is its name and place.
	URL string

	t         testing.TB
	mu        sync.Mutex
	keys      []signingKey
	count     int
	down      int           // status to answer with, 0: in order
	delay     time.Duration // before every answer
	fetches   int
	discovery int
	document  map[string]any // replaces fields of the discovery document
}

// signingKey is a key of an issuer.
type signingKey struct {
	id        string
	algorithm jose.SignatureAlgorithm
	private   crypto.Signer
	hidden    bool // not published
}

// NewIssuer makes an issuer at https://issuer.test, which Transport reaches, in virtual time too. It has one key, of
// algorithm ES256.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{URL: "https://issuer.test", t: t}
	i.Rotate(jose.ES256)
	return i
}

// StartIssuer makes an issuer that listens on loopback, until the test is over.
func StartIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := NewIssuer(t)
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.URL = server.URL
	return i
}

// Transport reaches the issuer without a network.
func (i *Issuer) Transport() http.RoundTripper { return transport{i} }

type transport struct{ issuer *Issuer }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if delay := t.issuer.wait(); delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	w := httptest.NewRecorder()
	t.issuer.answer(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(i.wait())
	i.answer(w, r)
}

func (i *Issuer) wait() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.delay
}

func (i *Issuer) answer(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var body any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		i.discovery++
		doc := map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize"}
		maps.Copy(doc, i.document)
		body = doc
	case "/keys":
		i.fetches++
		body = i.set()
	default:
		http.NotFound(w, r)
		return
	}
	if i.down != 0 {
		w.WriteHeader(i.down)
		return
	}
	text, err := json.Marshal(body)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

func (i *Issuer) set() jose.JSONWebKeySet {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range i.keys {
		if !k.hidden {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: string(k.algorithm), Use: "sig"})
		}
	}
	return set
}

// Rotate adds a key, which signs from now on, and returns its id. Older ones stay published.
func (i *Issuer) Rotate(algorithm jose.SignatureAlgorithm) string {
	i.t.Helper()
	var private crypto.Signer
	var err error
	switch algorithm {
	case jose.ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.EdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.count++
	id := fmt.Sprintf("key-%d", i.count)
	i.keys = append(i.keys, signingKey{id: id, algorithm: algorithm, private: private})
	return id
}

// Hide takes the newest key out of what is published; it still signs.
func (i *Issuer) Hide() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[len(i.keys)-1].hidden = true
}

// Withdraw forgets all keys but the newest.
func (i *Issuer) Withdraw() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = i.keys[len(i.keys)-1:]
}

// PublicKey is the newest key as the world knows it.
func (i *Issuer) PublicKey() crypto.PublicKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[len(i.keys)-1].private.Public()
}

// Fail makes the issuer answer with a status; 0 ends that.
func (i *Issuer) Fail(status int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = status
}

// Delay makes the issuer wait before it answers.
func (i *Issuer) Delay(d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.delay = d
}

// Document replaces fields of the discovery document.
func (i *Issuer) Document(fields map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.document = fields
}

// Fetches is how often the keys, and the discovery document, were asked for.
func (i *Issuer) Fetches() (keys, discovery int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches, i.discovery
}

// Claims are the claims of a token for subject that is valid for an hour. A value of nil in with takes a claim away.
func (i *Issuer) Claims(subject string, with map[string]any) map[string]any {
	now := time.Now()
	c := map[string]any{"iss": i.URL, "sub": subject, "aud": Audience, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(c, with)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// Token signs the Claims of subject.
func (i *Issuer) Token(subject string, with map[string]any) string {
	i.t.Helper()
	payload, err := json.Marshal(i.Claims(subject, with))
	if err != nil {
		i.t.Fatal(err)
	}
	return i.Sign(payload, map[string]any{"typ": "JWT"})
}

// Sign signs any payload with the newest key. header adds to the key's id and algorithm, and replaces the id.
func (i *Issuer) Sign(payload []byte, header map[string]any) string {
	i.t.Helper()
	i.mu.Lock()
	key := i.keys[len(i.keys)-1]
	i.mu.Unlock()
	return Sign(i.t, key.algorithm, key.private, payload, merged(map[string]any{"kid": key.id}, header))
}

func merged(a, b map[string]any) map[string]any {
	maps.Copy(a, b)
	maps.DeleteFunc(a, func(_ string, v any) bool { return v == nil })
	return a
}

// Sign signs a payload with any key, as anyone could.
func Sign(t testing.TB, algorithm jose.SignatureAlgorithm, key any, payload []byte, header map[string]any) string {
	t.Helper()
	opts := &jose.SignerOptions{}
	for name, value := range header {
		opts.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, opts)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Unsigned makes a token out of three parts, whatever they are.
func Unsigned(header, payload string, signature []byte) string {
	e := base64.RawURLEncoding
	return e.EncodeToString([]byte(header)) + "." + e.EncodeToString([]byte(payload)) + "." + e.EncodeToString(signature)
}
