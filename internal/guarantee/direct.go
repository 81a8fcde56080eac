package guarantee

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// Server is an Eve server that is read without the gateway, and without its code.
type Server struct {
	// URL is the agent's base URL (contract 1.1).
	URL string
	// Headers authenticates a request; nil: nothing does.
	Headers func(context.Context) (http.Header, error)
	// Client makes the requests. Nil: one that follows no redirects.
	Client *http.Client
}

// Direct is a session as its server tells it.
type Direct struct {
	Lines Lines
	// Version is the stream version of the last answer.
	Version int
}

const (
	directIdle     = 30 * time.Second // of a body; at least two heartbeats
	directAttempts = 5                // requests in a row that bring nothing
)

// Read appends to d what a session has stored behind it, up to the tail it has at the first request. Behind an empty d
// that is the whole session; all of it is kept in memory.
func (s *Server) Read(ctx context.Context, session string, d *Direct) error {
	tail := int64(-1)
	for failures := 0; ; {
		before := len(d.Lines)
		end, err := s.piece(ctx, session, d, tail)
		if tail < 0 {
			tail = end
		}
		if len(d.Lines) > before {
			failures = 0
		}
		switch {
		case err == nil && int64(len(d.Lines)) > tail:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errFinal), failures >= directAttempts:
			return fmt.Errorf("reading session %s from %s: line %d of %d: %w", session, s.host(), len(d.Lines), tail+1, orShort(err))
		}
		failures++
		if err := pause(ctx, time.Duration(failures)*250*time.Millisecond); err != nil {
			return err
		}
	}
}

// Tail is the number of the session's last stored line, -1 when there is none.
func (s *Server) Tail(ctx context.Context, session string) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := s.get(ctx, session, -1)
	if err != nil {
		return 0, fmt.Errorf("asking %s for the tail of session %s: %w", s.host(), session, err)
	}
	defer func() { _ = resp.Body.Close() }()
	return tailOf(resp)
}

var (
	errFinal = errors.New("the server refuses")
	errShort = errors.New("the body ends before the tail")
)

func orShort(err error) error {
	if err == nil {
		return errShort
	}
	return err
}

// piece makes one request and appends what it brings, up to the tail of the first one; tail is -1 when this is it.
func (s *Server) piece(ctx context.Context, session string, d *Direct, tail int64) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := s.get(ctx, session, int64(len(d.Lines)))
	if err != nil {
		return tail, err
	}
	defer func() { _ = resp.Body.Close() }()
	if tail < 0 {
		if tail, err = tailOf(resp); err != nil {
			return tail, err
		}
	}
	if d.Version, err = strconv.Atoi(resp.Header.Get("X-Eve-Stream-Version")); err != nil {
		return tail, fmt.Errorf("%w: no stream version", errFinal)
	}
	idle := time.AfterFunc(directIdle, cancel)
	defer idle.Stop()
	body := bufio.NewReader(resp.Body)
	for int64(len(d.Lines)) <= tail { // the body of an old server does not end there
		line, err := body.ReadBytes('\n')
		idle.Reset(directIdle)
		if err != nil && !errors.Is(err, io.EOF) {
			return tail, err
		}
		for _, e := range fakeeve.ReadBody(line, d.Version, int64(len(d.Lines))) {
			d.add(e)
		}
		if err != nil {
			break
		}
	}
	return tail, nil
}

// add takes in one line of a body.
func (d *Direct) add(e fakeeve.BodyEntry) {
	switch {
	case e.Kind == fakeeve.Position:
		for int64(len(d.Lines)) < e.Next {
			d.Lines = append(d.Lines, fakeeve.Entry{Line: int64(len(d.Lines)), Kind: fakeeve.Skipped})
		}
	case e.Kind.Counts():
		e.Raw = bytes.TrimSuffix(e.Raw, []byte{'\r'})
		d.Lines = append(d.Lines, e.Entry)
	}
}

func tailOf(resp *http.Response) (int64, error) {
	tail, err := strconv.ParseInt(resp.Header.Get("X-Eve-Stream-Tail-Index"), 10, 64)
	if err != nil {
		return -1, fmt.Errorf("%w: no tail index", errFinal)
	}
	return tail, nil
}

// get opens a bounded read.
func (s *Server) get(ctx context.Context, session string, start int64) (*http.Response, error) {
	target, err := s.stream(session, start)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFinal, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFinal, err)
	}
	if s.Headers != nil {
		if req.Header, err = s.Headers(ctx); err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
	}
	client := s.Client
	if client == nil {
		client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	resp, err := client.Do(req)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) { // the URL may hold secrets
			err = u.Err
		}
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	_ = resp.Body.Close()
	err = fmt.Errorf("it answers with status %d", resp.StatusCode)
	if resp.StatusCode < http.StatusInternalServerError {
		err = fmt.Errorf("%w: %w", errFinal, err)
	}
	return nil, err
}

var namedAgent = regexp.MustCompile(`^/eve/[a-z0-9][a-z0-9_-]*$`)

// stream is the URL of a bounded read of a session's stream (contract 1.1, 1.9).
func (s *Server) stream(session string, start int64) (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return "", errors.New("the agent's URL is none")
	}
	base := strings.TrimSuffix(u.Path, "/")
	if named := strings.TrimSuffix(base, "/v1"); namedAgent.MatchString(named) {
		base = named + "/v1"
	} else {
		base += "/eve/v1"
	}
	q := u.Query()
	q.Set("startIndex", strconv.FormatInt(start, 10))
	q.Set("includeTailIndex", "1")
	q.Set("follow", "false")
	to := url.URL{Scheme: u.Scheme, Host: u.Host, Path: base, RawQuery: q.Encode()}
	return to.JoinPath("session", url.PathEscape(session), "stream").String(), nil
}

// host is what of the URL can be shown.
func (s *Server) host() string {
	if u, err := url.Parse(s.URL); err == nil {
		return u.Host
	}
	return "the server"
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
