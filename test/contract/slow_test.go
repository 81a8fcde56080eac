package contract_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// A client that stops reading holds nothing open at Eve, however long it pauses; when it reads on, nothing is missing
// and nothing comes twice, over everything that happened meanwhile.
func TestSlowClient(t *testing.T) {
	for _, version := range []int{26, 27} {
		synctest.Test(t, func(t *testing.T) {
			const stored = 2000
			log := fakeeve.Continue(fakeeve.Head(fakeeve.Generated(stored+1, fakeeve.Mixed, version), stored))
			c := contractCase{version: version, log: log}
			r := rig.New(t, c.options())
			defer r.Close()
			s := r.Eve.AddSession(session, c.spec())
			stream, err := r.Client.Subscribe(t.Context(), rig.FromStart(session))
			if err != nil {
				t.Fatal(err)
			}
			var got []place
			pause := 20 // records
			for {
				m, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if m.GetCheckpoint() == nil {
					got = append(got, placeOf(t, m))
				}
				if len(got) != pause {
					continue
				}
				pause *= 3
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				// Near the end the gateway has read all there is and follows, ahead of the client.
				if n := r.Eve.OpenBodies(); n != 0 && len(got) < stored/2 {
					t.Errorf("behind record %d: %d bodies are open while the client pauses", len(got), n)
				}
				s.CutAll(fakeeve.Abort)
				if pause > stored {
					end := commit(9, "turn.settled", "session.ended")
					if version < 27 {
						end = legacy(9, "session.completed")
					}
					s.Append(end)
				}
			}
			if diff := cmp.Diff(storedPlaces(log, version, 0, 0), got); diff != "" {
				t.Errorf("version %d: records (-want +got):\n%s", version, diff)
			}
		})
	}
}

// A client that never reads costs a bounded number of lines, and loses none of them by leaving.
func TestStalledClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := contractCase{log: fakeeve.Generated(100_000, fakeeve.Commits, 27)}
		r := rig.New(t, c.options())
		defer r.Close()
		s := r.Eve.AddSession(session, c.spec())
		if _, err := r.Client.Subscribe(t.Context(), rig.FromStart(session)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		var lines int64
		for _, q := range r.Eve.StreamRequests(session) {
			lines += q.Lines
		}
		if lines > 5000 {
			t.Errorf("%d lines were read for a client that reads none", lines)
		}
		if n := r.Eve.OpenBodies(); n != 0 {
			t.Errorf("%d bodies are open", n)
		}
		res, _ := subscribe(t, r, s, rig.FromStart(session), &call{stop: 3})
		if diff := cmp.Diff(storedPlaces(fakeeve.Head(c.log, 1), 27, 0, 0)[:1], placesOf(t, []*evev1.SubscribeResponse{res.Messages[0]})); diff != "" {
			t.Errorf("first record of another client (-want +got):\n%s", diff)
		}
	})
}
