package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/guarantee"
	"github.com/evegateway/evegateway/internal/rig"
)

// What random runs have found, each as the shortest run that shows it.

// found is a session in a rig, and the calls one client has made.
type found struct {
	t      *testing.T
	rig    *rig.Rig
	eve    *fakeeve.Session
	log    *fakeeve.MemLog
	stored []*fakeeve.MemLog // all histories, the present one last
	late   int64
	cross  bool
	calls  []guarantee.Call
}

const foundSession = "wrun_found"

// replay runs a test in a bubble, in front of a session with these lines, and checks in the end what the client got.
func replay(t *testing.T, version int, lines []string, faults []fakeeve.Fault, test func(*found)) {
	t.Helper()
	replayAt(t, fakeeve.SessionSpec{Version: version}, lines, faults, test)
}

func replayAt(t *testing.T, spec fakeeve.SessionSpec, lines []string, faults []fakeeve.Fault, test func(*found)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &found{t: t, log: fakeeve.NewMemLog(lines...)}
		f.stored = []*fakeeve.MemLog{f.log}
		f.rig = rig.New(t, rig.Options{})
		defer f.rig.Close()
		synctest.Wait()
		spec.Log = f.log
		f.eve = f.rig.Eve.AddSession(foundSession, spec)
		f.rig.Eve.Script(foundSession, fakeeve.Faults(faults...))
		test(f)
		s := guarantee.Session{
			Agent: rig.Agent, ID: foundSession, Closed: true, Late: f.late, Crossed: f.cross,
		}
		for _, log := range f.stored {
			s.Histories = append(s.Histories, guarantee.Lines(slices.Collect(fakeeve.Entries(log, spec.Version, 0, -1))))
		}
		for _, v := range guarantee.Check(s, f.calls) {
			t.Error(v)
		}
	})
}

// call makes a call and leaves it after a while, or when it has ended.
func (f *found) call(req *evev1.SubscribeRequest, stay time.Duration) guarantee.Call {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stay)
	defer cancel()
	res := f.rig.Subscribe(ctx, req, nil)
	k := guarantee.Call{Request: req, Messages: res.Messages, Err: res.Err, Left: ctx.Err() != nil}
	f.calls = append(f.calls, k)
	return k
}

// later appends lines after a while, and closes the stream.
func (f *found) later(after time.Duration, lines ...string) {
	time.AfterFunc(after, func() {
		f.log.Append(lines...)
		f.log.End()
	})
}

// rewrite gives the session another history, and cuts whoever reads the one before.
func (f *found) rewrite(lines ...string) {
	f.log = fakeeve.NewMemLog(lines...)
	f.stored = append(f.stored, f.log)
	f.eve.Update(func(spec *fakeeve.SessionSpec) { spec.Log = f.log })
	f.eve.CutAll(fakeeve.Abort)
}

func foundEvent(i int, typ string) string {
	return fmt.Sprintf(`{"type":%q,"data":{"n":%d},"meta":{"id":"evt_%d"}}`, typ, i, i)
}

// Up to version 26 the session's end can overtake an event. When the connection was cut behind the end, the event was
// lost: the end was told although what it had overtaken had not come.
func TestEndOvertakesAnEventAndIsCut(t *testing.T) {
	for _, how := range []fakeeve.How{fakeeve.Clean, fakeeve.Abort, fakeeve.Reset} {
		late := fakeeve.Fault{
			Late:  func(line int64) int { return int(3 - line) }, // line 2 comes behind line 3
			CutAt: fakeeve.AtLine(2, 0), Cut: how,
		}
		lines := []string{foundEvent(0, "x.a"), foundEvent(1, "x.b")}
		replay(t, 26, lines, []fakeeve.Fault{{}, late}, func(f *found) {
			f.late = 4
			f.later(time.Second, foundEvent(2, "x.late"), foundEvent(3, "session.completed"))
			k := f.call(rig.FromStart(foundSession), time.Minute)
			if n := len(k.Messages); k.Left || n != 6 {
				t.Errorf("cut in way %d: %d messages, left: %t; want 4 events, CAUGHT_UP and ENDED", how, n, k.Left)
			}
		})
	}
}

// Looking for what the end may have overtaken must not cost the end itself where history vanishes with the session
// (contract O14).
func TestEndIsCutAndHistoryIsGone(t *testing.T) {
	for _, purge := range []bool{false, true} {
		lines := []string{foundEvent(0, "x.a"), foundEvent(1, "x.b")}
		faults := []fakeeve.Fault{{}, {CutAt: fakeeve.AtLine(3, 0), Cut: fakeeve.Abort}}
		replay(t, 26, lines, faults, func(f *found) {
			time.AfterFunc(time.Second, func() {
				f.log.Append(foundEvent(2, "session.completed"), foundEvent(3, "x.never"))
				if synctest.Wait(); purge {
					f.rewrite()
				} else {
					f.eve.Expire()
				}
			})
			k := f.call(rig.FromStart(foundSession), time.Minute)
			if k.Left || k.Err != nil || len(k.Messages) != 5 {
				t.Errorf("purged: %t; %d messages, left: %t, status %v; want 3 events, CAUGHT_UP and ENDED", purge, len(k.Messages), k.Left, k.Err)
			}
		})
	}
}

// A cursor behind a commit says version 27, whoever sent the commit. Read from a server of 26 it also has a trail, which
// was compared with a connection that did not re-read it: CURSOR_DIVERGED, for ever.
func TestTrailOfAnOlderServerUnder27(t *testing.T) {
	var lines []string
	for i := range 6 {
		lines = append(lines, fmt.Sprintf(`{"at":"2026-11-18T09:00:0%d.000Z","facts":[{"type":"x.fact","data":%d}]}`, i, i))
	}
	older := fakeeve.Fault{Version: 26}
	for name, faults := range map[string][]fakeeve.Fault{
		"resumed under 26":            {older, older, older, older},
		"resumed under 27":            {older, {}},
		"26, then 27, then 26 again":  {older, {Lease: time.Second}, older, older},
		"26, and another one in turn": {older, {Version: 26, Lease: time.Second}, {Lease: time.Second}, {Version: 25, Lease: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			replay(t, 27, lines, faults, func(f *found) {
				f.cross = true
				first := f.call(rig.UntilTail(rig.FromStart(foundSession)), time.Minute)
				f.later(30*time.Second, `{"at":"2026-11-18T09:00:09.000Z","facts":[{"type":"session.ended","data":{}}]}`)
				last := first.Messages[len(first.Messages)-1]
				if k := f.call(rig.From(last.GetCursor()), 2*time.Minute); k.Left || k.Err != nil {
					t.Errorf("left: %t, status %v", k.Left, k.Err)
				}
			})
		})
	}
}

// Before the start of a relative read is known there is no cursor to hand out. A heartbeat or a gateway that drains did,
// and it stood at the beginning of the session.
func TestNothingBeforeTheStartOfARelativeRead(t *testing.T) {
	tail := &evev1.SubscribeRequest{
		SessionId: foundSession, Start: &evev1.SubscribeRequest_Position{Position: evev1.Position_POSITION_TAIL},
		HeartbeatInterval: durationpb.New(time.Second),
	}
	lines := []string{`{"progress":{"type":"x.p","data":0}}`, `{"progress":{"type":"x.p","data":1}}`}
	silent := fakeeve.Fault{StallAt: fakeeve.AtLine(1, 0), Stall: 4 * time.Second}
	t.Run("heartbeat", func(t *testing.T) {
		replay(t, 27, lines, []fakeeve.Fault{silent}, func(f *found) {
			if k := f.call(tail, 10*time.Second); len(k.Messages) < 3 {
				t.Errorf("%d messages, want POSITIONED, CAUGHT_UP and heartbeats", len(k.Messages))
			}
		})
	})
	t.Run("drain", func(t *testing.T) {
		replay(t, 27, lines, []fakeeve.Fault{silent}, func(f *found) {
			time.AfterFunc(2*time.Second, func() {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				f.rig.Server.Shutdown(ctx)
			})
			k := f.call(tail, time.Minute)
			if reason := guarantee.Reason(k.Err); reason != "DRAINING" || len(k.Messages) != 0 {
				t.Errorf("%d messages, then %v; want none and DRAINING", len(k.Messages), k.Err)
			}
		})
	})
}

// The same of a checkpoint that the version has changed: nothing had been read under the one before.
func TestNoVersionChangeBeforeTheStart(t *testing.T) {
	lines := []string{foundEvent(0, "x.a"), foundEvent(1, "x.b"), foundEvent(2, "x.c")}
	faults := []fakeeve.Fault{{Version: 27, CutAt: fakeeve.AtLine(1, 3), Cut: fakeeve.Reset}}
	replay(t, 26, lines, faults, func(f *found) {
		f.cross = true
		k := f.call(&evev1.SubscribeRequest{SessionId: foundSession, Start: &evev1.SubscribeRequest_LastLines{LastLines: 1}}, 10*time.Second)
		if len(k.Messages) == 0 {
			t.Error("no message")
		}
	})
}

// A server before eve 0.44.3, whose bodies go on behind the tail, with a history that is not the one that was read: the
// reader waited for the lines it remembered, on one connection after the other, and said nothing for ever.
func TestRewrittenUnderAnOldServer(t *testing.T) {
	spec := fakeeve.SessionSpec{Version: 24, Quirks: fakeeve.Quirks{TailInformational: true, IgnoresFollow: true}}
	var before, after []string
	for i := range 14 {
		before = append(before, foundEvent(i, "x.before"))
		after = append(after, foundEvent(i+min(i/9, 1)*100, "x.after"))
	}
	copy(after, before[:9])
	replayAt(t, spec, before[:13], nil, func(f *found) {
		k := f.call(rig.FromStart(foundSession), time.Second)
		f.rewrite(after...)
		last := k.Messages[len(k.Messages)-1]
		if k := f.call(rig.From(last.GetCursor()), time.Minute); guarantee.Reason(k.Err) != "CURSOR_DIVERGED" {
			t.Errorf("left: %t, status %v; want CURSOR_DIVERGED", k.Left, k.Err)
		}
	})
}
