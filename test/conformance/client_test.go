package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// client is a small reader of protocol 27, with a flaw if it is told to have one. It is the target of the tests, run
// as a program of its own.
type client struct {
	flaw         string
	url, session string
	line         int64
	out          *json.Encoder
}

// The flaws: each breaks one rule.
const (
	flawTransport = "counts-transport"  // transport records have a number
	flawTruncated = "counts-truncated"  // what is left of a cut line has a number
	flawPosition  = "ignores-position"  // position records move nothing
	flawRepeat    = "repeats"           // a reconnect asks for the last line again
	flawUnknown   = "drops-unknown"     // unknown fact types have no slot
	flawEnd       = "ends-with-body"    // the end of a body is the end of the session
	flawVersion   = "takes-any-version" // the version header is not looked at
	flawError     = "ends-well"         // failures are not told
	flawSilent    = "skips-silently"    // skipped lines are not told
	flawOutput    = "chats"             // something else is on standard output
	flawHang      = "hangs"             // never ends
)

// clientMain is the program `client FLAW URL SESSION START`.
func clientMain(args []string) int {
	start, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return 2
	}
	c := client{flaw: args[0], url: args[1], session: args[2], line: start, out: json.NewEncoder(os.Stdout)}
	switch c.flaw {
	case flawHang:
		_, _ = io.Copy(io.Discard, os.Stdin)
		select {}
	case flawOutput:
		fmt.Println("reading", c.session)
	}
	failures := 0
	for {
		before := c.line
		ended, err := c.connect()
		if ended {
			return 0
		}
		if c.line > before {
			failures = 0
		}
		final := errors.As(err, new(*finalError))
		if failures++; err != nil && (final || failures == 5) {
			fmt.Fprintln(os.Stderr, err)
			if c.flaw == flawError {
				return 0
			}
			return 1
		}
	}
}

// finalError is one that will not change.
type finalError struct{ text string }

func (e *finalError) Error() string { return e.text }

// connect reads one response. It tells whether the session has ended.
func (c *client) connect() (ended bool, err error) {
	from := c.line
	if c.flaw == flawRepeat && from > 0 {
		from--
		c.line--
	}
	url := fmt.Sprintf("%s/eve/v1/session/%s/stream?startIndex=%d", c.url, c.session, from)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return false, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("answered %s", resp.Status)
	}
	if v := resp.Header.Get("x-eve-stream-version"); v != "27" && c.flaw != flawVersion {
		return false, &finalError{"stream version " + strconv.Quote(v)}
	}
	body := bufio.NewReader(resp.Body)
	for {
		line, err := body.ReadString('\n')
		whole := err == nil || json.Valid([]byte(line)) || c.flaw == flawTruncated
		if text := strings.TrimSpace(line); text != "" && whole && c.read(text) {
			return true, nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) && c.flaw == flawEnd {
				return true, nil
			}
			return false, err
		}
	}
}

// read takes one line. It tells whether the session has ended.
func (c *client) read(text string) (ended bool) {
	var line struct {
		Eve      *string           `json:"$eve"`
		Next     *int64            `json:"next"`
		At       *string           `json:"at"`
		Facts    []json.RawMessage `json:"facts"`
		Progress json.RawMessage   `json:"progress"`
	}
	err := json.Unmarshal([]byte(text), &line)
	switch {
	case err == nil && line.Eve != nil && (*line.Eve != "position" || line.Next != nil && *line.Next < 1<<53):
		if c.flaw == flawTransport {
			c.line++
		}
		if *line.Eve == "position" && *line.Next > c.line && c.flaw != flawPosition {
			if c.flaw != flawSilent {
				c.print(map[string]any{"skipped": []int64{c.line, *line.Next}})
			}
			c.line = *line.Next
		}
		return *line.Eve == "stream.ended"
	case err == nil && line.At != nil && line.Facts != nil:
		slot := 0
		for _, fact := range line.Facts {
			var known struct{ Type string }
			if err := json.Unmarshal(fact, &known); c.flaw == flawUnknown && (err != nil || strings.HasPrefix(known.Type, "new.")) {
				continue
			}
			c.print(map[string]any{"line": c.line, "slot": slot, "raw": string(fact)})
			ended = ended || known.Type == "session.ended"
			slot++
		}
	case err == nil && strings.HasPrefix(string(line.Progress), "{"):
		c.print(map[string]any{"line": c.line, "slot": 0, "raw": string(line.Progress)})
	default:
		c.print(map[string]any{"line": c.line, "unreadable": true})
	}
	c.line++
	return ended
}

func (c *client) print(record map[string]any) { _ = c.out.Encode(record) } //nolint:errchkjson // numbers, text and bool
