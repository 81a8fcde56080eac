package contract_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// smallSession is a whole session with one line of every kind.
func smallSession(version int) []string {
	if version < 27 {
		return []string{
			legacy(0, "session.started"), `{"type":"message.appended","data":{"messageDelta":"a"}}`, "not json",
			legacy(3, "almanac.opened"), legacy(4, "session.completed"),
		}
	}
	return []string{
		commit(0, "session.started", "almanac.opened", "turn.started"), delta("Gr\u00fc\u00dfe"), commit(2), "not json",
		commit(4, "almanac.page"), commit(5, "turn.settled", "session.ended", "almanac.closed"),
	}
}

// storedPlaces is what an independent reader finds in a log from a line and slot on.
func storedPlaces(l fakeeve.Log, version int, line, slot int64) []place {
	var out []place
	for e := range fakeeve.Entries(l, version, line, -1) {
		if e.Kind == fakeeve.Unreadable {
			out = append(out, place{Line: uint64(e.Line), Raw: validUTF8(e.Raw)})
		}
		for _, rec := range e.Records {
			if rec.Line > line || rec.Slot >= slot {
				out = append(out, place{uint64(rec.Line), uint32(rec.Slot), validUTF8(rec.Raw)})
			}
		}
	}
	return out
}

// A small session, cut at every byte of its response, in each of the three ways a connection can end, while its
// history is read and while it is followed: nothing is lost, nothing comes twice, and it ends as it does uncut.
func TestCutAtEveryByte(t *testing.T) {
	for _, version := range []int{26, 27} {
		for _, how := range []fakeeve.How{fakeeve.Clean, fakeeve.Abort, fakeeve.Reset} {
			for _, live := range []bool{false, true} {
				t.Run(fmt.Sprintf("version=%d/how=%d/live=%v", version, how, live), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { cutAtEveryByte(t, version, how, live) })
				})
			}
		}
	}
}

func cutAtEveryByte(t *testing.T, version int, how fakeeve.How, live bool) {
	lines := smallSession(version)
	bytes := len(heartbeat) + 1 + len(strings.Join(lines, "\n")) + 1 // of a whole response
	r := rig.New(t, (&contractCase{}).options())
	defer r.Close()
	for n := range bytes + 1 {
		id := fmt.Sprintf("wrun_%d", n)
		l := fakeeve.NewMemLog(lines...)
		conn := 0
		if live {
			l.Truncate(1) // the first connection reads the history, the second what is written then
			conn = 1
		} else {
			l.End()
		}
		s := r.Eve.AddSession(id, fakeeve.SessionSpec{Version: version, Log: l})
		r.Eve.Script(id, func(c fakeeve.Conn) fakeeve.Fault {
			if c.N == conn {
				return fakeeve.Fault{CutAt: fakeeve.AtByte(int64(n)), Cut: how}
			}
			return fakeeve.Fault{}
		})
		var during []moment
		if live {
			during = []moment{appends(time.Second, lines[1:3]...), appends(2*time.Second, lines[3:]...)}
		}
		res, _ := subscribe(t, r, s, rig.FromStart(id), &call{during: during})
		if res.Err != nil {
			t.Fatalf("byte %d: %v", n, res.Err)
		}
		if diff := cmp.Diff(storedPlaces(l, version, 0, 0), placesOf(t, res.Records())); diff != "" {
			t.Fatalf("byte %d: records (-want +got):\n%s", n, diff)
		}
		if end := res.Last().GetCheckpoint().GetEnd(); end != evev1.EndReason_END_REASON_SESSION_ENDED {
			t.Fatalf("byte %d: the last message is %v", n, res.Last())
		}
		caughtUp := 0
		for _, c := range res.Checkpoints() {
			if c.GetReason() == evev1.CheckpointReason_CHECKPOINT_REASON_CAUGHT_UP {
				caughtUp++
			}
		}
		if caughtUp != 1 {
			t.Fatalf("byte %d: CAUGHT_UP came %d times", n, caughtUp)
		}
	}
}

// A reader that is cut at every byte of every response it gets, and so gets one more byte each time, still comes to
// the end: what was read whole is kept.
func TestCutAgainAndAgain(t *testing.T) {
	for _, version := range []int{26, 27} {
		synctest.Test(t, func(t *testing.T) {
			c := contractCase{version: version, lines: smallSession(version)}
			r := rig.New(t, c.options())
			defer r.Close()
			s := r.Eve.AddSession(session, c.spec())
			r.Eve.Script(session, limited(t, func(c fakeeve.Conn) fakeeve.Fault {
				return fakeeve.Fault{CutAt: fakeeve.AtByte(int64(c.N)), Cut: fakeeve.How(c.N % 3)}
			}))
			res, _ := subscribe(t, r, s, rig.FromStart(session), &call{})
			if diff := cmp.Diff(storedPlaces(s.Log(), version, 0, 0), placesOf(t, res.Records())); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if res.Err != nil {
				t.Error(res.Err)
			}
		})
	}
}

// From every cursor that was ever handed out a reader gets exactly what an independent reader finds behind it, in the
// log of the server.
func TestResumeEverywhere(t *testing.T) {
	generated := func(version int, shape fakeeve.Shape, n int64) fakeeve.Log {
		return fakeeve.Generated(n, shape, version)
	}
	tests := []struct {
		name    string
		version int
		log     fakeeve.Log
	}{
		{"small 27", 27, fakeeve.NewMemLog(smallSession(27)...)},
		{"small 26", 26, fakeeve.NewMemLog(smallSession(26)...)},
		{"slots", 27, fakeeve.NewMemLog(slotLines()...)},
		{"mixed 27", 27, generated(27, fakeeve.Mixed, 70)},
		{"commits 27", 27, generated(27, fakeeve.Commits, 40)},
		{"mixed 26", 26, generated(26, fakeeve.Mixed, 70)},
		{"mixed 21", 21, generated(21, fakeeve.Mixed, 70)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := contractCase{version: tt.version, log: tt.log}
				r := rig.New(t, c.options())
				defer r.Close()
				r.Eve.AddSession(session, c.spec())
				whole := r.Subscribe(t.Context(), rig.UntilTail(rig.FromStart(session)), nil)
				if diff := cmp.Diff(storedPlaces(tt.log, tt.version, 0, 0), placesOf(t, whole.Records())); diff != "" {
					t.Fatalf("records (-want +got):\n%s", diff)
				}
				for _, m := range whole.Messages {
					at := m.GetCursor()
					rest := r.Subscribe(t.Context(), rig.UntilTail(rig.From(at)), nil)
					if rest.Err != nil {
						t.Fatalf("from %v: %v", at, rest.Err)
					}
					want := storedPlaces(tt.log, tt.version, int64(at.GetStreamIndex()), int64(at.GetStreamEventIndex()))
					if diff := cmp.Diff(want, placesOf(t, rest.Records())); diff != "" {
						t.Fatalf("from %v (-want +got):\n%s", at, diff)
					}
				}
			})
		})
	}
}
