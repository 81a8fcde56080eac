package follow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/evegateway/evegateway/cursor"
	"github.com/evegateway/evegateway/cursor/follow"
	"github.com/evegateway/evegateway/gateway"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

const session = "wrun_1"

// world is gateways that come and go in front of one Eve, and one client connection that reaches the newest of them.
type world struct {
	*rig.Rig
	t      *testing.T
	conn   *grpc.ClientConn
	config gateway.Config

	mu      sync.Mutex
	newest  *fakeeve.PipeListener
	servers []*gateway.Server
	dialed  []net.Conn
	running sync.WaitGroup
}

// inWorld runs f in virtual time; that nothing is left over is checked by the bubble.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		w.Rig = rig.New(t, rig.Options{Config: func(c *gateway.Config) { w.config = *c }})
		w.start()
		w.conn = connect(t, w.dial)
		f(t, w)
		synctest.Wait()
		if n := w.Eve.OpenBodies(); n != 0 {
			t.Errorf("%d streams are still open at the agent", n)
		}
		_ = w.conn.Close()
		w.stop()
		w.running.Wait()
		w.Close()
	})
}

func (w *world) client() evev1.StreamServiceClient { return evev1.NewStreamServiceClient(w.conn) }

// start starts a gateway.
func (w *world) start() {
	w.t.Helper()
	server, err := gateway.New(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	lis := fakeeve.NewPipeListener()
	w.running.Go(func() { _ = server.Serve(lis) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.newest, w.servers = lis, append(w.servers, server)
}

// stop ends all gateways at once.
func (w *world) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, s := range w.servers {
		s.Shutdown(ctx)
	}
	w.servers = nil
}

// drain ends all gateways in good order, meanwhile.
func (w *world) drain() {
	for _, s := range w.servers {
		w.running.Go(func() { s.Shutdown(context.Background()) })
	}
	w.servers = nil
}

func (w *world) dial(ctx context.Context) (net.Conn, error) {
	w.mu.Lock()
	lis := w.newest
	w.mu.Unlock()
	conn, err := lis.DialContext(ctx, "", "")
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dialed = append(w.dialed, conn)
	}
	return conn, err
}

// cut breaks the client's connections.
func (w *world) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.dialed {
		_ = c.Close()
	}
	w.dialed = nil
}

// record is what the stream and the log have in common.
type record struct {
	line, slot uint64
	raw        string
}

func (r record) String() string { return fmt.Sprintf("%d.%d", r.line, r.slot) }

// stored are the records of a log.
func stored(l fakeeve.Log, version int) []record {
	var all []record
	for r := range fakeeve.Records(l, version, 0, -1) {
		all = append(all, record{uint64(r.Line), uint64(r.Slot), string(r.Raw)})
	}
	return all
}

// recordOf is the record of a message, if it has one.
func recordOf(m *evev1.SubscribeResponse) (record, bool) {
	of := func(s *evev1.SourceCoordinates, raw string) (record, bool) {
		return record{s.GetLine(), uint64(s.GetRecordIndex()), raw}, true
	}
	switch i := m.GetItem().(type) {
	case *evev1.SubscribeResponse_Fact:
		return of(i.Fact.GetSource(), i.Fact.GetRecordJson())
	case *evev1.SubscribeResponse_Progress:
		return of(i.Progress.GetSource(), i.Progress.GetRecordJson())
	case *evev1.SubscribeResponse_Event:
		return of(i.Event.GetSource(), i.Event.GetRecordJson())
	case *evev1.SubscribeResponse_UnreadableLine:
		return of(i.UnreadableLine.GetSource(), i.UnreadableLine.GetText())
	}
	return record{}, false
}

// compare fails when the records differ.
func compare(t *testing.T, got, want []record) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("%d records, and record %v is missing", len(got), want[i])
		case i >= len(want):
			t.Fatalf("record %v after the last", got[i])
		case got[i] != want[i]:
			t.Fatalf("record %d is\n%v %s, want\n%v %s", i, got[i], got[i].raw, want[i], want[i].raw)
		}
	}
}

// TestInterruptedAnywhere: whatever happens to the gateway or the connection while a message is handled, the loop gets
// each record once, in order. No line is stored before the one before it is handled, so none is in flight.
func TestInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	whole := fakeeve.Generated(8, fakeeve.Mixed, 27)
	want := stored(whole, 27)
	interruptions := map[string]func(*world){
		"restart":         func(w *world) { w.stop(); w.start() },
		"a while without": func(w *world) { w.stop(); time.AfterFunc(time.Minute, w.start) },
		"drain":           func(w *world) { w.drain(); w.start() },
		"drain later":     func(w *world) { w.drain(); time.AfterFunc(time.Minute, w.start) },
		"cut":             (*world).cut,
	}
	for name, interrupt := range interruptions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				done := false
				inWorld(t, func(t *testing.T, w *world) {
					log := fakeeve.Continue(fakeeve.Head(whole, 1))
					w.Eve.AddSession(session, fakeeve.SessionSpec{Log: log})
					var got []record
					n, retries, unstored := 0, 0, int64(0)
					f := follow.New(w.client(), rig.FromStart(session), follow.WithRetryNotice(func(*follow.Error, time.Duration) { retries++ }))
					for m, err := range f.Messages(t.Context()) {
						if err != nil {
							t.Fatalf("interrupted at message %d: %v", at, err)
						}
						if n++; n-1 == at {
							unstored = whole.Len() - log.Len()
							interrupt(w)
							synctest.Wait() // it has begun
						}
						r, ok := recordOf(m)
						if !ok {
							continue
						}
						got = append(got, r)
						if next := int64(m.GetCursor().GetStreamIndex()); next == log.Len() && next < whole.Len() {
							log.AppendRaw(whole.Line(next))
						}
					}
					compare(t, got, want)
					if !f.Cursor().SessionEnded {
						t.Errorf("ended at %v", f.Cursor())
					}
					if unstored > 0 && retries == 0 {
						t.Errorf("interrupted at message %d: nothing was tried again", at)
					}
					done = n <= at
				})
				if done || t.Failed() {
					if at <= len(want) {
						t.Errorf("only %d messages", at)
					}
					return
				}
			}
		})
	}
}

// TestChaos: live and finished sessions, read by programs that stop and go on from what they saved, while connections
// break, gateways restart and drain, and the agent fails: every program has in the end done each record once, if it
// keeps the cursor together with what it did.
func TestChaos(t *testing.T) {
	t.Parallel()
	const seeds = 120
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) { chaos(t, w, rand.New(rand.NewPCG(seed, 6))) })
		})
	}
}

func chaos(t *testing.T, w *world, rng *rand.Rand) {
	version := 26 + rng.IntN(2)
	shape := []fakeeve.Shape{fakeeve.SmallDeltas, fakeeve.Commits, fakeeve.Mixed}[rng.IntN(3)]
	whole := fakeeve.Generated(2+rng.Int64N(90), shape, version)
	want := stored(whole, version)
	log := whole
	if rng.IntN(2) == 0 {
		log = live(w, whole, rng.Int64N(whole.Len()), rand.New(rand.NewPCG(rng.Uint64(), 1)))
	}
	w.Eve.AddSession(session, fakeeve.SessionSpec{Version: version, Log: log})
	w.Eve.Script(session, failing(rand.New(rand.NewPCG(rng.Uint64(), 2))))

	p := program{t: t, manual: rng.IntN(2) == 0}
	trouble := 2 + rng.IntN(30) // one message in so many
	for runs := 0; !p.saved.SessionEnded; runs++ {
		if runs > 1000 {
			t.Fatal("does not end")
		}
		p.run(w, rng, trouble)
	}
	compare(t, p.done, want)
	t.Log("done:", strings.Join(p.schedule, " "))
}

// live is a log that grows to the whole of another, in its own time.
func live(w *world, whole fakeeve.Log, from int64, rng *rand.Rand) fakeeve.Log {
	log := fakeeve.Continue(fakeeve.Head(whole, from))
	w.running.Go(func() {
		for i := from; i < whole.Len(); i++ {
			time.Sleep(time.Duration(rng.ExpFloat64() * float64(3*time.Second)))
			log.AppendRaw(bytes.Clone(whole.Line(i)))
		}
		log.End()
	})
	return log
}

// failing is an agent that cuts a stream or is down now and then.
func failing(rng *rand.Rand) fakeeve.Script {
	var mu sync.Mutex
	return func(fakeeve.Conn) fakeeve.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch rng.IntN(8) {
		case 0:
			return fakeeve.Fault{CutAt: fakeeve.AtByte(rng.Int64N(4000)), Cut: []fakeeve.How{fakeeve.Clean, fakeeve.Abort}[rng.IntN(2)]}
		case 1, 2:
			return fakeeve.Fault{Status: 503}
		}
		return fakeeve.Fault{}
	}
}

// program keeps what it did together with the cursor behind it.
type program struct {
	t        *testing.T
	manual   bool
	done     []record
	saved    cursor.Cursor
	schedule []string
}

// run is one life of the program.
func (p *program) run(w *world, rng *rand.Rand, trouble int) {
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	var handled []record // since the last save
	opts := []follow.Option{
		follow.WithStart(p.saved),
		follow.WithRand(rand.New(rand.NewPCG(rng.Uint64(), 3))),
		follow.WithSave(func(_ context.Context, c cursor.Cursor) error {
			p.done, p.saved, handled = append(p.done, handled...), c, nil
			return nil
		}),
	}
	if p.manual {
		opts = append(opts, follow.WithManualAck())
	}
	f := follow.New(w.client(), rig.FromStart(session), opts...)
	for m, err := range f.Messages(ctx) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				p.t.Fatalf("%v after %v", err, p.schedule)
			}
			return
		}
		if rng.IntN(trouble) == 0 && p.stops(w, rng, m, cancel) {
			return
		}
		if r, ok := recordOf(m); ok {
			handled = append(handled, r)
		}
		complete := m.GetCheckpoint().GetReason() == evev1.CheckpointReason_CHECKPOINT_REASON_ENDED
		if p.manual && (complete || rng.IntN(3) == 0) {
			if err := f.Ack(ctx, m); err != nil && ctx.Err() == nil {
				p.t.Fatal(err)
			}
		}
	}
}

// stops makes trouble; it tells whether the program stops with it.
func (p *program) stops(w *world, rng *rand.Rand, m *evev1.SubscribeResponse, cancel func()) bool {
	troubles := []struct {
		name string
		make func()
	}{
		{"leave", nil},
		{"cancel", cancel},
		{"cut", w.cut},
		{"restart", func() { w.stop(); w.start() }},
		{"drain", func() { w.drain(); w.start() }},
		{"away", func() { w.stop(); time.Sleep(time.Duration(rng.Int64N(int64(time.Minute)))); w.start() }},
		{"slow", func() { time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Minute)))) }},
	}
	tr := troubles[rng.IntN(len(troubles))]
	p.schedule = append(p.schedule, tr.name+"@"+place(m.GetCursor()))
	if tr.make == nil {
		return true
	}
	tr.make()
	return false
}

// TestErrorsOfAGateway: what will not change ends the loop with one error, after one call.
func TestErrorsOfAGateway(t *testing.T) {
	t.Parallel()
	log := fakeeve.Generated(20, fakeeve.Mixed, 27)
	behind := func(line uint64) *evev1.SubscribeRequest { return rig.From(rig.At(session, 27, line)) }
	tests := []struct {
		name   string
		req    *evev1.SubscribeRequest
		reason string
	}{
		{"unknown session", rig.FromStart("wrun_unknown"), "SESSION_NOT_FOUND"},
		{"unknown agent", &evev1.SubscribeRequest{Agent: "nobody", SessionId: session}, "REQUEST_INVALID"},
		{"a cursor of another session", &evev1.SubscribeRequest{SessionId: "wrun_2", Start: behind(3).GetStart()}, "CURSOR_INVALID"},
		{"a cursor that no reader made", rig.From(&evev1.Cursor{SessionId: session, StreamIndex: 5}), "CURSOR_INVALID"},
		{"beyond the tail", behind(50), "CURSOR_AHEAD"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.Eve.AddSession(session, fakeeve.SessionSpec{Log: fakeeve.Continue(fakeeve.Head(log, 19))})
				var failures []string
				f := follow.New(w.client(), tt.req, follow.WithRetryNotice(func(e *follow.Error, _ time.Duration) { t.Errorf("tries again after %v", e) }))
				for m, err := range f.Messages(t.Context()) {
					failed, ok := errors.AsType[*follow.Error](err)
					if !ok || m != nil {
						t.Fatalf("given %v, error %v", m, err)
					}
					failures = append(failures, failed.Reason)
				}
				if got := strings.Join(failures, " "); got != tt.reason {
					t.Errorf("failed with %q, want %q", got, tt.reason)
				}
			})
		})
	}
}

// TestHistoryChanges: a history that is rewritten while nobody is connected is told, not read over.
func TestHistoryChanges(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		whole := fakeeve.Generated(40, fakeeve.Mixed, 27)
		log := fakeeve.Continue(fakeeve.Head(whole, 10))
		w.Eve.AddSession(session, fakeeve.SessionSpec{Log: log})
		var failed error
		n := 0
		for m, err := range follow.New(w.client(), rig.FromStart(session)).Messages(t.Context()) {
			if failed = err; err != nil {
				break
			}
			if _, ok := recordOf(m); ok {
				n++
			}
			if m.GetCheckpoint().GetReason() == evev1.CheckpointReason_CHECKPOINT_REASON_CAUGHT_UP {
				w.stop()
				log.Truncate(5)
				for i := int64(20); i < 30; i++ {
					log.AppendRaw(whole.Line(i))
				}
				w.start()
			}
		}
		if e, ok := errors.AsType[*follow.Error](failed); !ok || e.Reason != "CURSOR_DIVERGED" {
			t.Errorf("error %v", failed)
		}
		if want := len(stored(fakeeve.Head(whole, 10), 27)); n != want {
			t.Errorf("%d records before it, want %d", n, want)
		}
	})
}

// TestAgentAway: a gateway that cannot reach its agent says so, and the loop goes on once it can.
func TestAgentAway(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		log := fakeeve.Generated(20, fakeeve.Mixed, 27)
		w.Eve.AddSession(session, fakeeve.SessionSpec{Log: log})
		back := time.Now().Add(time.Hour)
		w.Eve.Script(session, func(fakeeve.Conn) fakeeve.Fault {
			if time.Now().Before(back) {
				return fakeeve.Fault{Status: 502}
			}
			return fakeeve.Fault{}
		})
		var got []record
		retries := 0
		f := follow.New(w.client(), rig.FromStart(session), follow.WithRetryNotice(func(e *follow.Error, wait time.Duration) {
			retries++
			if e.Reason != "AGENT_UNAVAILABLE" || e.RetryAfter <= 0 || wait < e.RetryAfter {
				t.Errorf("%v, asked to wait %v, waits %v", e, e.RetryAfter, wait)
			}
		}))
		for m, err := range f.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := recordOf(m); ok {
				got = append(got, r)
			}
		}
		compare(t, got, stored(log, 27))
		if retries < 30 || retries > 1000 {
			t.Errorf("tried %d times in an hour", retries)
		}
	})
}

// TestEndedBefore: a program that had read everything is told so, without asking the agent.
func TestEndedBefore(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.Eve.AddSession(session, fakeeve.SessionSpec{Log: fakeeve.Generated(20, fakeeve.Mixed, 27)})
		f := follow.New(w.client(), rig.FromStart(session))
		for _, err := range f.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		asked := len(w.Eve.Requests())
		var got []string
		for m, err := range follow.New(w.client(), rig.FromStart(session), follow.WithStart(f.Cursor())).Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m.GetCheckpoint().GetReason().String()+" "+m.GetCheckpoint().GetEnd().String())
		}
		if want := "CHECKPOINT_REASON_ENDED END_REASON_SESSION_ENDED"; strings.Join(got, ", ") != want {
			t.Errorf("got %v", got)
		}
		if n := len(w.Eve.Requests()) - asked; n != 0 {
			t.Errorf("asked the agent %d times", n)
		}
	})
}
