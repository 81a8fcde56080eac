package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evegateway/evegateway/gateway"
	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/guarantee"
	"github.com/evegateway/evegateway/internal/rig"
)

// settleWithin is how long everybody may take to reach the end once nothing goes wrong any more: the longest waits that
// may still be due, an open that is never answered, an idle body, a backoff, one after the other.
const settleWithin = 5 * time.Minute

// maxConns is how many connections a reader may need; more is a storm.
const maxConns = 2000

// schedule is what happened in a run, for people.
type schedule struct {
	mu    sync.Mutex
	began time.Time
	text  strings.Builder
}

func (s *schedule) logf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(&s.text, "%10.3fs  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

func (s *schedule) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// run is one run: one driver does one thing after the other and lets everything come to rest in between, so that all of
// it follows from the seed.
type run struct {
	*schedule
	t        *testing.T
	rnd      *rand.Rand
	rig      *rig.Rig
	options  rig.Options
	sessions []*stored
	clients  []*client

	mu   sync.Mutex
	calm bool // nothing goes wrong any more
}

func newRand(seed, what uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, what))
}

// chaos runs one seed. Call it in a bubble.
func chaos(t *testing.T, seed uint64, log *schedule) {
	log.mu.Lock()
	log.began = time.Now()
	log.mu.Unlock()
	r := &run{schedule: log, t: t, rnd: newRand(seed, 0)}
	r.setUp(seed)
	defer r.rig.Close()
	defer func() {
		for _, c := range r.clients {
			if c.running != nil {
				c.end(-1)
			}
		}
		synctest.Wait()
	}()
	r.flood()
	for range 8 + r.rnd.IntN(40) {
		r.step()
		synctest.Wait()
		r.look()
	}
	r.settle()
	r.judge()
}

// setUp draws the sessions and their readers, and starts everything.
func (r *run) setUp(seed uint64) {
	for i := range 1 + r.rnd.IntN(4)/3 {
		r.sessions = append(r.sessions, newStored(r.rnd, fmt.Sprintf("wrun_%d", i)))
	}
	for i := range len(r.sessions) + r.rnd.IntN(2) {
		s := r.sessions[i%len(r.sessions)]
		r.clients = append(r.clients, &client{
			name: fmt.Sprintf("c%d", i), session: s, faults: &faults{rnd: newRand(seed, uint64(i)+1), session: s},
		})
	}
	r.options = rig.Options{
		Config: func(cfg *gateway.Config) {
			cfg.MaxLineBytes = maxLine
			own := cfg.Agents[0]
			for _, c := range r.clients {
				own := own
				own.Name, own.URL = c.name, own.URL+"?reader="+c.name
				cfg.Agents = append(cfg.Agents, own)
			}
		},
		Source: func(cfg *source.Config) {
			cfg.OpenTimeout = 20 * time.Second
			cfg.Rand = func() float64 { return 0.5 }
		},
	}
	r.rig = rig.New(r.t, r.options)
	synctest.Wait()
	for _, s := range r.sessions {
		quirks := fakeeve.Quirks{
			TailInformational: r.rnd.IntN(7) == 0, IgnoresFollow: r.rnd.IntN(10) == 0, HonoursAhead: r.rnd.IntN(10) == 0,
		}
		s.eve = r.rig.Eve.AddSession(s.id, fakeeve.SessionSpec{Version: s.version, Log: s.log, Quirks: quirks})
		r.rig.Eve.Script(s.id, r.fault)
		r.logf("session %s: version %d, %d lines of which %d are stored, %+v, %+v", s.id, s.version, len(s.lines), s.n, s.traits, quirks)
	}
}

// flood lets a client that takes nothing face more than anybody may buffer.
func (r *run) flood() {
	c := r.clients[0]
	if !c.session.flood {
		return
	}
	r.store(c.session, len(c.session.lines))
	req := c.resume()
	r.logf("%s asks for everything, and takes nothing for a while", c.name)
	sent := r.sent(c)
	k := c.begin(r.rig, req, 0)
	time.Sleep(30 * time.Second)
	synctest.Wait()
	k.held = r.sent(c) - sent
	r.logf("%s takes all", c.name)
	k.allow(-1)
	time.Sleep(time.Second)
	synctest.Wait()
	r.look()
}

// fault is the script of all sessions.
func (r *run) fault(c fakeeve.Conn) fakeeve.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	reader := r.reader(c.Request.URL.Query().Get("reader"))
	if reader == nil {
		r.t.Errorf("a connection for nobody: %s", c.Request.URL)
		return fakeeve.Fault{}
	}
	reader.conns++
	if reader.conns > maxConns {
		if reader.conns == maxConns+1 {
			r.t.Errorf("%s made %d connections", reader.name, maxConns)
		}
		return fakeeve.Fault{Delay: fakeeve.Forever} // time must pass, or it would go on
	}
	var fault fakeeve.Fault
	if r.calm {
		reader.faults.order(&fault)
	} else {
		fault = reader.faults.next(c)
	}
	kind := "follows"
	if c.Query.IncludeTailIndex {
		kind = "bounded"
	}
	r.logf("  %s connection %d from line %d of %d, %s: %s", reader.name, reader.conns, c.Start, c.Tail+1, kind, describe(&fault))
	return fault
}

func (r *run) reader(name string) *client {
	for _, c := range r.clients {
		if c.name == name {
			return c
		}
	}
	return nil
}

// step does one thing.
func (r *run) step() {
	s := pick(r.rnd, r.sessions...)
	c := pick(r.rnd, r.clients...)
	switch d := r.rnd.IntN(100); {
	case d < 27:
		r.pass(pick(r.rnd, time.Duration(r.rnd.IntN(100))*time.Millisecond, time.Duration(r.rnd.IntN(3000))*time.Millisecond,
			time.Duration(r.rnd.IntN(40))*time.Second, time.Duration(50+r.rnd.IntN(40))*time.Second))
	case d < 45:
		r.store(s, 1+r.rnd.IntN(6))
	case d < 84:
		r.client(c)
	case d < 88:
		how := pick(r.rnd, fakeeve.Clean, fakeeve.Abort, fakeeve.Reset)
		r.logf("all connections to %s are cut, way %d", s.id, how)
		s.eve.CutAll(how)
	case d < 91:
		r.restart()
	default:
		r.history(s, c)
	}
}

func (r *run) pass(d time.Duration) {
	r.logf("%v pass", d)
	time.Sleep(d)
}

func (r *run) store(s *stored, n int) {
	if s.flood {
		n *= 10
	}
	s.store(n)
	r.logf("%s has %d lines", s.id, s.n)
}

// history changes what is stored, where a session has that trait: often right where a client stands.
func (r *run) history(s *stored, c *client) {
	from := r.rnd.IntN(s.n + 1)
	if c.session == s && r.rnd.IntN(2) == 0 {
		from = min(s.n, int(c.at.GetStreamIndex()))
	}
	switch {
	case s.skips && s.n > 0:
		to := from + 1 + r.rnd.IntN(5)
		s.trim(from, to)
		r.logf("%s loses lines %d to %d", s.id, from, to-1)
	case s.rewritten && len(s.past) == 0:
		s.rewrite(r.rnd, from, 1+r.rnd.IntN(20))
		s.eve.Update(func(spec *fakeeve.SessionSpec) { spec.Log = s.log })
		s.eve.CutAll(fakeeve.Abort)
		for _, c := range r.clients {
			if c.running != nil && c.session == s {
				c.running.rewritten = true
			}
		}
		r.logf("%s is rewritten from line %d on, and has %d lines of %d", s.id, from, s.n, len(s.lines))
	}
}

// restart ends the gateway, in good order or at once, and starts another one.
func (r *run) restart() {
	gracefully := r.rnd.IntN(2) == 0
	down := pick(r.rnd, 0, 0, 2*time.Second)
	r.logf("the gateway restarts; gracefully: %t, down for %v", gracefully, down)
	if gracefully {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		r.rig.Server.Shutdown(ctx)
		cancel()
	}
	r.rig.StopGateway()
	time.Sleep(down)
	r.rig.Start(r.options)
	synctest.Wait()
}

// client does something with a client.
func (r *run) client(c *client) {
	k := c.running
	switch {
	case k == nil:
		req, forged, detour := c.ask(r.rnd)
		allowed := pick(r.rnd, -1, -1, r.rnd.IntN(12), 0)
		r.logf("%s asks %s, takes %d", c.name, requestText(req), allowed)
		k := c.begin(r.rig, req, allowed)
		k.forged, k.detour = forged, detour
	case r.rnd.IntN(5) < 2:
		allowed := pick(r.rnd, -1, 0, 1, 1+r.rnd.IntN(10))
		r.logf("%s takes %d more", c.name, allowed)
		k.allow(allowed)
	default:
		n := r.received(k)
		handled := n
		if r.rnd.IntN(3) == 0 {
			handled = r.rnd.IntN(n + 1)
		}
		c.end(handled)
		r.logf("%s leaves, %d of %d messages handled", c.name, handled, n)
	}
}

// received counts the messages that came so far.
func (*run) received(k *call) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.messages)
}

// sent counts the bytes of all bodies that were sent for a client.
func (r *run) sent(c *client) int64 {
	n := int64(0)
	for _, q := range r.rig.Eve.Requests() {
		if q.Query.Get("reader") == c.name {
			n += q.Bytes
		}
	}
	return n
}

// look takes note of calls that ended by themselves.
func (r *run) look() {
	for _, c := range r.clients {
		if c.running != nil && c.running.over() {
			r.finished(c)
		}
	}
}

// finished takes note of a call that ended by itself, and returns it.
func (r *run) finished(c *client) guarantee.Call {
	k := c.end(-1)
	at := c.at
	r.logf("%s: call %d ended with %v after %d messages, at %d.%d", c.name, len(c.calls)-1, statusText(k.Err), len(k.Messages),
		at.GetStreamIndex(), at.GetStreamEventIndex())
	switch guarantee.Reason(k.Err) {
	case "INTERNAL", "REQUEST_INVALID", "CURSOR_INVALID":
		r.t.Errorf("%s: call %d ended with %v", c.name, len(c.calls)-1, k.Err)
	}
	return k
}

func statusText(err error) string {
	if err == nil {
		return "OK"
	}
	return fmt.Sprintf("%v %s", status.Code(err), guarantee.Reason(err))
}

// settle lets nothing go wrong any more, has everybody follow, stores the rest, and waits until all are at the end.
func (r *run) settle() {
	r.mu.Lock()
	r.calm = true
	r.mu.Unlock()
	r.logf("nothing goes wrong any more")
	began := time.Now()
	waiting := map[*client]bool{}
	for _, c := range r.clients {
		waiting[c] = true
		if c.running != nil {
			c.running.allow(-1)
		} else {
			r.rest(c)
		}
	}
	time.Sleep(time.Second)
	synctest.Wait()
	for _, s := range r.sessions {
		s.store(len(s.lines))
		synctest.Wait()
		if s.closed {
			s.log.End()
		}
		r.logf("%s has all its %d lines", s.id, s.n)
	}
	for len(waiting) > 0 && time.Since(began) < settleWithin {
		synctest.Wait()
		for _, c := range r.clients {
			if waiting[c] && r.arrived(c) {
				delete(waiting, c)
			}
		}
		time.Sleep(time.Second)
	}
	for c := range waiting {
		r.t.Errorf("%s is not at the end %v after all went well again", c.name, settleWithin)
	}
	for _, c := range r.clients {
		if c.running != nil {
			c.end(-1)
		}
	}
	synctest.Wait()
	if n := r.rig.Eve.OpenBodies(); n > 0 {
		r.t.Errorf("%d bodies are open upstream, and nobody reads", n)
	}
}

// arrived tells whether a client is where it is to come to, and makes another call if it has to.
func (r *run) arrived(c *client) bool {
	if k := c.running; k != nil {
		if !k.over() {
			return !c.session.closedForReaders() && r.atEnd(c, k)
		}
		done := r.finished(c)
		switch {
		case k.detour:
		case done.Err == nil:
			if c.ended() {
				return true
			}
		case c.refused(done.Err):
			return true
		case k.calm && !retryable(done.Err):
			r.t.Errorf("%s: call %d ended with %v although all is well", c.name, len(c.calls)-1, done.Err)
			return true
		}
	}
	r.rest(c)
	return false
}

// rest asks for all that follows.
func (r *run) rest(c *client) {
	req := c.resume()
	req.OnOversizeLine = evev1.OnOversizeLine_ON_OVERSIZE_LINE_SKIP
	r.logf("%s asks for the rest, %s", c.name, requestText(req))
	c.begin(r.rig, req, -1).calm = true
}

// closedForReaders tells whether readers are told of the end. A stream of version 21 to 26 that is closed but has no
// terminal event looks like one that goes on.
func (s *stored) closedForReaders() bool {
	return s.terminal || s.closed && s.version == 27 && !s.crossed
}

// atEnd tells whether a call that goes on has told all there is.
func (r *run) atEnd(c *client, k *call) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.detour || len(k.messages) == 0 {
		return k.detour && r.leave(c)
	}
	at := k.messages[len(k.messages)-1].GetCursor()
	return at.GetStreamEventIndex() == 0 && int64(at.GetStreamIndex()) == c.session.end()
}

// leave lets go of a call that leads nowhere.
func (*run) leave(c *client) bool {
	c.running.cancel()
	return false
}

// ended tells whether the client stands at the end.
func (c *client) ended() bool {
	if c.at.GetSessionEnded() {
		return true
	}
	last := c.calls[len(c.calls)-1]
	if len(last.Messages) == 0 {
		return false
	}
	return last.Messages[len(last.Messages)-1].GetCheckpoint().GetEnd() == evev1.EndReason_END_REASON_STREAM_CLOSED
}

// refused tells whether a client cannot go on, because its history is gone.
func (c *client) refused(err error) bool {
	switch guarantee.Reason(err) {
	case "CURSOR_DIVERGED", "CURSOR_AHEAD", "HISTORY_EXPIRED":
		return len(c.session.past) > 0 && c.at != nil
	}
	return false
}

// retryable tells whether the same call can do better later.
func retryable(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.ResourceExhausted:
		return true
	default:
		return false
	}
}

// judge compares what every client received with what is stored.
func (r *run) judge() {
	for _, c := range r.clients {
		for _, v := range guarantee.Check(c.session.promise(c.name), c.calls) {
			r.t.Errorf("%s: %v\n%s", c.name, v, requestText(c.calls[v.Call].Request))
		}
	}
}
