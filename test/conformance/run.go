package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// suite runs cases against one target.
type suite struct {
	eve     *fakeeve.Server
	url     string
	target  target
	timeout time.Duration // of a case
	at      int           // cases at a time
}

// outcome is what became of a case.
type outcome struct {
	difference string // empty: passed
	skipped    bool
	took       time.Duration
}

// run runs cases and reports each in order, as soon as those before it are done. It returns how many failed.
func (s *suite) run(ctx context.Context, cases []*testCase, report io.Writer) (failed int, err error) {
	outcomes := make([]chan outcome, len(cases))
	slots := make(chan struct{}, s.at)
	var running sync.WaitGroup
	defer running.Wait()
	for i := range cases {
		outcomes[i] = make(chan outcome, 1)
	}
	running.Go(func() {
		for i, c := range cases {
			slots <- struct{}{}
			running.Go(func() {
				outcomes[i] <- s.runCase(ctx, c)
				<-slots
			})
		}
	})
	passed, skipped := 0, 0
	for i, c := range cases {
		o := <-outcomes[i]
		switch {
		case o.skipped:
			skipped++
			_, err = fmt.Fprintf(report, "SKIP %s: %v\n", c.Name, errNotAsked)
		case o.difference == "":
			passed++
			_, err = fmt.Fprintf(report, "PASS %s (%.1f s)\n", c.Name, o.took.Seconds())
		default:
			failed++
			_, err = fmt.Fprintf(report, "FAIL %s (%.1f s)\n  rule: %s\n  %s\n", c.Name, o.took.Seconds(), c.Rule, o.difference)
		}
		if err != nil {
			return failed, fmt.Errorf("writing the report: %w", err)
		}
	}
	line := fmt.Sprintf("%d passed, %d failed", passed, failed)
	if skipped > 0 {
		line += fmt.Sprintf(", %d skipped", skipped)
	}
	if _, err := fmt.Fprintln(report, line); err != nil {
		return failed, fmt.Errorf("writing the report: %w", err)
	}
	return failed, nil
}

// runCase sets up the session of a case and has the target read it.
func (s *suite) runCase(ctx context.Context, c *testCase) outcome {
	began := time.Now()
	log, err := c.Log.build(c.Version)
	if err != nil {
		return outcome{difference: err.Error()}
	}
	if err := s.add(c, log); err != nil {
		return outcome{difference: err.Error()}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("after %v", s.timeout))
	var writing sync.WaitGroup
	defer writing.Wait()
	defer cancel()
	if c.Live != nil {
		live := fakeeve.Continue(fakeeve.Head(log, c.Live.From))
		s.eve.Session(c.Name).Update(func(spec *fakeeve.SessionSpec) { spec.Log = live })
		writing.Go(func() { s.write(ctx, c, log, live) })
	}
	got, failure := s.target(ctx, reading{url: s.url, session: c.Name, version: c.Version, start: c.Start, until: c.Until})
	if errors.Is(failure, errNotAsked) {
		return outcome{skipped: true}
	}
	return outcome{difference: c.verdict(got, failure, log), took: time.Since(began)}
}

// add adds the session of a case. Transcripts that are read from their first line are played byte for byte.
func (s *suite) add(c *testCase, log fakeeve.Log) error {
	if names := c.Log.Transcripts; names != nil {
		first, err := fakeeve.Transcript(names[0])
		if err != nil {
			return err
		}
		if c.Start == first.Start {
			_, err := s.eve.AddTranscript(c.Name, names...)
			return err
		}
	}
	s.eve.AddSession(c.Name, fakeeve.SessionSpec{Version: c.Version, Log: log, Stranded: c.Stranded})
	s.eve.Script(c.Name, c.script())
	return nil
}

// write stores the lines of a live session while somebody follows it.
func (s *suite) write(ctx context.Context, c *testCase, whole fakeeve.Log, live *fakeeve.MemLog) {
	ticker := time.NewTicker(time.Duration(c.Live.Every))
	defer ticker.Stop()
	for live.Len() < whole.Len() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s.followed(c.Name) {
			live.AppendRaw(whole.Line(live.Len()))
		}
	}
	live.End()
}

// followed tells whether a session is being followed right now.
func (s *suite) followed(session string) bool {
	for _, r := range s.eve.StreamRequests(session) {
		if r.Following && r.End == fakeeve.EndOpen {
			return true
		}
	}
	return false
}
