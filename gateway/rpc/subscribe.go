package rpc

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/evegateway/evegateway/auth/policy"
	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// Response headers of Subscribe.
const (
	HeaderSessionID     = "eve-session-id"
	HeaderStreamVersion = "eve-stream-version"
)

// Log is where a stream's records come from: it hands out the next record after a position and cannot be asked
// where it got it.
type Log interface {
	// Open finds the position and fails where it is none; the reader lives until ctx ends or it is closed.
	Open(ctx context.Context, req source.Request) (Reader, error)
}

// Reader is one read of one session. It is used by one goroutine.
type Reader interface {
	// Next returns the next step, io.EOF after the last.
	Next() (source.Step, error)
	// Version is the stream version of the source.
	Version() uint32
	// Release gives up what is held upstream while the consumer is busy; Next takes it up again.
	Release()
	Close()
}

// Agents are the configured agents.
type Agents interface {
	// Resolve turns a name into a configured one; the empty name is the only agent, if there is one.
	Resolve(name string) (string, error)
	// Log is the log of a resolved agent's sessions.
	Log(name string) Log
}

// StreamConfig configures a StreamServer.
type StreamConfig struct {
	// Agents are whose sessions are read.
	Agents Agents
	// Access decides who may read what.
	Access *Access
	// Limits bound what requests ask for.
	Limits Limits
	// Logger gets a line for each stream that ended.
	Logger *slog.Logger
	// Draining is closed when open streams must end (DRAINING) and new ones are refused.
	Draining <-chan struct{}
	// DrainRetry is the delay suggested to clients of a draining gateway.
	DrainRetry time.Duration
}

// StreamServer implements eve.v1.StreamService.
type StreamServer struct {
	evev1.UnimplementedStreamServiceServer
	cfg StreamConfig
}

// NewStreamServer returns the service.
func NewStreamServer(cfg StreamConfig) *StreamServer {
	return &StreamServer{cfg: cfg}
}

// sendGrace is how long a stream that must end waits for a client that does not read: its status then goes out
// behind what is queued.
const sendGrace = 2 * time.Second

// busyAfter is how long a stalled client may hold a body open upstream.
const busyAfter = 5 * time.Second

// Subscribe implements eve.v1.StreamService.
func (s *StreamServer) Subscribe(req *evev1.SubscribeRequest, stream grpc.ServerStreamingServer[evev1.SubscribeResponse]) error {
	select {
	case <-s.cfg.Draining:
		return s.draining(codes.Unavailable)
	default:
	}
	p, err := planOf(req, s.cfg.Limits, s.cfg.Agents.Resolve)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	if err := s.cfg.Access.check(ctx, p.agent, policy.Read, p.rights()); err != nil {
		return toError(err)
	}
	if p.cursor.SessionEnded {
		if err := s.header(stream, p, p.cursor.StreamVersion); err != nil {
			return err
		}
		out := newSender(p, stream)
		return toError(out.step(&source.Step{Kind: source.StepEnded, End: source.SessionEnded}))
	}
	began := time.Now()
	reader, err := s.open(ctx, p)
	if err != nil {
		err = toError(err)
		s.logClosed(p, began, newSender(p, stream), err)
		return err
	}
	if err := s.header(stream, p, reader.Version()); err != nil {
		reader.Close()
		return err
	}
	return s.run(ctx, cancel, p, reader, stream)
}

// open opens the read that a plan asks for.
func (s *StreamServer) open(ctx context.Context, p *plan) (Reader, error) {
	req, log := p.request(), s.cfg.Agents.Log(p.agent)
	if child := p.cursor.Child; !child.IsZero() {
		via, err := findChild(ctx, log, child, req.Session)
		if err := s.cfg.Access.hide(ctx, err); err != nil {
			return nil, err
		}
		req.Via = via
	}
	reader, err := log.Open(ctx, req)
	if err != nil || p.until == nil {
		return reader, err
	}
	return newUntilReader(ctx, reader, log, req, p.until), nil
}

func (s *StreamServer) header(stream grpc.ServerStream, p *plan, version uint32) error {
	return stream.SendHeader(metadata.Pairs(
		HeaderSessionID, p.cursor.SessionID,
		HeaderStreamVersion, strconv.FormatUint(uint64(version), 10),
	))
}

// run connects the three goroutines of a stream: one reads, one sends, and this one waits for the sending to end or
// for a reason to end it, because one that is stuck in Send cannot be given a status.
func (s *StreamServer) run(ctx context.Context, cancel context.CancelFunc, p *plan, reader Reader, stream grpc.ServerStreamingServer[evev1.SubscribeResponse]) error {
	began := time.Now()
	h := newHandoff()
	var others sync.WaitGroup
	others.Go(func() {
		defer reader.Close()
		h.finish(s.guard(func() error { return read(ctx, reader, h) }))
	})
	refused := make(chan error, 1)
	others.Go(func() {
		refused <- s.guard(func() error { return s.cfg.Access.watch(ctx, p.agent, policy.Read, p.rights()) })
	})
	out := newSender(p, stream)
	stop := make(chan struct{})
	sent := make(chan error, 1)
	go func() { sent <- s.guard(func() error { return out.run(h, stop) }) }()

	var err error
	select {
	case err = <-sent:
	case <-s.cfg.Draining:
		close(stop)
		err = finish(sent, s.draining(codes.Aborted))
	case err = <-refused:
		if err != nil {
			out.silent.Store(true)
			close(stop)
		}
		err = finish(sent, cmp.Or(err, ctx.Err()))
	case <-ctx.Done(): // the caller has left: Send fails at once
		err = finish(sent, ctx.Err())
	}
	cancel()
	others.Wait()
	err = toError(err)
	s.logClosed(p, began, out, err)
	return err
}

// finish waits for a sender that was told to stop; a stalled client gets the status behind what is queued. A stream that
// was complete before stays so.
func finish(sent <-chan error, why error) error {
	timer := time.NewTimer(sendGrace)
	defer timer.Stop()
	select {
	case err := <-sent:
		if err == nil {
			return nil
		}
	case <-timer.C:
	}
	return why
}

func (s *StreamServer) draining(code codes.Code) *Error {
	return &Error{Code: code, Reason: evev1.ErrorReason_ERROR_REASON_DRAINING, RetryAfter: s.cfg.DrainRetry,
		Message: "this gateway is shutting down; resume from the last message handled, on another connection"}
}

// read moves steps from the reader to the handoff until the read is complete.
func read(ctx context.Context, reader Reader, h *handoff) error {
	for {
		step, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := h.put(ctx, step, busyAfter, reader.Release); err != nil {
			return err
		}
	}
}

// guard turns a panic into an INTERNAL error with an id, and logs it: goroutines are beyond the interceptor's reach.
func (s *StreamServer) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Recovered(s.cfg.Logger, p)
		}
	}()
	return f()
}

// Recovered logs a panic and returns the error for the caller: an id to quote and nothing else. The panic's value is
// not logged, it may hold payload; its type and stack are.
func Recovered(log *slog.Logger, p any) error {
	id := rand.Text()[:12]
	log.Error("panic", "id", id, "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
	return internal(id, errors.New("panic"))
}

func (s *StreamServer) logClosed(p *plan, began time.Time, out *sender, err error) {
	attrs := []slog.Attr{
		slog.String("agent", p.agent), slog.String("session", p.cursor.SessionID),
		slog.Uint64("from_line", p.cursor.StreamIndex), slog.Int64("messages", out.messages.Load()),
		slog.Uint64("to_line", out.line.Load()), slog.String("age", time.Since(began).Round(time.Millisecond).String()),
	}
	level, reason := slog.LevelInfo, "OK"
	var e *Error
	switch {
	case errors.As(err, &e):
		reason = e.ReasonName()
		attrs = append(attrs, slog.String("error", e.Message))
		if src, ok := errors.AsType[*source.Error](err); ok && src.Cause != "" {
			attrs = append(attrs, slog.String("cause", src.Cause))
		}
		if e.Code == codes.Internal {
			level = slog.LevelError
		}
	case err != nil:
		reason = "CALLER_LEFT"
	}
	s.cfg.Logger.LogAttrs(context.Background(), level, "stream closed", append(attrs, slog.String("reason", reason))...)
}
