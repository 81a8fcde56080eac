package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evegateway/evegateway/cursor/follow"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// maxMessage is what the reader behind the gateway receives, in bytes: more than any line of the cases.
const maxMessage = 16 << 20

// gatewayTarget builds the gateway, starts `gateway serve` in front of the agent at url, and reads through it. stop
// ends it.
func gatewayTarget(ctx context.Context, url string, messages io.Writer) (t target, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return nil, nil, fmt.Errorf("making a place for the gateway: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	binary := filepath.Join(dir, "gateway")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/evegateway/evegateway/cmd/gateway") //nolint:gosec // a place of our own
	if out, err := build.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("building the gateway: %w\n%s", err, out)
	}
	serve := exec.CommandContext(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--eve-url", url) //nolint:gosec // what was just built
	serve.Cancel = func() error { return serve.Process.Signal(syscall.SIGTERM) }
	serve.WaitDelay = 5 * time.Second
	logs, err := serve.StderrPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("starting the gateway: %w", err)
	}
	if err := serve.Start(); err != nil {
		return nil, nil, fmt.Errorf("starting the gateway: %w", err)
	}
	end := func() error {
		_ = serve.Process.Signal(syscall.SIGTERM)
		return errors.Join(serve.Wait(), os.RemoveAll(dir))
	}
	address, err := listening(logs, messages)
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("connecting to the gateway: %w", err), end())
	}
	stop = func() error { return errors.Join(conn.Close(), end()) }
	return through(evev1.NewStreamServiceClient(conn)), stop, nil
}

// listening waits for the log line that says where a gateway listens. What it logs from then on goes to messages where
// it is a warning or worse.
func listening(logs io.Reader, messages io.Writer) (string, error) {
	lines := bufio.NewScanner(logs)
	for lines.Scan() {
		var entry struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Msg == "listening" {
			go func() {
				for lines.Scan() {
					var entry struct{ Level string }
					if json.Unmarshal(lines.Bytes(), &entry) != nil || entry.Level == "ERROR" {
						_, _ = fmt.Fprintln(messages, lines.Text())
					}
				}
			}()
			return entry.Address, nil
		}
		_, _ = fmt.Fprintln(messages, lines.Text())
	}
	return "", errors.Join(errors.New("the gateway ended before it listened"), lines.Err())
}

// through is a target that reads through a gateway.
func through(client evev1.StreamServiceClient) target {
	return func(ctx context.Context, r reading) ([]record, error) {
		req := &evev1.SubscribeRequest{SessionId: r.session, Payload: evev1.Payload_PAYLOAD_RAW, MaxMessageBytes: maxMessage}
		if r.start > 0 {
			req.Start = &evev1.SubscribeRequest_Cursor{Cursor: &evev1.Cursor{
				SessionId: r.session, StreamVersion: uint32(r.version), StreamIndex: uint64(r.start), //nolint:gosec // checked: 21 to 27, and not negative
			}}
		}
		if r.until == untilTail {
			req.Until = &evev1.Until{Bound: &evev1.Until_Tail_{Tail: &evev1.Until_Tail{}}}
		}
		var all []record
		for m, err := range follow.New(client, req).Messages(ctx) {
			if err != nil {
				return all, err
			}
			if rec, ok := recordOf(m); ok {
				all = append(all, rec)
			}
		}
		return all, nil
	}
}

// recordOf is what a message of the gateway is in the output of a target, if anything.
func recordOf(m *evev1.SubscribeResponse) (record, bool) {
	of := func(s *evev1.SourceCoordinates, raw string) (record, bool) {
		return record{Line: number(s.GetLine()), Slot: int64(s.GetRecordIndex()), Raw: raw}, true
	}
	switch i := m.GetItem().(type) {
	case *evev1.SubscribeResponse_Fact:
		return of(i.Fact.GetSource(), i.Fact.GetRecordJson())
	case *evev1.SubscribeResponse_Progress:
		return of(i.Progress.GetSource(), i.Progress.GetRecordJson())
	case *evev1.SubscribeResponse_Event:
		return of(i.Event.GetSource(), i.Event.GetRecordJson())
	case *evev1.SubscribeResponse_UnreadableLine:
		return record{Line: number(i.UnreadableLine.GetSource().GetLine()), Unreadable: true}, true
	}
	if s := m.GetCheckpoint().GetSkipped(); s != nil {
		return record{Skipped: &[2]int64{number(s.GetFromLine()), number(s.GetToLine())}}, true
	}
	return record{}, false
}

// number is that of a line.
func number(n uint64) int64 { return int64(n) } //nolint:gosec // one that is too large is as wrong as the one it becomes
