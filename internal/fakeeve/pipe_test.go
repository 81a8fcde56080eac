package fakeeve_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// TestTCP: the server over real connections: a whole body, and each way of cutting one.
func TestTCP(t *testing.T) {
	s := fakeeve.New()
	srv, err := fakeeve.StartTCP(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	const n = 20_000
	s.AddSession("a", fakeeve.SessionSpec{Log: fakeeve.Generated(n, fakeeve.Mixed, 27)})
	s.Script("a", fakeeve.Faults(
		fakeeve.Fault{},
		fakeeve.Fault{CutAt: fakeeve.AtLine(9, 3), Cut: fakeeve.Clean},
		fakeeve.Fault{CutAt: fakeeve.AtLine(9, 3), Cut: fakeeve.Abort},
		fakeeve.Fault{CutAt: fakeeve.AtLine(9, 3), Cut: fakeeve.Reset},
	))
	for i, want := range []struct {
		lines int
		err   error
	}{{n + 2, nil}, {10, nil}, {10, io.ErrUnexpectedEOF}, {-1, syscall.ECONNRESET}} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/eve/v1/session/a/stream", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		// A reset may overtake what was sent before it.
		if lines := strings.Count(string(body), "\n"); want.lines >= 0 && lines != want.lines || !errors.Is(err, want.err) {
			t.Errorf("body %d: %d lines, %v", i, lines, err)
		}
	}
}

// TestCloseEndsFollowers: Close cuts what is open, and waits for it.
func TestCloseEndsFollowers(t *testing.T) {
	s := fakeeve.New()
	srv, err := fakeeve.StartTCP(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	s.AddSession("a", fakeeve.SessionSpec{})
	req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/eve/v1/session/a/stream", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	srv.Close()
	if s.OpenBodies() != 0 {
		t.Errorf("%d bodies are open", s.OpenBodies())
	}
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the body ended cleanly")
	}
}

// TestCloseEndsWaits: Close also ends requests that were to wait for ever, a command with a body among them.
func TestCloseEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakeeve.New()
		srv := fakeeve.StartPipe(s)
		s.ScriptRoute(fakeeve.RouteCreate, func(r fakeeve.Request) fakeeve.Fault {
			if string(r.Body) != `{"message":"x"}` {
				t.Errorf("the script was shown %q", r.Body)
			}
			return fakeeve.Fault{Delay: fakeeve.Forever}
		})
		s.Script("a", func(fakeeve.Conn) fakeeve.Fault { return fakeeve.Fault{Delay: fakeeve.Forever} })
		for method, path := range map[string]string{"POST": "/session", "GET": "/session/a/stream"} {
			go func() {
				req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+"/eve/v1"+path, strings.NewReader(`{"message":"x"}`))
				if err != nil {
					t.Error(err)
					return
				}
				if res, err := srv.Client().Do(req); err == nil {
					_ = res.Body.Close()
					t.Errorf("%s: %d", path, res.StatusCode)
				}
			}()
		}
		synctest.Wait()
		srv.Close()
		for _, r := range s.Requests() {
			if r.End != fakeeve.EndGone {
				t.Errorf("%s ended as %q", r.Path, r.End)
			}
		}
	})
}

// TestRecorder: the handler works where connections can be neither flushed late nor taken over.
func TestRecorder(t *testing.T) {
	s := fakeeve.New()
	s.AddSession("a", fakeeve.SessionSpec{Log: fakeeve.Generated(10, fakeeve.SmallDeltas, 27)})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/eve/v1/session/a/stream", http.NoBody))
	if n := strings.Count(w.Body.String(), "\n"); n != 12 || w.Code != 200 {
		t.Errorf("%d, %d lines", w.Code, n)
	}
	s.Script("a", func(fakeeve.Conn) fakeeve.Fault { return fakeeve.Fault{CutAt: fakeeve.AtByte(5), Cut: fakeeve.Reset} })
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("a reset without a connection: %v", err)
		}
	}()
	s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/eve/v1/session/a/stream", http.NoBody))
	t.Error("a reset without a connection went unnoticed")
}

// TestPipeListener: what a listener and its dialers do when one of them is gone.
func TestPipeListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fakeeve.NewPipeListener()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.DialContext(ctx, "", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody accepts: %v", err)
		}
		go func() {
			c, err := l.DialContext(t.Context(), "", "")
			if err == nil {
				_, err = c.Write([]byte("hi"))
			}
			if err == nil {
				err = c.Close()
			}
			if err != nil {
				t.Error(err)
			}
		}()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(c); string(b) != "hi" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		if c, ok := c.(interface{ SetLinger(int) error }); !ok || c.SetLinger(5) == nil {
			t.Error("a pipe that lingers")
		}
		_ = l.Close()
		_ = l.Close()
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept on a closed listener: %v", err)
		}
		if _, err := l.DialContext(t.Context(), "", ""); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial to a closed listener: %v", err)
		}
		if l.Addr().Network() != "pipe" || l.Addr().String() == "" {
			t.Errorf("address %v", l.Addr())
		}
	})
}

// TestLongHeader: a request head over 16 KB is refused (contract O9).
func TestLongHeader(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		for size, status := range map[int]int{14 << 10: 200, 20 << 10: 431} {
			req, err := http.NewRequestWithContext(t.Context(), "GET", e.srv.URL+"/eve/v1/health", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Long", strings.Repeat("y", size))
			res, err := e.srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != status {
				t.Errorf("%d bytes: %d", size, res.StatusCode)
			}
		}
	})
}

// TestIdleConnections: kept for 5 s, as a Node server does (contract O16).
func TestIdleConnections(t *testing.T) {
	bubble(t, plain, func(t *testing.T, e *env) {
		dials := 0
		dial := e.srv.Transport.DialContext
		e.srv.Transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			return dial(ctx, network, addr)
		}
		for _, pause := range []time.Duration{0, 4 * time.Second, 6 * time.Second} {
			time.Sleep(pause)
			res := e.do(t.Context(), "GET", "/health", "")
			if _, err := io.ReadAll(res.Body); err != nil {
				t.Fatal(err)
			}
		}
		if dials != 2 {
			t.Errorf("%d connections, want 2", dials)
		}
	})
}

// BenchmarkStream reads a generated session over TCP, as fast as it comes.
func BenchmarkStream(b *testing.B) {
	for name, shape := range map[string]fakeeve.Shape{"deltas": fakeeve.SmallDeltas, "commits": fakeeve.Commits, "mixed": fakeeve.Mixed} {
		b.Run(name, func(b *testing.B) {
			s := fakeeve.New()
			srv, err := fakeeve.StartTCP(b.Context(), s)
			if err != nil {
				b.Fatal(err)
			}
			defer srv.Close()
			s.AddSession("a", fakeeve.SessionSpec{Log: fakeeve.Generated(int64(b.N), shape, 27)})
			b.ResetTimer()
			req, err := http.NewRequestWithContext(b.Context(), "GET", srv.URL+"/eve/v1/session/a/stream", http.NoBody)
			if err != nil {
				b.Fatal(err)
			}
			res, err := srv.Client().Do(req)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			n, err := io.Copy(io.Discard, res.Body)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(n / int64(b.N))
		})
	}
}
