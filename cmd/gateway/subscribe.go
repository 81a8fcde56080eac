package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/evegateway/evegateway/cursor"
	"github.com/evegateway/evegateway/cursor/follow"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// subscribeCommand reads a session and prints what it gets.
type subscribeCommand struct {
	Session    string        `arg:"" help:"The session's id."`
	Server     string        `default:"127.0.0.1:7443" placeholder:"ADDRESS" help:"Address of the gateway, default ${default}."`
	Agent      string        `placeholder:"NAME" help:"The agent, where the gateway has several."`
	CursorFile string        `placeholder:"FILE" help:"Save the cursor here after each record that was printed, and go on from it if it is there."`
	Until      string        `default:"end" enum:"end,tail,turn" placeholder:"BOUND" help:"Read to the end of the session, the default, or to its present tail, or to the end of a turn."`
	From       string        `default:"start" enum:"start,tail" placeholder:"PLACE" help:"Where to begin when there is no saved cursor: start, the default, or tail."`
	Payload    string        `default:"raw-and-typed" enum:"raw-and-typed,raw,typed,none" placeholder:"FORM" help:"Form of the records: raw-and-typed, the default, raw, typed or none."`
	JSON       bool          `name:"json" help:"Print whole messages as JSON, one a line."`
	RetryFor   time.Duration `default:"2m" placeholder:"DURATION" help:"How long to try again while nothing comes, default ${default}; 0 for ever."`
}

// Run implements the command.
func (c *subscribeCommand) Run(ctx context.Context, p *process) error {
	req, err := c.request()
	if err != nil {
		return err
	}
	s := &subscription{printer: newPrinter(p, c.JSON), file: cursorFile(c.CursorFile)}
	start, err := s.start()
	if err != nil {
		return err
	}
	if start != (cursor.Cursor{}) {
		fmt.Fprintf(p.stderr, "gateway: going on from %v, saved in %s\n", start, s.file)
	}
	conn, err := dial(c.Server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	s.follower = follow.New(evev1.NewStreamServiceClient(conn), req,
		follow.WithStart(start), follow.WithSave(s.save), follow.WithBackoff(follow.Backoff{GiveUp: c.RetryFor}),
		follow.WithRetryNotice(func(failed *follow.Error, wait time.Duration) {
			fmt.Fprintf(p.stderr, "gateway: %s; trying again in %v\n", describe(failed), wait.Round(time.Millisecond))
		}),
	)
	err = s.read(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ctx.Err()):
		fmt.Fprintf(p.stderr, "gateway: interrupted\ngateway: %s\n", s.position())
		return errInterrupted
	}
	fmt.Fprintf(p.stderr, "gateway: %s\ngateway: %s\n", describe(err), s.position())
	if failed, ok := errors.AsType[*follow.Error](err); ok {
		fmt.Fprintf(p.stderr, "gateway: %s\n", nextStep(failed))
	}
	return errReported
}

// request is what the flags ask for.
func (c *subscribeCommand) request() (*evev1.SubscribeRequest, error) {
	until, err := boundOf(c.Until)
	if err != nil {
		return nil, usagef("--until: %w", err)
	}
	req := &evev1.SubscribeRequest{Agent: c.Agent, SessionId: c.Session, Until: until, MaxMessageBytes: messageBytes}
	switch c.Payload {
	case "raw":
		req.Payload = evev1.Payload_PAYLOAD_RAW
	case "typed":
		req.Payload = evev1.Payload_PAYLOAD_TYPED
	case "none":
		req.Payload = evev1.Payload_PAYLOAD_NONE
	}
	if c.From == "tail" {
		req.Start = &evev1.SubscribeRequest_Position{Position: evev1.Position_POSITION_TAIL}
	}
	return req, nil
}

// subscription prints a session and remembers how far.
type subscription struct {
	printer  *printer
	file     cursorFile // empty: nothing is saved
	follower *follow.Follower
}

// start is the saved cursor, zero when there is none.
func (s *subscription) start() (cursor.Cursor, error) {
	if s.file == "" {
		return cursor.Cursor{}, nil
	}
	c, err := s.file.load()
	switch {
	case errors.Is(err, os.ErrNotExist):
		return cursor.Cursor{}, nil
	case err == nil && c.SessionID == "": // names come last in the text: it was cut short, or another program wrote it
		return cursor.Cursor{}, fmt.Errorf("cursor file %s: it names no session", s.file)
	}
	return c, err
}

// read prints the messages of the session, each before the cursor behind it is saved.
func (s *subscription) read(ctx context.Context) error {
	for m, err := range s.follower.Messages(ctx) {
		if err != nil {
			return err
		}
		if err := s.printer.print(m); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}

// save is called when a message has been printed.
func (s *subscription) save(_ context.Context, c cursor.Cursor) error {
	if s.file == "" {
		return nil
	}
	return s.file.save(c)
}

// position says how far the reading came, and where that is kept.
func (s *subscription) position() string {
	at := s.follower.Cursor()
	switch {
	case at == cursor.Cursor{}:
		return "nothing was read"
	case s.file == "":
		return fmt.Sprintf("read up to %v; with --cursor-file this could go on from there", at)
	}
	return fmt.Sprintf("read up to %v, saved in %s", at, s.file)
}
