package fakeeve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// capture is one exchange recorded with the real server, version 26.
type capture struct {
	name, method, target string
	requestHeader        http.Header
	requestBody          string
	status               int
	header               http.Header
	lines                []arrival
	tail                 string        // unterminated end of the body
	end                  string        // complete, client-timeout, client-done, no-body
	endAt                time.Duration // since the response head
}

// arrival is a body line and when it came, since the response head.
type arrival struct {
	at   time.Duration
	text string
}

func (c capture) url() *url.URL {
	u, err := url.ParseRequestURI(c.target)
	if err != nil {
		panic(err)
	}
	return u
}

// session is the id in the path, empty when there is none.
func (c capture) session() string {
	_, rest, _ := strings.Cut(c.url().EscapedPath(), "/session/")
	id, _, _ := strings.Cut(rest, "/")
	return id
}

func (c capture) isStream() bool { return strings.HasSuffix(c.url().EscapedPath(), "/stream") }

func milliseconds(t *testing.T, s string) time.Duration {
	t.Helper()
	f, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(s), "ms"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(f * float64(time.Millisecond))
}

// readCapture parses a capture file.
func readCapture(t *testing.T, path string) capture {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := capture{name: strings.TrimSuffix(filepath.Base(path), ".txt")}
	_, rest, _ := strings.Cut(string(raw), ">>> REQUEST\n")
	request, rest, _ := strings.Cut(rest, "\n\n<<< RESPONSE head [+")
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(request, "\n", "\r\n") + "\r\n\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	c.method, c.target, c.requestHeader = req.Method, req.RequestURI, req.Header
	_, body, _ := strings.Cut(request, "\n\n")
	c.requestBody = strings.TrimSuffix(body, "\n")
	headAt, rest, _ := strings.Cut(rest, "]\n")
	began := milliseconds(t, headAt)
	head, rest, _ := strings.Cut(rest, "\n\n--- body lines with arrival times\n")
	res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(strings.ReplaceAll(head, "\n", "\r\n")+"\r\n\r\n")), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	c.status, c.header = res.StatusCode, res.Header
	if len(res.TransferEncoding) > 0 {
		c.header["Transfer-Encoding"] = res.TransferEncoding
	}
	body, end, _ := strings.Cut(rest, "--- end: ")
	for line := range strings.Lines(strings.TrimSuffix(body, "\n")) {
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "[unterminated] "); ok {
			c.tail = text
			continue
		}
		at, text, ok := strings.Cut(strings.TrimPrefix(line, "[+"), "] ")
		if !ok {
			t.Fatalf("body line %q", line)
		}
		c.lines = append(c.lines, arrival{milliseconds(t, at) - began, text})
	}
	c.end, end, _ = strings.Cut(end, " [+")
	endAt, _, _ := strings.Cut(end, "]")
	c.endAt = milliseconds(t, endAt) - began
	return c
}

// probe is the authenticator of the recorded server.
func probe(r *http.Request) (string, *fakeeve.Denied) {
	if r.Header.Get("Authorization") == "Bearer probe-expired" {
		return "", &fakeeve.Denied{Status: http.StatusUnauthorized, Code: "token_expired", Text: "Token expired."}
	}
	principal, denied := fakeeve.Credentials{
		Bearer: map[string]string{
			"probe-alice": "alice", "probe-bob": "bob", "probe-forbidden": "mallory",
		},
		Basic:     map[string]string{"probe": "probe-secret"},
		Forbidden: []string{"mallory"},
		Realm:     "eve-probe",
	}.Authenticate(r)
	if denied != nil && denied.Status == http.StatusForbidden {
		denied.Text = "This principal may not use the probe."
	}
	return principal, denied
}

// setUp makes the session that the capture was recorded from, and returns what happens to it after the response head.
func (c capture) setUp(s *fakeeve.Server) (live func()) {
	number, _, _ := strings.Cut(c.name, "-")
	n, _ := strconv.Atoi(number)
	id := c.session()
	has := func(part string) bool { return strings.Contains(c.name, part) }
	switch {
	case id == "" || has("unknown-stream") || has("unknown-c") || has("unknown-reset") || has("unknown-session") ||
		has("garbage-session") || has("subagents"):
		return nil
	case has("stranded-after-reset"):
	case has("stranded"):
		log := fakeeve.NewMemLog(c.texts(0, time.Hour)...)
		s.AddSession(id, fakeeve.SessionSpec{Log: log, Stranded: "0.79.0"})
		return nil
	case has("expiry") && c.status != http.StatusOK:
		s.AddSession(id, fakeeve.SessionSpec{}).Expire()
		return nil
	}
	if !c.isStream() || c.status != http.StatusOK {
		log := fakeeve.NewMemLog()
		if has("reset-again") || has("reset-then") {
			log.End()
		}
		s.AddSession(id, fakeeve.SessionSpec{Log: log})
		return nil
	}

	bounded := c.header.Get("X-Eve-Stream-Tail-Index") != ""
	// What came with the head was stored; the rest came while the response was open.
	soon := 50 * time.Millisecond
	if bounded {
		soon = time.Hour
	} else if slices.Contains([]int{151, 153, 155, 156, 193, 194, 53}, n) {
		soon = 5 * time.Millisecond
	}
	stored := c.texts(0, soon)
	before := 0
	start, _ := strconv.Atoi(c.url().Query().Get("startIndex"))
	switch {
	case bounded:
		tail, _ := strconv.Atoi(c.header.Get("X-Eve-Stream-Tail-Index"))
		before = tail + 1 - len(stored)
	case c.name == "071-idx-beyond" || c.name == "193-beyond-tail-then-events":
		before = 9
	case c.name == "165-reset-then-stream-beyond":
		before = 15
	case start < 0 && -start == len(stored):
		before = 6
	case start > 0:
		before = start
	}
	log := fakeeve.NewMemLog()
	for i := range before {
		log.Append(fmt.Sprintf(`{"type":"earlier","data":{"n":%d},"meta":{}}`, i))
	}
	log.Append(stored...)
	s.AddSession(id, fakeeve.SessionSpec{Log: log})
	ends := c.end == "complete" && !bounded && !strings.Contains(c.lines[len(c.lines)-1].text, "$eve")
	if c.name == "165-reset-then-stream-beyond" || ends && len(c.texts(soon, time.Hour)) == 0 {
		log.End()
		return nil
	}
	return func() {
		began := time.Now()
		for _, l := range c.lines {
			if l.at >= soon && counted(l.text) {
				time.Sleep(l.at - time.Since(began))
				log.Append(l.text)
			}
		}
		if ends {
			time.Sleep(c.endAt - time.Since(began))
			log.End()
		}
	}
}

func counted(line string) bool { return line != "" && !strings.HasPrefix(line, `{"$eve"`) }

// texts are the counted lines that came from <= at < to.
func (c capture) texts(from, to time.Duration) []string {
	var texts []string
	for _, l := range c.lines {
		if l.at >= from && l.at < to && counted(l.text) {
			texts = append(texts, l.text)
		}
	}
	return texts
}

// TestCaptures replays every recorded exchange with the real server against the fake one: same status, same headers,
// same body lines at the same times, same end.
func TestCaptures(t *testing.T) {
	paths, err := filepath.Glob("testdata/captures/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("captures: %d, %v", len(paths), err)
	}
	for _, path := range paths {
		c := readCapture(t, path)
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.replay(t) })
		})
	}
}

func (c capture) replay(t *testing.T) {
	t.Helper()
	s := fakeeve.New(fakeeve.WithVersion(26), fakeeve.WithAuth(probe))
	live := c.setUp(s)
	srv := fakeeve.StartPipe(s)
	defer srv.Close()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, c.method, srv.URL+c.target, strings.NewReader(c.requestBody))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "127.0.0.1:43180"
	req.Header = c.requestHeader
	req.Header.Set("User-Agent", "")
	began := time.Now()
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()

	header := res.Header.Clone()
	if len(res.TransferEncoding) > 0 {
		header["Transfer-Encoding"] = res.TransferEncoding
	}
	want := c.header.Clone()
	for _, h := range []http.Header{header, want} {
		h.Del("Date")
		if c.session() == "" && h.Get("X-Eve-Session-Id") != "" {
			h.Set("X-Eve-Session-Id", ids(h.Get("X-Eve-Session-Id")))
		}
	}
	if res.StatusCode != c.status {
		t.Errorf("status %d, want %d", res.StatusCode, c.status)
	}
	if diff := cmp.Diff(want, header); diff != "" {
		t.Errorf("headers (-real +fake):\n%s", diff)
	}

	if live != nil {
		go live()
	}
	if c.end == "client-timeout" || c.end == "client-done" {
		time.AfterFunc(c.endAt+200*time.Millisecond, cancel)
	}
	if c.isStream() && c.status == http.StatusOK {
		c.compareStream(t, res.Body, began)
		return
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var wantBody bytes.Buffer
	for _, l := range c.lines {
		wantBody.WriteString(l.text + "\n")
	}
	wantBody.WriteString(c.tail)
	if diff := cmp.Diff(canonical(t, wantBody.Bytes()), canonical(t, body)); diff != "" {
		t.Errorf("body (-real +fake):\n%s", diff)
	}
}

// compareStream compares a stream body line by line, each within 100 ms.
func (c capture) compareStream(t *testing.T, body io.Reader, began time.Time) {
	t.Helper()
	r := bufio.NewReader(body)
	for i := 0; ; i++ {
		line, err := r.ReadString('\n')
		at := time.Since(began)
		if err != nil {
			switch {
			case i < len(c.lines):
				t.Errorf("body ended with %v behind %d of %d lines", err, i, len(c.lines))
			case line != "":
				t.Errorf("unterminated %q", line)
			case c.end == "complete" && err != io.EOF:
				t.Errorf("body ended with %v, the real one completely", err)
			case c.end != "complete" && !errors.Is(err, context.Canceled):
				t.Errorf("body ended with %v, the real one stayed open", err)
			case c.end == "complete" && (at < c.endAt-100*time.Millisecond || at > c.endAt+100*time.Millisecond):
				t.Errorf("body ended at %v, the real one at %v", at, c.endAt)
			}
			return
		}
		if i >= len(c.lines) {
			t.Errorf("at %v: %q behind the last line", at, line)
			return
		}
		want := c.lines[i]
		if got := strings.TrimSuffix(line, "\n"); got != want.text {
			t.Errorf("line %d at %v:\n  real %.200s\n  fake %.200s", i, at, want.text, got)
		}
		if at < want.at-100*time.Millisecond || at > want.at+100*time.Millisecond {
			t.Errorf("line %d came at %v, the real one at %v", i, at, want.at)
		}
	}
}

// ids replaces ids that are made up by the server.
func ids(s string) string {
	s = regexp.MustCompile(`wrun_\w{26}`).ReplaceAllString(s, "wrun_X")
	return regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(s, "UUID")
}

// canonical is a JSON body with members in order and ids replaced.
func canonical(t *testing.T, body []byte) string {
	t.Helper()
	if len(body) == 0 {
		return ""
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("body %q: %v", body, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return ids(string(out))
}
