package fakeeve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// bubble runs a test of a server in virtual time, over pipes.
func bubble(t *testing.T, s func() *fakeeve.Server, test func(t *testing.T, e *env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &env{t: t, s: s()}
		e.srv = fakeeve.StartPipe(e.s)
		defer e.srv.Close()
		test(t, e)
	})
}

// plain is a server of version 27 with nothing set.
func plain() *fakeeve.Server { return fakeeve.New() }

// of makes servers with options.
func of(opts ...fakeeve.Option) func() *fakeeve.Server {
	return func() *fakeeve.Server { return fakeeve.New(opts...) }
}

// env is a server and its client.
type env struct {
	t   *testing.T
	s   *fakeeve.Server
	srv *fakeeve.Running
}

// do sends a request; path begins behind /eve/v1.
func (e *env) do(ctx context.Context, method, path, body string) *http.Response {
	e.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, e.srv.URL+"/eve/v1"+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	res, err := e.srv.Client().Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// timed is a line of a body and when it came.
type timed struct {
	at   time.Duration
	text string
}

// output is a body as it was read.
type output struct {
	res   *http.Response
	lines []timed // each without its line end
	rest  string  // bytes behind the last line end
	err   error   // nil for a clean end
	took  time.Duration
}

// texts are the lines without their times.
func (o output) texts() []string {
	texts := make([]string, 0, len(o.lines))
	for _, l := range o.lines {
		texts = append(texts, l.text)
	}
	return texts
}

// raw is the body's bytes.
func (o output) raw() string {
	var b strings.Builder
	for _, l := range o.lines {
		b.WriteString(l.text + "\n")
	}
	return b.String() + o.rest
}

// schedule is the lines with their times, in seconds.
func (o output) schedule() []string {
	var lines []string
	for _, l := range o.lines {
		lines = append(lines, fmt.Sprintf("%g %s", l.at.Seconds(), l.text))
	}
	return lines
}

// read reads a stream to its end; path begins behind /eve/v1/session/.
func (e *env) read(path string) output {
	e.t.Helper()
	return e.readFor(path, 0)
}

// readFor reads a stream for d (0: to its end), then goes away.
func (e *env) readFor(path string, d time.Duration) output {
	e.t.Helper()
	ctx, cancel := context.WithCancel(e.t.Context())
	defer cancel()
	if d > 0 {
		time.AfterFunc(d, cancel)
	}
	began := time.Now()
	o := output{res: e.do(ctx, http.MethodGet, "/session/"+path, "")}
	r := bufio.NewReader(o.res.Body)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			o.rest, o.took = line, time.Since(began)
			if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				o.err = err
			}
			return o
		}
		o.lines = append(o.lines, timed{time.Since(began), strings.TrimSuffix(line, "\n")})
	}
}

// numbered are n stored lines that say which they are.
func numbered(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"almanac.page","data":{"n":%d}}]}`, i)
	}
	return lines
}

const (
	beat  = `{"$eve":"heartbeat"}`
	lease = `{"$eve":"stream.lease-ended"}`
	ended = `{"$eve":"stream.ended"}`
)

// join is one list of lines out of strings and lists.
func join(parts ...any) []string {
	var lines []string
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			lines = append(lines, p)
		case []string:
			lines = append(lines, p...)
		default:
			panic(fmt.Sprintf("join of %T", p))
		}
	}
	return lines
}

func position(n int) string { return fmt.Sprintf(`{"$eve":"position","next":%d}`, n) }
