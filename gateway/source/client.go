package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// HeaderSource gives the headers that authenticate a request to Eve. It is asked anew for every HTTP attempt, lease
// renewals included (contract 7.1). refresh is true after Eve refused the headers given before: a source with a
// cache must not answer from it.
type HeaderSource interface {
	Headers(ctx context.Context, refresh bool) (http.Header, error)
}

// DefaultSettle is the default of Config.Settle: how long it takes to find a session unknown.
const DefaultSettle = 2 * time.Second

// Config configures a Client. The zero value of every field but URL has a default.
type Config struct {
	// URL is the agent's base URL (contract 1.1). Required.
	URL string
	// Headers authenticates requests. Nil: none.
	Headers HeaderSource
	// Transport makes the round trips. Nil: NewTransport(nil).
	Transport http.RoundTripper
	// MaxLineBytes is the largest line that is read, exact. Default 16 MiB.
	MaxLineBytes int
	// OpenTimeout bounds an attempt up to the response headers. Eve takes 80 µs per stored event to send them
	// (contract O5), so it is long: default 2 min.
	OpenTimeout time.Duration
	// Idle is the silence after which a body of stream version 27 counts as cut. Default 30 s.
	Idle time.Duration
	// LegacyIdle is the same at 21..26 with a negotiated lease. Default 15 s.
	LegacyIdle time.Duration
	// OpenAttempts is how many failed opens in a row end a read. Default 12, about 38 s.
	OpenAttempts int
	// BackoffBase and BackoffCap bound the exponential backoff. Defaults 250 ms and 5 s.
	BackoffBase, BackoffCap time.Duration
	// Settle is how long a missing session, or a position beyond the tail, is asked for again: storage may lag
	// behind what was just acknowledged. Default 2 s.
	Settle time.Duration
	// Rand gives jitter in [0,1). Nil: the process's random source.
	Rand func() float64
}

// Client reads one Eve agent. Safe for concurrent use.
type Client struct {
	cfg      Config
	endpoint *endpoint
	http     *http.Client
}

// NewClient checks the configuration; it makes no request.
func NewClient(cfg Config) (*Client, error) {
	e, err := newEndpoint(cfg.URL)
	if err != nil {
		return nil, err
	}
	setDefault(&cfg.MaxLineBytes, 16<<20)
	setDefault(&cfg.OpenTimeout, 2*time.Minute)
	setDefault(&cfg.Idle, 30*time.Second)
	setDefault(&cfg.LegacyIdle, 15*time.Second)
	setDefault(&cfg.OpenAttempts, 12)
	setDefault(&cfg.BackoffBase, 250*time.Millisecond)
	setDefault(&cfg.BackoffCap, 5*time.Second)
	setDefault(&cfg.Settle, DefaultSettle)
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	if cfg.Transport == nil {
		cfg.Transport = NewTransport(nil)
	}
	return &Client{cfg: cfg, endpoint: e, http: &http.Client{
		Transport: cfg.Transport,
		// A redirect could carry credentials to another origin (contract 7.1).
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// NewTransport returns the HTTP transport for long reads: no compression (a compressing proxy stalls live lines,
// contract G8), no proxy from the environment, idle connections dropped before Eve drops them (O16). dial replaces
// the network in tests; nil dials TCP.
func NewTransport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	return &http.Transport{
		DialContext:           dial,
		DisableCompression:    true,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       4 * time.Second,
		MaxIdleConnsPerHost:   64,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
}

// answer is an HTTP answer to an open: a stream, or a status with what its error body says.
type answer struct {
	status     int
	code       string // stable code of Eve's error body (contract 1.3)
	eveVersion string
	retryAfter time.Duration
	header     http.Header
	body       io.ReadCloser // of a 200 that is a stream
}

// get makes one attempt. The answer's body lives until ctx ends.
func (c *Client) get(ctx context.Context, target string, refresh bool) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("building the request: %w", err)
	}
	if c.cfg.Headers != nil {
		h, err := c.cfg.Headers.Headers(ctx, refresh)
		if err != nil {
			return nil, &Error{Reason: Refused, Message: "the gateway's own credentials for the agent cannot be resolved", Err: unexpected(err)}
		}
		maps.Copy(req.Header, h)
	}
	req.Header.Set("Accept", "application/x-ndjson")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("Cache-Control", "no-store")
	resp, err := c.http.Do(req) //nolint:bodyclose // lives on in the answer: closed by readError, or with its conn
	if err != nil {
		return nil, scrub(err)
	}
	a := &answer{status: resp.StatusCode, header: resp.Header, body: resp.Body}
	if resp.StatusCode != http.StatusOK {
		a.readError(resp)
	}
	return a, nil
}

// scrub drops the URL from a transport error: its query may hold secrets.
func scrub(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

const maxErrorBody = 64 << 10

func (a *answer) readError(resp *http.Response) {
	defer func() { _ = resp.Body.Close() }()
	a.body = nil
	a.retryAfter = parseRetryAfter(resp.Header.Get("Retry-After"))
	if t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		return
	}
	var body struct {
		Code       string `json:"code"`
		EveVersion string `json:"eveVersion"`
	}
	if json.Unmarshal(text, &body) == nil { // an open body: what is missing stays empty
		a.code, a.eveVersion = body.Code, body.EveVersion
	}
}

// parseRetryAfter reads both forms of RFC 9110 section 10.2.3; zero when there is none.
func parseRetryAfter(v string) time.Duration {
	if s, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(t))
	}
	return 0
}
