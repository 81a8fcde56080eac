package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// process is what the program has of its surroundings.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// getenv reads the environment; an empty variable is an unset one.
	getenv func(string) string
	// cut ends when a command that was told to end in good order must end at once.
	cut context.Context
}

// cli is the command line.
type cli struct {
	Serve     serveCommand     `cmd:"" help:"Serve the sessions of an Eve agent over gRPC."`
	Demo      demoCommand      `cmd:"" help:"Serve a scripted agent and follow one of its sessions: nothing else is needed."`
	Subscribe subscribeCommand `cmd:"" help:"Read a session through a gateway, remembering how far."`
	Verify    verifyCommand    `cmd:"" help:"Check what a gateway promises, on a session that is also read without it."`
	Cursor    cursorCommand    `cmd:"" help:"Show what is in a saved cursor, as JSON."`
	Version   versionCommand   `cmd:"" help:"Show the version of this program."`
}

// usageError is an error in what the program was told, not in what it did.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// What a command returns that has told people itself how it ended.
var (
	// errReported: it failed.
	errReported = errors.New("failed")
	// errInterrupted: it was told to end before it was done.
	errInterrupted = errors.New("interrupted")
)

// run is the program: it ends in good order when ctx does, and returns the exit code.
func run(ctx context.Context, args []string, p *process) int {
	command, err := parse(ctx, args, p, &cli{})
	if err != nil {
		return p.explain(err)
	}
	if command == nil {
		return exitOK
	}
	return p.explain(command.Run())
}

// parse fills in c. It returns nil when there was no more to do than to print help.
func parse(ctx context.Context, args []string, p *process, c *cli) (*kong.Context, error) {
	helped := false
	parser, err := kong.New(c,
		kong.Name("gateway"),
		kong.Description("A gRPC gateway in front of Eve agents."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ValueFormatter(describeFlag),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(int) { helped = true }), // for --help alone; parsing goes on behind it, for nothing
		kong.Bind(p),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return nil, fmt.Errorf("building the command line: %w", err)
	}
	command, err := parser.Parse(args)
	switch {
	case helped:
		return nil, nil
	case err != nil:
		return nil, &usageError{err}
	}
	return command, nil
}

// explain prints an error for people and returns the exit code it means.
func (p *process) explain(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(p.stderr, "gateway: %s\ngateway: --help lists the commands, and the flags of each.\n", printable(err.Error()))
		return exitUsage
	}
	fmt.Fprintf(p.stderr, "gateway: %s\n", printable(err.Error()))
	return exitFailed
}
