package contract_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

func storedEvent(i int, id bool) string {
	meta := ""
	if id {
		meta = fmt.Sprintf(`,"id":"evt_%026d"`, i)
	}
	return fmt.Sprintf(`{"type":"message.appended","data":{"messageDelta":"%d"},"meta":{"at":"2026-11-18T09:00:00.%03dZ"%s}}`, i, i%1000, meta)
}

// A live stream up to version 26 can deliver an event a few places late (contract O4). Whatever the lateness, with
// ids or without, over cuts inside one stream and over a client's own resume, every event arrives exactly once.
func TestLiveDisorder(t *testing.T) {
	for _, ids := range []bool{true, false} {
		for late := 1; late <= 6; late++ {
			for stopAt := 14; stopAt <= 30; stopAt += 2 {
				t.Run(fmt.Sprintf("ids=%v/late=%d/stop=%d", ids, late, stopAt), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { liveDisorder(t, ids, late, stopAt) })
				})
			}
		}
	}
}

func liveDisorder(t *testing.T, ids bool, late, stopAt int) {
	const n, first = 40, 10
	r := rig.New(t, rig.Options{Eve: []fakeeve.Option{fakeeve.WithVersion(26)}})
	defer r.Close()
	session := r.Eve.AddSession("wrun_1", fakeeve.SessionSpec{})
	for i := range first {
		session.Append(storedEvent(i, ids))
	}
	r.Eve.Script("wrun_1", func(c fakeeve.Conn) fakeeve.Fault {
		return fakeeve.Fault{Late: func(line int64) int {
			if line%7 == 5 {
				return late
			}
			return 0
		}}
	})
	go func() {
		for i := first; i < n; i++ {
			time.Sleep(3 * time.Millisecond) // virtual: the bubble's clock
			session.Append(storedEvent(i, ids))
			if i == first+8 {
				session.CutAll(fakeeve.Clean)
			}
		}
		session.Append(`{"type":"session.completed","meta":{"at":"2026-11-18T10:00:00.000Z","id":"evt_end"}}`)
	}()
	got := map[string]int{}
	note := func(m *evev1.SubscribeResponse) {
		if e := m.GetEvent(); e != nil {
			got[e.GetRecordJson()]++
		}
	}
	part := r.Subscribe(t.Context(), rig.FromStart("wrun_1"), func(m *evev1.SubscribeResponse) bool {
		note(m)
		return len(got) >= stopAt
	})
	if part.Err != nil {
		t.Fatal(part.Err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	rest := r.Subscribe(ctx, rig.From(part.Last().GetCursor()), func(m *evev1.SubscribeResponse) bool { note(m); return false })
	if rest.Err != nil {
		t.Fatal(rest.Err)
	}
	for i := range n {
		if c := got[storedEvent(i, ids)]; c != 1 {
			t.Errorf("event %d arrived %d times", i, c)
		}
	}
	if c := rest.Last().GetCursor(); c.GetStreamIndex() != n+1 || !c.GetSessionEnded() {
		t.Errorf("final cursor %v, want index %d and the session's end", c, n+1)
	}
	if end := slices.IndexFunc(rest.Checkpoints(), func(c *evev1.Checkpoint) bool {
		return c.GetEnd() == evev1.EndReason_END_REASON_SESSION_ENDED
	}); end < 0 {
		t.Error("no end of the session was told")
	}
}
