package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// roleVariable is the environment variable that makes this program one of the processes that are not measuring.
const roleVariable = "EVEGATEWAY_BENCH_ROLE"

// The roles.
const (
	roleEve   = "eve"
	roleRead  = "read"
	roleBare  = "bare"
	roleServe = "serve"
)

// order is what a process is told to do: one JSON line on its standard input. It answers each with one JSON line on its
// standard output, and ends when there are no more.
type order struct {
	// Session to add (eve), or to read, under the id ID.
	Session session
	ID      string
	// Address of a gRPC server to read from, or of an Eve to serve.
	Address string
	Payload int32
	// Reads is how often to read it.
	Reads int
	// Profile is where to write profiles to until the next order without one: a path that the suffixes complete.
	Profile string
}

// answer is what comes back.
type answer struct {
	Error string
	// Address and Encoded are where a server listens.
	Address, Encoded string
	reading
	allocations
}

// player does what one role does, order by order.
type player func(ctx context.Context, o order) (answer, error)

// play is a process in a role: it says that it is ready, with whatever is to be known of it, then takes orders.
func play(ctx context.Context, role string, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ready answer
	var do player
	var err error
	switch role {
	case roleEve:
		ready, do, err = newEve(ctx)
	case roleRead:
		do = read
	case roleBare:
		ready, do, err = newBare(ctx)
	case roleServe:
		do = newInside()
	default:
		err = errors.New("unknown role " + role)
	}
	if err != nil {
		return err
	}
	in, out := json.NewDecoder(stdin), json.NewEncoder(stdout)
	for a := ready; ; {
		if err := out.Encode(a); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading an order: %w", err)
		}
		if a, err = do(ctx, o); err != nil {
			a.Error = err.Error()
		}
	}
}
