package fakeeve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// TestGenerated27 checks generated sessions of every length up to two turns, and a long one, against the lifecycle
// rules of contract 3.15.
func TestGenerated27(t *testing.T) {
	for shape := fakeeve.SmallDeltas; shape <= fakeeve.Mixed; shape++ {
		lengths := []int64{2_000}
		for n := range int64(70) {
			lengths = append(lengths, n)
		}
		if shape == fakeeve.LargeResults {
			lengths = []int64{0, 1, 2, 3, 4, 10, 32, 33, 34, 35, 36, 70}
		}
		for _, n := range lengths {
			log := fakeeve.Generated(n, shape, 27)
			if log.Len() != n {
				t.Fatalf("shape %d: %d lines, want %d", shape, log.Len(), n)
			}
			l := newLifecycle()
			for r := range fakeeve.Records(log, 27, 0, -1) {
				l.record(r)
			}
			if n > 0 && !l.done {
				l.fail("the session has not ended")
			}
			if l.err != "" {
				t.Errorf("shape %d of %d lines: %s", shape, n, l.err)
			}
			for e := range fakeeve.Entries(log, 27, 0, -1) {
				if e.Kind != fakeeve.Commit && e.Kind != fakeeve.Progress || e.Kind == fakeeve.Commit && len(e.Records) == 0 {
					t.Fatalf("shape %d of %d lines: %v", shape, n, e)
				}
			}
		}
	}
}

// lifecycle checks the rules of contract 3.15 as far as generated sessions touch them.
type lifecycle struct {
	err     string
	started bool
	done    bool
	// by family and id: introduced and not yet ended, or ended.
	open, ended map[string]bool
	parts       map[string]string // text of deltas by part
}

func newLifecycle() *lifecycle {
	return &lifecycle{open: map[string]bool{}, ended: map[string]bool{}, parts: map[string]string{}}
}

func (l *lifecycle) fail(format string, args ...any) {
	if l.err == "" {
		l.err = fmt.Sprintf(format, args...)
	}
}

func (l *lifecycle) introduce(id string) {
	if l.open[id] || l.ended[id] {
		l.fail("%s introduced twice", id)
	}
	l.open[id] = true
}

func (l *lifecycle) needs(id string) {
	if !l.open[id] {
		l.fail("%s is not open", id)
	}
}

func (l *lifecycle) end(id string) {
	l.needs(id)
	delete(l.open, id)
	l.ended[id] = true
}

// none fails when something of a family is open.
func (l *lifecycle) none(family, when string) {
	for id := range l.open {
		if strings.HasPrefix(id, family) {
			l.fail("%s is open %s", id, when)
		}
	}
}

func (l *lifecycle) record(r fakeeve.Record) {
	var record struct {
		Type  string `json:"type"`
		Scope struct {
			TurnID string `json:"turnId"`
			RunID  string `json:"runId"`
		} `json:"scope"`
		Data struct {
			DeliveryID string `json:"deliveryId"`
			TurnID     string `json:"turnId"`
			RunID      string `json:"runId"`
			CallID     string `json:"callId"`
			PartID     string `json:"partId"`
			Kind       string `json:"kind"`
			Delta      string `json:"delta"`
			Value      string `json:"value"`
			Outcome    string `json:"outcome"`
			Cause      *struct {
				DeliveryID string `json:"deliveryId"`
			} `json:"cause"`
			Follows *string  `json:"follows"`
			Reply   []string `json:"reply"`
		} `json:"data"`
	}
	if err := json.Unmarshal(r.Raw, &record); err != nil {
		l.fail("line %d: %v", r.Line, err)
		return
	}
	if l.done {
		l.fail("line %d: %s after the end", r.Line, r.Type)
	}
	if !l.started && r.Type != "session.started" {
		l.fail("begins with %s", r.Type)
	}
	d := record.Data
	switch r.Type {
	case "session.started":
		l.started = true
	case "session.ended":
		l.done = true
		l.none("", "at the end")
	case "delivery.admitted":
		l.introduce("delivery " + d.DeliveryID)
	case "delivery.consumed":
		l.needs("delivery " + d.DeliveryID)
		l.needs("turn " + d.TurnID)
	case "delivery.settled":
		l.end("delivery " + d.DeliveryID)
	case "turn.started":
		l.none("turn", "when a turn starts")
		l.introduce("turn " + d.TurnID)
		l.needs("delivery " + d.Cause.DeliveryID)
		if d.Follows != nil && !l.ended["turn "+*d.Follows] {
			l.fail("line %d follows %s", r.Line, *d.Follows)
		}
	case "turn.settled":
		l.none("run", "when its turn settles")
		l.end("turn " + d.TurnID)
		for _, part := range d.Reply {
			if !l.ended["part "+part] {
				l.fail("line %d: the reply names %s", r.Line, part)
			}
		}
	case "model.requested":
		l.introduce("run " + d.RunID)
		l.needs("turn " + record.Scope.TurnID)
	case "model.started":
		l.needs("run " + d.RunID)
	case "model.settled":
		l.none("call", "when its run settles")
		l.end("run " + d.RunID)
	case "call.requested":
		l.needs("run " + record.Scope.RunID)
		l.introduce("call " + d.CallID)
	case "call.started":
		l.needs("call " + d.CallID)
	case "call.settled":
		l.end("call " + d.CallID)
	case "content.delta":
		l.needs("run " + record.Scope.RunID)
		if _, announced := l.parts[d.PartID]; announced == (d.Kind != "") {
			l.fail("line %d: part %s announced as %q", r.Line, d.PartID, d.Kind)
		}
		if l.ended["part "+d.PartID] {
			l.fail("line %d: part %s goes on", r.Line, d.PartID)
		}
		l.parts[d.PartID] += d.Delta
	case "content.completed":
		l.needs("run " + d.RunID)
		l.introduce("part " + d.PartID)
		l.end("part " + d.PartID)
		if d.Value != l.parts[d.PartID] {
			l.fail("line %d: part %s is %q, its deltas %q", r.Line, d.PartID, d.Value, l.parts[d.PartID])
		}
	case "usage.recorded":
	default:
		l.fail("line %d: type %q", r.Line, r.Type)
	}
}

// TestGenerated26: sessions of the older versions hold one event a line, with ids of their own, cumulative text below
// 25 and only there, and a terminal event in the end alone.
func TestGenerated26(t *testing.T) {
	for version := 21; version <= 26; version++ {
		for shape := fakeeve.SmallDeltas; shape <= fakeeve.Mixed; shape++ {
			const n = 200
			seen := map[string]bool{}
			message, requested := "", ""
			for e := range fakeeve.Entries(fakeeve.Generated(n, shape, version), version, 0, -1) {
				if e.Kind != fakeeve.Event {
					t.Fatalf("version %d shape %d: %v", version, shape, e)
				}
				var event struct {
					Type string `json:"type"`
					Data struct {
						MessageDelta string  `json:"messageDelta"`
						MessageSoFar *string `json:"messageSoFar"`
						Message      string  `json:"message"`
						Actions      []struct {
							CallID string `json:"callId"`
						} `json:"actions"`
						Result struct {
							CallID string `json:"callId"`
						} `json:"result"`
					} `json:"data"`
					Meta struct {
						ID string `json:"id"`
					} `json:"meta"`
				}
				if err := json.Unmarshal(e.Raw, &event); err != nil {
					t.Fatalf("%v: %v", e, err)
				}
				if seen[event.Meta.ID] || event.Meta.ID == "" {
					t.Fatalf("%v: id %q again", e, event.Meta.ID)
				}
				seen[event.Meta.ID] = true
				if (event.Type == "session.completed") != (e.Line == n-1) || (event.Type == "session.started") != (e.Line == 0) {
					t.Errorf("version %d: %v", version, e)
				}
				switch event.Type {
				case "step.started":
					message = ""
				case "message.appended":
					message += event.Data.MessageDelta
					if (event.Data.MessageSoFar != nil) != (version < 25) || version < 25 && *event.Data.MessageSoFar != message {
						t.Errorf("version %d: %v does not follow %q", version, e, message)
					}
				case "message.completed":
					if event.Data.Message != message {
						t.Errorf("version %d: %v, its deltas %q", version, e, message)
					}
				case "actions.requested":
					requested = event.Data.Actions[0].CallID
				case "action.result":
					if event.Data.Result.CallID != requested {
						t.Errorf("version %d: %v, requested was %q", version, e, requested)
					}
				}
			}
		}
	}
}

// TestGeneratedSizes: the middle lines are as large as the shapes say, and every line is the same each time.
func TestGeneratedSizes(t *testing.T) {
	for _, tt := range []struct {
		shape    fakeeve.Shape
		version  int
		min, max int // of the mean line
	}{
		{fakeeve.SmallDeltas, 27, 150, 400},
		{fakeeve.SmallDeltas, 26, 150, 400},
		{fakeeve.Commits, 27, 900, 1300},
		{fakeeve.Commits, 26, 400, 900},
		{fakeeve.LargeResults, 27, 50 << 10, 70 << 10},
		{fakeeve.LargeResults, 26, 20 << 10, 40 << 10},
		{fakeeve.Mixed, 27, 300, 900},
		{fakeeve.Mixed, 26, 250, 900},
	} {
		a, b := fakeeve.Generated(1000, tt.shape, tt.version), fakeeve.Generated(1000, tt.shape, tt.version)
		total := 0
		for i := range a.Len() {
			line := a.Line(i)
			if !bytes.Equal(line, b.Line(i)) {
				t.Fatalf("line %d differs", i)
			}
			total += len(line)
		}
		if mean := total / 1000; mean < tt.min || mean > tt.max {
			t.Errorf("shape %d in version %d: %d bytes a line", tt.shape, tt.version, mean)
		}
	}
}

// TestGeneratedFar: a line of a session of billions of lines costs what a line costs.
func TestGeneratedFar(t *testing.T) {
	log := fakeeve.Generated(1<<40, fakeeve.Mixed, 27)
	var last fakeeve.Entry
	for e := range fakeeve.Entries(log, 27, 1<<40-3, -1) {
		last = e
	}
	if last.Line != 1<<40-1 || last.Records[len(last.Records)-1].Type != "session.ended" {
		t.Errorf("the last line: %v", last)
	}
}

// TestGeneratedMisuse: shapes and versions that are none.
func TestGeneratedMisuse(t *testing.T) {
	for _, f := range []func(){
		func() { fakeeve.Generated(1, fakeeve.Mixed+1, 27) },
		func() { fakeeve.Generated(1, fakeeve.Mixed, 20) },
		func() { fakeeve.Generated(1, fakeeve.Mixed, 28) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		}()
	}
}

func BenchmarkGenerated(b *testing.B) {
	for shape := fakeeve.SmallDeltas; shape <= fakeeve.Mixed; shape++ {
		for _, version := range []int{24, 26, 27} {
			b.Run(fmt.Sprintf("shape=%d/version=%d", shape, version), func(b *testing.B) {
				log := fakeeve.Generated(1<<40, shape, version)
				total := int64(0)
				for i := range int64(b.N) {
					total += int64(len(log.Line(i)))
				}
				b.SetBytes(total / int64(b.N))
			})
		}
	}
}
