package contract_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// datesOf says of each record when it was recorded: seconds past 09:00, or that it is not known.
func datesOf(t *testing.T, messages []*evev1.SubscribeResponse) []string {
	t.Helper()
	start, err := time.Parse(time.RFC3339, clock(0))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range messages {
		at := m.GetFact().GetRecordedAt()
		if m.GetProgress() != nil {
			at = m.GetProgress().GetRecordedAt()
		}
		text := "unknown"
		if at != nil {
			text = fmt.Sprint(at.AsTime().Sub(start).Seconds())
		}
		out = append(out, fmt.Sprintf("%d.%d %s", coordinatesOf(m).GetLine(), coordinatesOf(m).GetRecordIndex(), text))
	}
	return out
}

// Progress has no time of its own: it is dated by the latest commit, wherever and however the reader came to it, and
// not at all when no commit is known (contract 2.6).
func TestProgressTime(t *testing.T) {
	lines := []string{
		delta("a"), commit(5, "model.started", "almanac.page"), delta("b"), delta("c"), commit(9), delta("d"), "not json", delta("e"), commit(12, "model.settled"),
	}
	whole := []string{"0.0 unknown", "1.0 5", "1.1 5", "2.0 5", "3.0 5", "5.0 9", "6.0 unknown", "7.0 9", "8.0 12"}
	tests := []struct {
		name   string
		script []fakeeve.Fault
		ask    *evev1.SubscribeRequest
		want   []string
	}{
		{"in one go", nil, rig.FromStart(session), whole},
		{"over cuts between deltas", []fakeeve.Fault{
			{CutAt: fakeeve.AtLine(3, 4)}, {CutAt: fakeeve.AtLine(5, 4), Cut: fakeeve.Abort}, {CutAt: fakeeve.AtLine(7, 4), Cut: fakeeve.Reset},
		}, rig.FromStart(session), whole},
		{"over leases between deltas", []fakeeve.Fault{
			{LineDelay: time.Second, Lease: 3500 * time.Millisecond}, {LineDelay: time.Second, Lease: 3500 * time.Millisecond},
		}, rig.FromStart(session), whole},
		{"from a cursor that knows no time", nil, rig.From(rig.At(session, 27, 3)), []string{"3.0 unknown", "5.0 9", "6.0 unknown", "7.0 9", "8.0 12"}},
		{"the last lines, behind a commit", nil, lastLines(4), []string{"5.0 9", "6.0 unknown", "7.0 9", "8.0 12"}},
		{"the last lines, behind a delta", nil, lastLines(6), []string{"3.0 unknown", "5.0 9", "6.0 unknown", "7.0 9", "8.0 12"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := contractCase{lines: lines}
				r := rig.New(t, c.options())
				defer r.Close()
				r.Eve.AddSession(session, c.spec())
				r.Eve.Script(session, fakeeve.Faults(tt.script...))
				res := r.Subscribe(t.Context(), rig.UntilTail(tt.ask), nil)
				if res.Err != nil {
					t.Fatal(res.Err)
				}
				if diff := cmp.Diff(tt.want, datesOf(t, res.Records())); diff != "" {
					t.Errorf("times (-want +got):\n%s", diff)
				}
				// Whoever resumes with a cursor that was handed out reads the same times.
				for i, m := range res.Messages {
					rest := r.Subscribe(t.Context(), rig.UntilTail(rig.From(m.GetCursor())), nil)
					want := datesOf(t, rig.Result{Messages: res.Messages[i+1:]}.Records())
					if diff := cmp.Diff(want, datesOf(t, rest.Records())); diff != "" {
						t.Errorf("times after a resume behind message %d (-want +got):\n%s", i, diff)
					}
				}
			})
		})
	}
}

func lastLines(n uint32) *evev1.SubscribeRequest {
	return &evev1.SubscribeRequest{SessionId: session, Start: &evev1.SubscribeRequest_LastLines{LastLines: n}}
}

// A commit's time that is no time is shown as it is written.
func TestCommitTimeUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := contractCase{lines: []string{`{"at":"yesterday","facts":[{"type":"almanac.page"}]}`, `{"at":"","facts":[{"type":"almanac.page"}]}`, commit(2, "almanac.page")}}
		r := rig.New(t, c.options())
		defer r.Close()
		r.Eve.AddSession(session, c.spec())
		res := r.Subscribe(t.Context(), rig.FromStart(session), nil)
		if diff := cmp.Diff([]string{"0.0 unknown", "1.0 unknown", "2.0 2"}, datesOf(t, res.Records())); diff != "" {
			t.Errorf("times (-want +got):\n%s", diff)
		}
		if got := res.Records()[0].GetFact().GetRecordedAtText(); got != "yesterday" {
			t.Errorf("recorded_at_text %q", got)
		}
		if got := res.Records()[2].GetFact().GetRecordedAtText(); got != "" {
			t.Errorf("recorded_at_text %q beside a time", got)
		}
	})
}
