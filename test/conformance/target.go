package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// errNotAsked: the target has no way to be asked for what the case needs.
var errNotAsked = errors.New("the target has no {until}")

// reading is what a target is asked to read.
type reading struct {
	url     string // base URL of the agent
	session string
	version int // stream version of the session: a cursor into the middle of it has one
	start   int64
	until   string
}

// target reads a session and gives what it read. The error is its failure, or errNotAsked.
type target func(ctx context.Context, r reading) ([]record, error)

// program is a target that is a command line, words separated by spaces, with placeholders.
func program(line string) (target, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil, errors.New("--target: no program")
	}
	return func(ctx context.Context, r reading) ([]record, error) {
		if r.until != untilEnd && !strings.Contains(line, "{until}") {
			return nil, errNotAsked
		}
		replace := strings.NewReplacer("{url}", r.url, "{session}", r.session, "{start}", strconv.FormatInt(r.start, 10), "{until}", r.until)
		args := make([]string, len(words))
		for i, w := range words {
			args[i] = replace.Replace(w)
		}
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the program that the user asked for
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		cmd.WaitDelay = time.Second // for what a killed program started and left behind
		failure := cmd.Run()
		if ctx.Err() != nil {
			failure = fmt.Errorf("did not end in time: %w", context.Cause(ctx))
		} else if failure != nil {
			failure = fmt.Errorf("%w: %s", failure, lastLine(stderr.String()))
		}
		records, err := readRecords(&stdout)
		return records, errors.Join(failure, err)
	}, nil
}

// lastLine is the last line of a program's messages.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
