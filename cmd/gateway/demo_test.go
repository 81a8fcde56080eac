package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/evegateway/evegateway/cursor/follow"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// read reads what a request asks for to its end, without checkpoints.
func read(t *testing.T, client evev1.StreamServiceClient, req *evev1.SubscribeRequest) []*evev1.SubscribeResponse {
	t.Helper()
	var records []*evev1.SubscribeResponse
	for m, err := range follow.New(client, req).Messages(t.Context()) {
		if err != nil {
			t.Fatalf("%v: %v", req, err)
		}
		if m.GetCheckpoint() == nil {
			records = append(records, m)
		}
	}
	return records
}

// TestDemo does what the demo says can be done.
func TestDemo(t *testing.T) {
	t.Parallel()
	p := start(t, "demo", "--pace", "1ms")
	address := p.address(t)
	client := evev1.NewStreamServiceClient(connect(t, address))
	text := p.stdout.String() // all that is said before the gateway is ready

	if !strings.Contains(text, "  grpcurl -plaintext "+address+" describe eve.v1.StreamService\n") {
		t.Error("no command to describe the service")
	}
	commands := regexp.MustCompile(`(?m)^  grpcurl -plaintext -d '([^']*)' (\S+) eve\.v1\.StreamService/Subscribe$`).FindAllStringSubmatch(text, -1)
	if len(commands) != 2 {
		t.Fatalf("%d commands to subscribe, want 2", len(commands))
	}
	var answers [][]*evev1.SubscribeResponse
	for _, c := range commands {
		var req evev1.SubscribeRequest
		if err := protojson.Unmarshal([]byte(c[1]), &req); err != nil || c[2] != address {
			t.Fatalf("%s to %s: %v", c[1], c[2], err)
		}
		answers = append(answers, read(t, client, &req))
	}
	whole, rest := answers[0], answers[1]
	if len(rest) == 0 || len(rest) >= len(whole) || rest[0].GetFact().GetSource().GetRecordIndex() == 0 {
		t.Errorf("%d records, and %d resumed; the first should be inside a line: %v", len(whole), len(rest), rest)
	} else if diff := cmp.Diff(whole[len(whole)-len(rest):], rest, protocmp.Transform()); diff != "" {
		t.Errorf("what was resumed is not the rest (-want +got):\n%s", diff)
	}

	_, list, ok := strings.Cut(text, "\nRecorded sessions: ")
	list, _, whole2 := strings.Cut(list, ".\n")
	if !ok || !whole2 {
		t.Fatal("no list of recorded sessions")
	}
	slots := map[string]int{}
	last := ""
	for _, name := range fakeeve.TranscriptNames() {
		file, err := fakeeve.Transcript(name)
		if err != nil {
			t.Fatal(err)
		}
		if id := strings.TrimSuffix(name, ".ndjson"); strings.Contains(list, id) {
			last = id
		}
		slots[last] += file.Expected.Slots + file.Expected.Invalid
	}
	ids := strings.Split(list, ", ")
	if len(ids) != len(slots) {
		t.Errorf("%d sessions, want %d", len(ids), len(slots))
	}
	tail := &evev1.Until{Bound: &evev1.Until_Tail_{Tail: &evev1.Until_Tail{}}}
	for _, id := range ids {
		if got := len(read(t, client, &evev1.SubscribeRequest{SessionId: id, Until: tail})); got != slots[id] {
			t.Errorf("%s has %d records, want %d", id, got, slots[id])
		}
	}

	for _, want := range []string{` "When is high water at Gull Point tomorrow?"`, " turn.settled         turn_2 completed"} {
		p.stdout.contains(t, p.exited, want)
	}
	p.end()
	if code := p.wait(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// TestDemoCut ends the demo twice.
func TestDemoCut(t *testing.T) {
	t.Parallel()
	p := start(t, "demo")
	p.address(t)
	p.cut()
	p.end()
	p.wait(t)
}

// TestDemoScript: the live session is one that an agent could have written: every line readable, every type known,
// every entity introduced once, before it is referred to, and ended once.
func TestDemoScript(t *testing.T) {
	t.Parallel()
	log := fakeeve.NewMemLog()
	began := time.Date(2026, 11, 18, 9, 0, 0, 0, time.UTC)
	const turns = 7
	for n := range turns * demoSteps {
		if line := demoStep(n, began.Add(time.Duration(n)*time.Second)); line != "" {
			log.Append(line)
		}
	}
	counts := map[string]int{}
	open, known := map[string]bool{}, map[string]bool{}
	for e := range fakeeve.Entries(log, 27, 0, -1) {
		if e.Kind != fakeeve.Commit && e.Kind != fakeeve.Progress {
			t.Errorf("line %d is %v: %s", e.Line, e.Kind, e.Raw)
		}
		for _, r := range e.Records {
			counts[r.Type]++
			family, verb, _ := strings.Cut(r.Type, ".")
			name := family
			if family == "model" {
				name = "run"
			}
			key := family
			if id := regexp.MustCompile(`"data":{.*"` + name + `Id":"([a-z]+_\d+)"`).FindStringSubmatch(string(r.Raw)); id != nil {
				key += " " + id[1]
			}
			switch verb {
			case "started", "admitted", "requested":
				if family == "model" && verb == "started" || family == "call" && verb == "started" {
					break
				}
				if known[key] {
					t.Errorf("line %d: %s is introduced twice", e.Line, key)
				}
				known[key], open[key] = true, true
			case "settled":
				if !open[key] {
					t.Errorf("line %d: %s ends and is not open", e.Line, key)
				}
				delete(open, key)
			}
		}
	}
	want := map[string]int{
		"session.started": 1, "delivery.admitted": turns, "turn.started": turns, "delivery.consumed": turns,
		"model.requested": 2 * turns, "model.started": 2 * turns, "call.input": 2 * turns, "call.requested": turns,
		"usage.recorded": 2 * turns, "model.settled": 2 * turns, "call.started": turns, "call.progress": turns,
		"call.settled": turns, "content.delta": 5 * turns, "content.completed": turns, "turn.settled": turns,
		"delivery.settled": turns,
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	delete(open, "session")
	if len(open) > 0 {
		t.Errorf("left open: %v", open)
	}
}

func TestDemoPiece(t *testing.T) {
	t.Parallel()
	for _, turn := range demoTurns() {
		var pieces []string
		for i := range 5 {
			pieces = append(pieces, demoPiece(turn.answer, i, 5))
		}
		if strings.Join(pieces, "") != turn.answer {
			t.Errorf("%q in pieces: %q", turn.answer, pieces)
		}
		for _, p := range pieces {
			if p == "" {
				t.Errorf("%q has an empty piece: %q", turn.answer, pieces)
			}
		}
	}
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`{"a":1}`: `'{"a":1}'`, "it's": `'it'\''s'`} {
		if got := quoted(text); got != want {
			t.Errorf("quoted(%q) = %s, want %s", text, got, want)
		}
	}
}
