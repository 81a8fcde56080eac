// Command bench measures what the gateway costs and prints it as Markdown: the first of the budgets the project has
// set itself.
//
//	go run ./bench             the tables, in under three minutes
//	go run ./bench -time 10m   the same from more rounds
//	go run ./bench -profile D  profiles of the gateway in directory D, and what it allocates, instead
//
// Three processes talk over loopback: a fake Eve that generates its sessions line by line, the gateway as it is shipped
// (`gateway serve`, built for the occasion), and a reader that looks at messages no closer than it must. So CPU time and
// memory are the gateway's own, and what the other two cost only shows in the elapsed time: the figure to go by is
// CPU time per record, and with it the records a second that one core of the gateway can pass on.
//
// The limit to compare with is a bare grpc-go server that sends the very messages the gateway sent, over and over: once
// with the default codec, which encodes each, and once encoded beforehand, which is what is left when all work of the
// gateway is gone.
//
// All measurements are repeated in rounds, one after the other and not each at a stretch, as long as there is time;
// what is printed are medians. It needs Linux, whose /proc tells what a process has used.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := program(ctx, os.Args[1:], os.Getenv(roleVariable), os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// program is one of the processes: the one that measures, unless a role says otherwise.
func program(ctx context.Context, args []string, role string, stdin io.Reader, stdout, stderr io.Writer) error {
	if role != "" {
		return play(ctx, role, stdin, stdout)
	}
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.profile != "" {
		return profile(ctx, o, stdout)
	}
	return measure(ctx, o, stdout)
}

// options are the flags.
type options struct {
	// time bounds the whole; rounds and what they measure adapt to it.
	time    time.Duration
	rounds  int
	scale   float64
	lines   []int64 // of the sessions in the table of growth
	gateway string
	profile string
	log     io.Writer
	// command is how to get the same again.
	command string
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{log: stderr, command: strings.TrimSpace("go run ./bench " + strings.Join(args, " "))}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.time, "time", 150*time.Second, "how long to measure; what does not fit is left out, and said to be")
	flags.IntVar(&o.rounds, "rounds", 5, "how often to measure at most")
	flags.Float64Var(&o.scale, "scale", 1, "factor on the number of records in each measurement; the lengths of -lines are as they are")
	lines := flags.String("lines", "1000,100000,1000000", "`lengths` of the sessions in the table of growth, shortest first")
	flags.StringVar(&o.gateway, "gateway", "", "measure this `program` in place of the one built from the source")
	flags.StringVar(&o.profile, "profile", "", "write profiles of the gateway into this `directory` instead of measuring")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for text := range strings.SplitSeq(*lines, ",") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			return o, fmt.Errorf("-lines: %q is no number of lines", text)
		}
		o.lines = append(o.lines, n)
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.time <= 0 || o.rounds <= 0 || o.scale <= 0:
		return o, errors.New("-time, -rounds and -scale must be positive")
	}
	return o, nil
}
