package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/evegateway/evegateway/cursor"
	"github.com/evegateway/evegateway/cursor/follow"
	"github.com/evegateway/evegateway/gateway"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// demoCommand runs a scripted agent, a gateway in front of it, and a reader of one session, all in this process.
type demoCommand struct {
	Listen string        `default:"127.0.0.1:0" placeholder:"ADDRESS" help:"Where to listen, on loopback; by default on a free port."`
	Pace   time.Duration `default:"350ms" placeholder:"DURATION" help:"Time from one line of the live session to the next, default ${default}."`
}

const (
	demoAgent    = "tide-desk"
	demoRecorded = "01-simple-reply" // the session of the printed commands
	demoLive     = "live"
)

// Run implements the command.
func (c *demoCommand) Run(ctx context.Context, p *process) error {
	if c.Pace <= 0 {
		return usagef("--pace is %v, want more than 0", c.Pace)
	}
	lis, err := listen(ctx, c.Listen, false)
	if err != nil {
		return err
	}
	defer func() { _ = lis.Close() }() // for the errors before it is served
	eve := fakeeve.New()
	recorded, err := addRecordings(eve)
	if err != nil {
		return err
	}
	live := fakeeve.NewMemLog()
	eve.AddSession(demoLive, fakeeve.SessionSpec{Log: live})
	running, err := fakeeve.StartTCP(ctx, eve)
	if err != nil {
		return err
	}
	defer running.Close()
	srv, err := gateway.New(gateway.Config{
		Agents: []gateway.Agent{{Name: demoAgent, URL: running.URL}},
		Logger: newLogger(p.stderr, "json", "warn"), // the terminal is for the session
	})
	if err != nil {
		return err
	}
	conn, err := dial(lis.Addr().String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()

	// The gateway ends last, after the writer and the reader of the live session.
	served, endServing := context.WithCancel(context.WithoutCancel(ctx))
	defer endServing()
	done := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		done <- serve(served, srv, lis, serving{
			cut: p.cut, timeout: 5 * time.Second, log: slog.New(slog.DiscardHandler), ready: func() { close(ready) },
		})
	}()
	<-ready
	fmt.Fprintf(p.stdout, "The agent answers HTTP at %s, for gateway serve --eve-url and gateway verify.\n", running.URL)
	err = c.show(ctx, p, conn, lis, live, recorded)
	endServing()
	return errors.Join(err, <-done)
}

// show prints what can be done with the gateway and follows the live session until ctx ends.
func (c *demoCommand) show(ctx context.Context, p *process, conn *grpc.ClientConn, lis net.Listener, log *fakeeve.MemLog, recorded []string) error {
	client := evev1.NewStreamServiceClient(conn)
	from, err := middle(ctx, client, demoRecorded)
	if err != nil {
		return fmt.Errorf("reading %s: %w", demoRecorded, err)
	}
	if err := introduce(p, lis.Addr().String(), from, recorded); err != nil {
		return err
	}
	logListening(newLogger(p.stderr, "json", "info"), lis)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write(ctx, log)
	}()
	live := subscription{
		printer:  newPrinter(p, false),
		follower: follow.New(client, &evev1.SubscribeRequest{SessionId: demoLive}),
	}
	err = live.read(ctx)
	stop()
	<-written
	if errors.Is(err, context.Canceled) {
		return nil // told to end: this session has no other
	}
	return err
}

// write is the live session's agent.
func (c *demoCommand) write(ctx context.Context, log *fakeeve.MemLog) {
	ticker := time.NewTicker(c.Pace)
	defer ticker.Stop()
	for n := 0; ; n++ {
		if line := demoStep(n, time.Now()); line != "" {
			log.Append(line)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// addRecordings adds a session for each recorded transcript, and returns their names. One that goes on where the one
// before it ends is the same session.
func addRecordings(eve *fakeeve.Server) ([]string, error) {
	var ids []string
	var log *fakeeve.MemLog
	for _, name := range fakeeve.TranscriptNames() {
		file, err := fakeeve.Transcript(name)
		if err != nil {
			return nil, err
		}
		if log == nil || file.Start == 0 || file.Start != log.Len() {
			log = fakeeve.NewMemLog()
			ids = append(ids, strings.TrimSuffix(name, ".ndjson"))
			eve.AddSession(ids[len(ids)-1], fakeeve.SessionSpec{Version: file.Version, Log: log})
		}
		for i := log.Len(); i < file.Len(); i++ {
			log.AppendRaw(file.Line(i))
		}
	}
	for _, id := range ids {
		eve.Session(id).MemLog().End()
	}
	return ids, nil
}

// middle reads a recorded session to its tail and returns a cursor from the middle of it.
func middle(ctx context.Context, client evev1.StreamServiceClient, session string) (cursor.Cursor, error) {
	until, err := boundOf("tail")
	if err != nil {
		return cursor.Cursor{}, err
	}
	var cursors []*evev1.Cursor
	req := &evev1.SubscribeRequest{SessionId: session, Until: until, Payload: evev1.Payload_PAYLOAD_NONE}
	for m, err := range follow.New(client, req).Messages(ctx) {
		if err != nil {
			return cursor.Cursor{}, err
		}
		cursors = append(cursors, m.GetCursor())
	}
	at := len(cursors) / 2
	for i := at; i < len(cursors); i++ {
		if cursors[i].GetStreamEventIndex() > 0 { // inside a line, which is where others lose their place
			at = i
			break
		}
	}
	return cursor.FromProto(cursors[at])
}

// introduce prints what there is and three commands that work.
func introduce(p *process, address string, from cursor.Cursor, recorded []string) error {
	resume, err := from.MarshalJSON()
	if err != nil {
		return err
	}
	grpcurl := func(request string) string {
		return fmt.Sprintf("grpcurl -plaintext -d %s %s eve.v1.StreamService/Subscribe", quoted(request), address)
	}
	fmt.Fprintf(p.stdout, `A gateway in front of a scripted agent. From another terminal (make bin/grpcurl builds grpcurl where there is none):

What it serves:
  grpcurl -plaintext %s describe eve.v1.StreamService
A recorded session, from its beginning to its tail:
  %s
The same, resumed from a cursor in the middle (%s):
  %s

Recorded sessions: %s.
Session %q goes on for as long as this runs. It follows here; Ctrl-C ends it.

`, address,
		grpcurl(fmt.Sprintf(`{"session_id":%q,"until":{"tail":{}}}`, demoRecorded)),
		from, grpcurl(fmt.Sprintf(`{"cursor":%s,"until":{"tail":{}}}`, resume)),
		strings.Join(recorded, ", "), demoLive)
	return nil
}

// quoted quotes text for a shell.
func quoted(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
