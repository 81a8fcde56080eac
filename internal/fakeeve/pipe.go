package fakeeve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// PipeListener is an in-memory [net.Listener] over [net.Pipe]: an HTTP server and its clients run on it inside a
// testing/synctest bubble, where real TCP would hang. Create it inside the bubble.
type PipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	close sync.Once
}

// NewPipeListener makes a listener.
func NewPipeListener() *PipeListener {
	return &PipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept implements [net.Listener].
func (l *PipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]. Open connections stay open.
func (l *PipeListener) Close() error {
	l.close.Do(func() { close(l.done) })
	return nil
}

// Addr implements [net.Listener].
func (l *PipeListener) Addr() net.Addr { return pipeAddr{} }

// DialContext connects to the listener, whatever the address: for [http.Transport] and for gRPC dialers. It waits for
// an Accept; on a closed listener the connection is refused.
func (l *PipeListener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	reset := new(atomic.Bool)
	select {
	case l.conns <- &pipeConn{Conn: server, reset: reset, server: true}:
		return &pipeConn{Conn: client, reset: reset}, nil
	case <-l.done:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: pipeAddr{}, Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: pipeAddr{}, Err: ctx.Err()}
	}
}

type pipeAddr struct{}

// Network implements [net.Addr].
func (pipeAddr) Network() string { return "pipe" }

// String implements [net.Addr].
func (pipeAddr) String() string { return "eve.test:80" }

// pipeConn is one end of a connection. Closed by the server after SetLinger(0), as one does to reset a TCP
// connection, it fails at the other end as a reset one does.
type pipeConn struct {
	net.Conn
	reset  *atomic.Bool
	server bool
}

// SetLinger is that of [net.TCPConn], for 0 alone.
func (c *pipeConn) SetLinger(sec int) error {
	if sec != 0 {
		return errors.New("fakeeve: a pipe lingers not at all")
	}
	c.reset.Store(true)
	return nil
}

// Read implements [net.Conn].
func (c *pipeConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) && !c.server && c.reset.Load() {
		err = &net.OpError{Op: "read", Net: "pipe", Addr: pipeAddr{}, Err: syscall.ECONNRESET}
	}
	return n, err
}

// Running is an HTTP server that runs.
type Running struct {
	// URL is its base URL, without a path.
	URL string
	// Transport reaches it, whatever the address of the URL. It neither compresses nor asks for a proxy.
	Transport *http.Transport

	server *http.Server
	cancel context.CancelFunc // ends the context of every request
	work   sync.WaitGroup
}

// StartPipe serves h in memory.
func StartPipe(h http.Handler) *Running {
	l := NewPipeListener()
	r := Start(h, l)
	r.URL = "http://eve.test"
	r.Transport.DialContext = l.DialContext
	return r
}

// StartTCP serves h on a loopback port.
func StartTCP(ctx context.Context, h http.Handler) (*Running, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fakeeve: listening: %w", err)
	}
	return Start(h, l), nil
}

// Start serves h on l, with the limits of a real server (contract O9, O16), until Close.
func Start(h http.Handler, l net.Listener) *Running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Running{
		cancel:    cancel,
		URL:       "http://" + l.Addr().String(),
		Transport: &http.Transport{DisableCompression: true},
	}
	r.server = &http.Server{
		Handler:        r.counted(h),
		MaxHeaderBytes: 12 << 10, // net/http adds 4 KiB
		IdleTimeout:    5 * time.Second,
		// Far from every timer of a test.
		ReadHeaderTimeout: time.Hour,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				r.work.Add(1)
			case http.StateClosed, http.StateHijacked:
				r.work.Done()
			default:
			}
		},
	}
	r.work.Go(func() { _ = r.server.Serve(l) }) // returns when closed
	return r
}

// counted runs h and lets Close wait for it. A hijacked connection is not counted by its state any more.
func (r *Running) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.work.Add(1)
		defer r.work.Done()
		h.ServeHTTP(w, req)
	})
}

// Client is a client for the server, without a timeout, that follows no redirects.
func (r *Running) Client() *http.Client {
	return &http.Client{
		Transport:     r.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close cuts all connections and returns when no goroutine of the server is left. Clients with a transport of their
// own close that themselves.
func (r *Running) Close() {
	_ = r.server.Close()
	r.cancel()
	r.Transport.CloseIdleConnections()
	r.work.Wait()
}
