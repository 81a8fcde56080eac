package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// flags are the command line.
type flags struct {
	Target   string        `xor:"what" placeholder:"COMMAND" help:"Program to test, with arguments. {url}, {session}, {start} and {until} are replaced."`
	Gateway  bool          `xor:"what" help:"Test the gateway: build it, start it, read through it."`
	List     bool          `xor:"what" help:"List the cases and their rules."`
	Run      string        `default:"." placeholder:"REGEXP" help:"Only the cases whose names match."`
	Timeout  time.Duration `default:"30s" placeholder:"DURATION" help:"The longest a case may take, default ${default}."`
	Parallel int           `default:"4" placeholder:"N" help:"Cases at a time, default ${default}."`
}

// errFailed: cases failed, and the report says which.
var errFailed = errors.New("cases failed")

func main() {
	var f flags
	kong.Parse(&f, kong.Name("conformance"), kong.Description("Runs a reader of Eve sessions against scripted ones."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := f.run(ctx, os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, errFailed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
}

// run does what the flags say.
func (f *flags) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	match, err := regexp.Compile(f.Run)
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	if f.Parallel < 1 || f.Timeout <= 0 {
		return errors.New("--parallel and --timeout must be above 0")
	}
	cases, err := loadCases(match)
	if err != nil {
		return err
	}
	if len(cases) == 0 {
		return fmt.Errorf("--run: no case matches %s", match)
	}
	if f.List {
		for _, c := range cases {
			if _, err := fmt.Fprintf(stdout, "%s\n    %s\n", c.Name, c.Rule); err != nil {
				return fmt.Errorf("listing the cases: %w", err)
			}
		}
		return nil
	}
	if f.Target == "" && !f.Gateway {
		return errors.New("say what to test: --target or --gateway")
	}
	eve := newEve()
	running, err := fakeeve.StartTCP(ctx, eve)
	if err != nil {
		return fmt.Errorf("starting the agent: %w", err)
	}
	defer running.Close()
	s := suite{eve: eve, url: running.URL, timeout: f.Timeout, at: f.Parallel}
	if f.Gateway {
		var stop func() error
		if s.target, stop, err = gatewayTarget(ctx, running.URL, stderr); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	} else if s.target, err = program(f.Target); err != nil {
		return err
	}
	failed, err := s.run(ctx, cases, stdout)
	if err == nil && failed > 0 {
		err = errFailed
	}
	return err
}

// newEve is the agent: leases and heartbeats are short, so that the kit takes seconds.
func newEve() *fakeeve.Server {
	return fakeeve.New(fakeeve.WithLease(2*time.Second), fakeeve.WithHeartbeat(100*time.Millisecond))
}
