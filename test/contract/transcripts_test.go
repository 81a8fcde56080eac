package contract_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// place is where a record stands, and what it says.
type place struct {
	Line uint64
	Slot uint32
	Raw  string
}

func placeOf(t *testing.T, m *evev1.SubscribeResponse) place {
	t.Helper()
	switch item := m.GetItem().(type) {
	case *evev1.SubscribeResponse_Fact:
		return place{item.Fact.GetSource().GetLine(), item.Fact.GetSource().GetRecordIndex(), item.Fact.GetRecordJson()}
	case *evev1.SubscribeResponse_Progress:
		return place{item.Progress.GetSource().GetLine(), 0, item.Progress.GetRecordJson()}
	case *evev1.SubscribeResponse_Event:
		return place{item.Event.GetSource().GetLine(), 0, item.Event.GetRecordJson()}
	case *evev1.SubscribeResponse_UnreadableLine:
		return place{item.UnreadableLine.GetSource().GetLine(), 0, item.UnreadableLine.GetText()}
	}
	t.Fatalf("no record: %v", m)
	return place{}
}

func placesOf(t *testing.T, messages []*evev1.SubscribeResponse) []place {
	t.Helper()
	var out []place
	for _, m := range messages {
		out = append(out, placeOf(t, m))
	}
	return out
}

// Every transcript comes out with the counts, raw bytes and final cursor that an independent reader found.
func TestTranscripts(t *testing.T) {
	for _, name := range fakeeve.TranscriptNames() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.New(t, rig.Options{})
				defer r.Close()
				file, req := addTranscript(t, r, name)
				res := r.Subscribe(t.Context(), req, nil)
				checkEnd(t, file, res)
				var slots, events, unreadable int
				for _, m := range res.Records() {
					if m.GetUnreadableLine() != nil {
						unreadable++
						continue
					}
					slots++
					if m.GetEvent() != nil || m.GetFact().GetData() != nil || m.GetProgress().GetData() != nil {
						events++
					}
				}
				e := file.Expected
				if slots != e.Slots || events != e.Events || unreadable != e.Invalid {
					t.Errorf("slots %d, events %d, unreadable %d; want %d, %d, %d", slots, events, unreadable, e.Slots, e.Events, e.Invalid)
				}
				if diff := cmp.Diff(wantPlaces(file), placesOf(t, res.Records())); diff != "" {
					t.Errorf("records (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// After every message of every transcript a reader can stop, and its cursor leads to exactly the rest.
func TestTranscriptsResumeEverywhere(t *testing.T) {
	for _, name := range fakeeve.TranscriptNames() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.New(t, rig.Options{})
				defer r.Close()
				file, req := addTranscript(t, r, name)
				whole := r.Subscribe(t.Context(), req, nil)
				if whole.Err != nil {
					t.Fatal(whole.Err)
				}
				for i, m := range whole.Messages {
					rest := r.Subscribe(t.Context(), endless(file, rig.From(m.GetCursor())), nil)
					if rest.Err != nil {
						t.Fatalf("resuming after message %d (%v): %v", i, m, rest.Err)
					}
					want := rig.Result{Messages: whole.Messages[i+1:]}.Records()
					if diff := cmp.Diff(want, rest.Records(), protocmp.Transform()); diff != "" {
						t.Fatalf("resuming after message %d (-want +got):\n%s", i, diff)
					}
					if got, want := rest.Last().GetCursor(), whole.Last().GetCursor(); got.GetStreamIndex() > want.GetStreamIndex() {
						t.Fatalf("resuming after message %d ends at %v, the whole at %v", i, got, want)
					}
				}
			})
		})
	}
}

func addTranscript(t *testing.T, r *rig.Rig, name string) (*fakeeve.TranscriptFile, *evev1.SubscribeRequest) {
	t.Helper()
	file, err := fakeeve.Transcript(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Eve.AddTranscript("wrun_1", name); err != nil {
		t.Fatal(err)
	}
	req := rig.FromStart("wrun_1")
	if file.Start > 0 {
		req = rig.From(rig.At("wrun_1", uint32(file.Version), uint64(file.Start)))
	}
	return file, endless(file, req)
}

// endless bounds a read of a session whose end nothing tells: below version 27 only its terminal event does.
func endless(file *fakeeve.TranscriptFile, req *evev1.SubscribeRequest) *evev1.SubscribeRequest {
	if file.Version < 27 {
		return rig.UntilTail(req)
	}
	return req
}

func checkEnd(t *testing.T, file *fakeeve.TranscriptFile, res rig.Result) {
	t.Helper()
	if res.Err != nil {
		t.Fatalf("status: %v", res.Err)
	}
	last := res.Last()
	if last.GetCheckpoint().GetReason() != evev1.CheckpointReason_CHECKPOINT_REASON_ENDED {
		t.Errorf("last message is %v, want ENDED", last)
	}
	if got := last.GetCursor().GetStreamIndex(); got != uint64(file.Expected.FinalCursor) {
		t.Errorf("final cursor %d, want %d", got, file.Expected.FinalCursor)
	}
}

// wantPlaces is what an independent reader finds in the file.
func wantPlaces(file *fakeeve.TranscriptFile) []place {
	var out []place
	for e := range fakeeve.Entries(file, file.Version, file.Start, -1) {
		if e.Kind == fakeeve.Unreadable {
			out = append(out, place{Line: uint64(e.Line), Raw: string(e.Raw)})
		}
		for _, rec := range e.Records {
			out = append(out, place{uint64(rec.Line), uint32(rec.Slot), validUTF8(rec.Raw)})
		}
	}
	return out
}
