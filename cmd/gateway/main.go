// Command gateway serves the sessions of Eve agents over gRPC, shows how that looks, and reads them.
//
// `gateway --help` lists the commands. Exit codes: 0 when all went well, 1 when something failed, 2 when the command
// line, the environment or the configuration file makes no sense, 130 when `gateway subscribe` was interrupted before
// the end it was waiting for.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	gentle, endGently := context.WithCancel(context.Background())
	cut, cutOff := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		endGently()
		<-signals
		cutOff()
		signal.Reset() // a third signal ends the process, whatever it is doing
	}()
	os.Exit(run(gentle, os.Args[1:], &process{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, cut: cut,
	}))
}
