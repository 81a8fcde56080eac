package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// session is the one that all tests of the follow loop read.
const session = "wrun_1"

// setup describes a scripted Eve with one session, and a client of it.
type setup struct {
	version int      // default 27
	lines   []string // stored when the test begins
	ended   bool     // the stored stream is closed
	script  fakeeve.Script
	spec    func(*fakeeve.SessionSpec)
	options []fakeeve.Option
	config  func(*source.Config)
}

// world is what a test of the follow loop has at hand.
type world struct {
	t      *testing.T
	ctx    context.Context // ends after two hours, so that nothing is followed for ever
	began  time.Time
	eve    *fakeeve.Server
	server *fakeeve.Running
	sess   *fakeeve.Session
	client *source.Client
	tap    *tap
	opened []*source.Reader
	seen   int // requests that are none of the test's business
}

// tap counts the bodies that a client has opened and not closed.
type tap struct {
	http.RoundTripper
	open atomic.Int64
}

func (p *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.RoundTripper.RoundTrip(r)
	if err == nil {
		p.open.Add(1)
		resp.Body = &tapped{ReadCloser: resp.Body, open: &p.open}
	}
	return resp, err
}

type tapped struct {
	io.ReadCloser
	open   *atomic.Int64
	closed atomic.Bool
}

func (b *tapped) Close() error {
	if b.closed.CompareAndSwap(false, true) {
		b.open.Add(-1)
	}
	return b.ReadCloser.Close()
}

// bubble runs a test in virtual time. When the test is over, no body may be open on either side and no goroutine left.
func bubble(t *testing.T, s setup, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, began: time.Now()}
		if s.version == 0 {
			s.version = 27
		}
		w.eve = fakeeve.New(append([]fakeeve.Option{fakeeve.WithVersion(s.version)}, s.options...)...)
		log := fakeeve.NewMemLog(s.lines...)
		if s.ended {
			log.End()
		}
		spec := fakeeve.SessionSpec{Log: log}
		if s.spec != nil {
			s.spec(&spec)
		}
		w.sess = w.eve.AddSession(session, spec)
		w.eve.Script(session, s.script)
		w.server = fakeeve.StartPipe(w.eve)
		defer w.server.Close()
		transport := source.NewTransport(w.server.Transport.DialContext)
		defer transport.CloseIdleConnections()
		w.tap = &tap{RoundTripper: transport}
		cfg := source.Config{URL: w.server.URL, Transport: w.tap, Rand: func() float64 { return 0 }}
		if s.config != nil {
			s.config(&cfg)
		}
		client, err := source.NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		w.client = client
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		w.ctx = ctx
		test(w)
		for _, r := range w.opened {
			r.Close()
		}
		synctest.Wait()
		if n := w.eve.OpenBodies(); n != 0 {
			t.Errorf("%d bodies are open at the server when the read is over", n)
		}
		if n := w.tap.open.Load(); n != 0 {
			t.Errorf("%d bodies were not closed by the client", n)
		}
	})
}

// words is a step as text.
func words(s source.Step) string {
	switch s.Kind {
	case source.StepLine:
		if s.Line.Flaw == source.TooLarge {
			return fmt.Sprintf("line %d of %d bytes", s.Line.Number, s.Line.Size)
		}
		if s.Next != s.Line.Place+1 {
			return fmt.Sprintf("line %d at %d, but then %d", s.Line.Number, s.Line.Place, s.Next)
		}
		return fmt.Sprintf("line %d", s.Line.Number)
	case source.StepPositioned:
		return fmt.Sprintf("positioned at %d", s.Next)
	case source.StepSkipped:
		return fmt.Sprintf("skipped %d to %d", s.From, s.Next-1)
	case source.StepCaughtUp:
		return fmt.Sprintf("caught up with %d", s.Tail)
	case source.StepVersionChanged:
		return fmt.Sprintf("version %d from %d", s.Version, s.Next)
	case source.StepEnded:
		return "ended: " + map[source.End]string{source.SessionEnded: "session", source.BoundReached: "bound", source.StreamClosed: "closed"}[s.End]
	default:
		return fmt.Sprintf("step of kind %d", s.Kind)
	}
}

// lines is the steps of lines from <= i <= to.
func lines(from, to int) []string {
	var out []string
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("line %d", i))
	}
	return out
}

// join is one list of steps out of strings and lists.
func join(parts ...any) []string {
	var out []string
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(out, p)
		case []string:
			out = append(out, p...)
		default:
			panic(fmt.Sprintf("join of %T", p))
		}
	}
	return out
}

// open opens a read that must open; it is closed with the test.
func (w *world) open(req source.Request) *source.Reader {
	w.t.Helper()
	req.Session = session
	r, err := w.client.Read(w.ctx, req)
	if err != nil {
		w.t.Fatalf("opening the read: %v", err)
	}
	w.opened = append(w.opened, r)
	return r
}

// steps takes n steps of a read, or fewer when it ends before; nil for a read that ended well.
func steps(r *source.Reader, n int) ([]string, error) {
	var out []string
	for len(out) < n {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, words(s))
	}
	return out, nil
}

const all = 1 << 30

// read is a read from beginning to end.
func (w *world) read(req source.Request) ([]string, error) {
	req.Session = session
	r, err := w.client.Read(w.ctx, req)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return steps(r, all)
}

// expect reads n steps and compares.
func (w *world) expect(r *source.Reader, want ...any) {
	w.t.Helper()
	list := join(want...)
	got, err := steps(r, len(list))
	if diff := cmp.Diff(list, got); diff != "" || err != nil {
		w.t.Fatalf("err %v, steps (-want +got):\n%s", err, diff)
	}
}

// expectRead compares a whole read.
func (w *world) expectRead(req source.Request, want ...any) {
	w.t.Helper()
	got, err := w.read(req)
	if diff := cmp.Diff(join(want...), got); diff != "" || err != nil {
		w.t.Errorf("err %v, steps (-want +got):\n%s", err, diff)
	}
}

// requests are the stream requests so far: what each asked for and where it started.
func (w *world) requests() []string {
	var out []string
	for _, r := range w.eve.StreamRequests(session)[w.seen:] {
		start := r.Query.Get("startIndex")
		if start == "" {
			start = "0"
		}
		switch {
		case r.Query.Get("follow") == "false" && r.Query.Get("includeTailIndex") == "1":
			out = append(out, "tail@"+start)
		case !r.Query.Has("follow") && !r.Query.Has("includeTailIndex"):
			out = append(out, "live@"+start)
		default:
			out = append(out, "?"+r.Query.Encode())
		}
	}
	return out
}

// forget drops the requests so far.
func (w *world) forget() { w.seen = len(w.eve.StreamRequests(session)) }

func (w *world) expectRequests(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.requests()); diff != "" {
		w.t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// times are when the stream requests came, from the beginning of the test.
func (w *world) times() []time.Duration {
	var out []time.Duration
	for _, r := range w.eve.StreamRequests(session)[w.seen:] {
		out = append(out, r.At.Sub(w.began))
	}
	return out
}

// gaps are the waits between the stream requests.
func (w *world) gaps() []time.Duration {
	times := w.times()
	var out []time.Duration
	for i := 1; i < len(times); i++ {
		out = append(out, times[i]-times[i-1])
	}
	return out
}

func ms(list ...int) []time.Duration {
	var out []time.Duration
	for _, n := range list {
		out = append(out, time.Duration(n)*time.Millisecond)
	}
	return out
}

func (w *world) expectGaps(want ...int) {
	w.t.Helper()
	if diff := cmp.Diff(ms(want...), w.gaps()); diff != "" {
		w.t.Errorf("waits between requests (-want +got):\n%s", diff)
	}
}

// failed checks the reason of an error.
func (w *world) failed(err error, want source.Reason) {
	w.t.Helper()
	if e := w.failure(err, want); e.Message == "" {
		w.t.Errorf("%#v says nothing", e)
	}
}

// failure is failed, and gives the error.
func (w *world) failure(err error, want source.Reason) *source.Error {
	w.t.Helper()
	var e *source.Error
	if !errors.As(err, &e) {
		w.t.Fatalf("%v is no error of a read, want reason %d", err, want)
	}
	if e.Reason != want {
		w.t.Fatalf("reason %d (%v), want %d", e.Reason, err, want)
	}
	return e
}

// place is where a reader stands that has read the lines before n.
func (w *world) place(n int) source.Place {
	w.t.Helper()
	p := source.Place{Line: uint64(n), Version: uint32(w.sess.Spec().Version)}
	r := w.open(source.Request{Bounded: true})
	for r.Version() > 0 && n > 0 {
		s, err := r.Next()
		if err != nil {
			w.t.Fatalf("reading up to line %d: %v", n, err)
		}
		if s.Kind == source.StepLine && s.Next == uint64(n) {
			p.Anchor = s.Line.Anchor
			break
		}
	}
	r.Close()
	synctest.Wait()
	w.forget()
	return p
}

// begun is where a reader stands that has read a part of line n.
func (w *world) begun(n int) source.Place {
	p := w.place(n + 1)
	p.Line, p.Begun = uint64(n), true
	return p
}

// pages are n lines of version 27 that say which they are.
func pages(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = page(i)
	}
	return out
}

func page(i int) string {
	return fmt.Sprintf(`{"at":"2026-11-18T09:00:%02d.%03dZ","facts":[{"type":"almanac.page","data":{"n":%d}}]}`, i/1000, i%1000, i)
}

// events are n lines of version 21 to 26.
func events(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`{"type":"almanac.page","data":{"n":%d},"meta":{"id":"evt_%d","at":"2026-11-18T09:00:00.000Z"}}`, i, i)
	}
	return out
}

const (
	sessionEnded     = `{"at":"2026-11-18T09:59:00.000Z","facts":[{"type":"session.ended","data":{"outcome":"completed"}},{"type":"almanac.sealed"}]}`
	sessionCompleted = `{"type":"session.completed","meta":{"id":"evt_end","at":"2026-11-18T09:59:00.000Z"}}`
)

// each is a script that does the same to every connection.
func each(f fakeeve.Fault) fakeeve.Script { return func(fakeeve.Conn) fakeeve.Fault { return f } }

// after appends a line in some time.
func (w *world) after(d time.Duration, lines ...string) {
	time.AfterFunc(d, func() { w.sess.Append(lines...) })
}

// TestFollow reads along while lines come, over a lease end and a cut of each kind, to the end of the session.
func TestFollow(t *testing.T) {
	for _, version := range []int{27, 26, 24, 21} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			history, last := pages, sessionEnded
			if version < 27 {
				history, last = events, sessionCompleted
			}
			stored := history(10)
			bubble(t, setup{version: version, lines: stored[:3]}, func(w *world) {
				w.after(10*time.Second, stored[3])
				w.after(70*time.Second, stored[4], stored[5])
				for i, how := range []fakeeve.How{fakeeve.Clean, fakeeve.Abort, fakeeve.Reset} {
					time.AfterFunc(time.Duration(80+20*i)*time.Second, func() { w.sess.CutAll(how) })
					w.after(time.Duration(90+20*i)*time.Second, stored[6+i])
				}
				w.after(10*time.Minute, stored[9], last)
				w.expectRead(source.Request{}, lines(0, 2), "caught up with 2", lines(3, 10), "ended: session")
				wait := time.Duration(0)
				if version < 27 { // it may have overtaken other events (contract O4)
					wait = 250 * time.Millisecond
				}
				if took := time.Since(w.began); took < 10*time.Minute || took > 10*time.Minute+wait {
					t.Errorf("took %v: the end must be told at once", took)
				}
				for i, r := range w.eve.StreamRequests(session) {
					if r.Query.Get("streamControlVersion") != "1" || r.Header.Get("Accept-Encoding") != "identity" || r.Header.Get("Cache-Control") != "no-store" {
						t.Errorf("request %d: %v %v", i, r.Query, r.Header)
					}
				}
			})
		})
	}
}

// TestPrewarmed follows a session that has nothing yet (contract 1.4, G21).
func TestPrewarmed(t *testing.T) {
	bubble(t, setup{}, func(w *world) {
		w.after(3*time.Minute+time.Second, page(0), sessionEnded)
		w.expectRead(source.Request{}, "caught up with -1", lines(0, 1), "ended: session")
		w.expectRequests("tail@0", "live@0", "live@0", "live@0", "live@0")
	})
	bubble(t, setup{}, func(w *world) {
		w.expectRead(source.Request{Bounded: true}, "caught up with -1", "ended: bound")
	})
	bubble(t, setup{}, func(w *world) {
		w.expectRead(source.Request{Bounded: true, Relative: true, Last: 3}, "positioned at 0", "caught up with -1", "ended: bound")
	})
}

// TestLines checks what is filled in for a yielded line.
func TestLines(t *testing.T) {
	bubble(t, setup{lines: []string{page(0), "not json", `{"progress":{"type":"p"}}`}}, func(w *world) {
		r := w.open(source.Request{Bounded: true})
		if r.Version() != 27 || r.Tail() != 2 {
			t.Errorf("version %d, tail %d", r.Version(), r.Tail())
		}
		for i, want := range []source.Kind{source.Commit, source.Unreadable, source.Progress} {
			s, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			l := s.Line
			if s.Kind != source.StepLine || s.Next != uint64(i+1) || l.Kind != want || l.Number != uint64(i) || l.Place != uint64(i) || l.Version != 27 ||
				l.Identity == "" || l.Anchor != l.Identity || l.Size != int64(len(l.Raw)) {
				t.Errorf("line %d: step %+v, line %+v", i, s, l)
			}
		}
	})
}

// TestPlainEOF: the end of a body is the end of nothing, however often it comes (contract 2.7).
func TestPlainEOF(t *testing.T) {
	for version, stored := range map[int][]string{27: pages(2), 26: events(2)} {
		cut := func(c fakeeve.Conn) fakeeve.Fault {
			if c.N == 0 {
				return fakeeve.Fault{}
			}
			return fakeeve.Fault{CutAt: fakeeve.AtByte(0), Cut: fakeeve.Clean}
		}
		bubble(t, setup{version: version, lines: stored, script: cut}, func(w *world) {
			ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
			defer cancel()
			r, err := w.client.Read(ctx, source.Request{Session: session})
			if err != nil {
				t.Fatal(err)
			}
			got, err := steps(r, all)
			if diff := cmp.Diff(join(lines(0, 1), "caught up with 1"), got); diff != "" || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("version %d: %v (-want +got):\n%s", version, err, diff)
			}
			// Endless, but ever slower.
			if got, want := w.gaps()[:9], ms(0, 125, 250, 500, 1000, 2000, 2500, 2500, 2500); !slices.Equal(got, want) {
				t.Errorf("version %d: waits %v, want %v", version, got, want)
			}
		})
	}
}

// TestStreamClosed: the server says that nothing follows, and no end of the session was seen.
func TestStreamClosed(t *testing.T) {
	bubble(t, setup{lines: pages(3), ended: true}, func(w *world) {
		w.expectRead(source.Request{}, lines(0, 2), "caught up with 2", "ended: closed")
		w.expectRequests("tail@0", "live@2")
		w.forget()
		w.expectRead(source.Request{Start: w.place(3)}, "caught up with 2", "ended: closed")
		w.expectRequests("tail@2", "live@2")
		w.forget()
		w.expectRead(source.Request{Start: source.Place{Line: 3}}, "caught up with 2", "ended: closed")
		w.expectRead(source.Request{Relative: true}, "positioned at 3", "caught up with 2", "ended: closed")
	})
	bubble(t, setup{lines: pages(1)}, func(w *world) {
		time.AfterFunc(5*time.Minute, w.sess.MemLog().End)
		w.after(4*time.Minute, page(1))
		w.expectRead(source.Request{}, "line 0", "caught up with 0", "line 1", "ended: closed")
		if took := time.Since(w.began); took != 5*time.Minute {
			t.Errorf("told after %v", took)
		}
	})
	bubble(t, setup{ended: true}, func(w *world) { // closed before it began
		w.expectRead(source.Request{}, "caught up with -1", "ended: closed")
	})
}

// TestSessionEnded: the terminal line ends the read, wherever it stands, and nothing is asked for any more.
func TestSessionEnded(t *testing.T) {
	for _, test := range []struct {
		version  int
		history  func(int) []string
		terminal string
	}{{27, pages, sessionEnded}, {27, events, sessionCompleted}, {26, events, sessionCompleted}, {26, pages, sessionEnded}} {
		t.Run(fmt.Sprintf("%d %.12s", test.version, test.terminal), func(t *testing.T) {
			for _, more := range []bool{false, true} { // facts behind the end are ignored
				stored := append(test.history(2), test.terminal)
				if more {
					stored = append(stored, test.history(4)[3:]...)
				}
				tail := fmt.Sprintf("caught up with %d", len(stored)-1)
				bubble(t, setup{version: test.version, lines: stored}, func(w *world) {
					whole := join(lines(0, 2), tail, "ended: session")
					if more {
						whole = join(lines(0, 2), "ended: session")
					}
					w.expectRead(source.Request{}, whole)
					w.expectRead(source.Request{Bounded: true}, whole)
					w.expectRequests("tail@0", "tail@0")

					behind := w.place(2)
					behind.Line, behind.Anchor = 3, "" // as nobody else remembers it
					for _, bounded := range []bool{false, true} {
						whole := []string{"ended: session"}
						if !more {
							whole = join(tail, whole)
						}
						w.forget()
						w.expectRead(source.Request{Start: behind, Bounded: bounded}, whole)
						w.expectRequests("tail@2")
					}
					if !more {
						w.expectRead(source.Request{Relative: true}, "positioned at 3", tail, "ended: session")
					}
				})
			}
		})
	}
}

// TestRelative resolves starts near the tail (contract 2.5).
func TestRelative(t *testing.T) {
	for _, version := range []int{27, 26} {
		stored := pages(5)
		if version < 27 {
			stored = events(5)
		}
		for last, at := range map[uint32]int{0: 5, 1: 4, 3: 2, 5: 0, 6: 0, 1 << 31: 0} {
			bubble(t, setup{version: version, lines: stored}, func(w *world) {
				before := w.place(at)
				r := w.open(source.Request{Relative: true, Last: last})
				s, err := r.Next()
				if err != nil || words(s) != fmt.Sprintf("positioned at %d", at) || s.Version != uint32(version) {
					t.Fatalf("last %d: %v, %v", last, words(s), err)
				}
				identity, _, _ := strings.Cut(before.Anchor, ".")
				if s.Before.Identity != identity || (at > 0 && version == 27) != !s.Before.At.IsZero() || s.Before.Terminal {
					t.Errorf("last %d: before is %+v, want %q", last, s.Before, identity)
				}
				w.expect(r, lines(at, 4), "caught up with 4")
				w.after(time.Second, "more")
				w.expect(r, "line 5")
				// Up to version 26 an overlap is read again.
				want := []string{fmt.Sprintf("tail@-%d", int64(last)+1), map[bool]string{true: "live@4", false: fmt.Sprintf("live@%d", max(0, at-1))}[version == 27]}
				if got := w.requests(); !slices.Equal(got, want) {
					t.Errorf("version %d, last %d: requests %v, want %v", version, last, got, want)
				}
			})
		}
	}
}
