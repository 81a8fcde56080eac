package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// TestMain is, in other processes, what the program under test starts: its roles, and the gateway.
func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); {
	case role != "":
		if err := play(context.Background(), role, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(os.Args) == 6 && os.Args[1] == "serve":
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		address, err := serveInside(ctx, os.Args[5])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Fprintf(os.Stderr, "{\"msg\":\"starting\"}\nnot JSON\n{\"msg\":\"listening\",\"address\":%q}\n", address)
		<-ctx.Done()
	default:
		// Under the race detector every process waits a second before it ends, in case there is a race yet to be told.
		if err := os.Setenv("GORACE", "atexit_sleep_ms=10"); err != nil {
			panic(err)
		}
		goleak.VerifyTestMain(m)
	}
}

// tiny are options for a measurement that is over at once, of the gateway in the test's own program.
func tiny(t *testing.T) options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return options{time: time.Hour, rounds: 1, scale: 0.002, lines: []int64{10, 200}, gateway: self, log: t.Output(), command: "go run ./bench -tiny"}
}

// TestMeasure runs everything once, with all its processes.
func TestMeasure(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := measure(t.Context(), tiny(t), &out); err != nil {
		t.Fatal(err)
	}
	tables := rows(out.String())
	if len(tables) != 2 || len(tables[0]) != 1+16 || len(tables[1]) != 1+4 {
		t.Fatalf("not the tables that were expected:\n%s", out.String())
	}
	for _, table := range tables {
		for _, row := range table[1:] {
			if runs := row[len(row)-1]; runs != "1" {
				t.Errorf("%s runs of %v", runs, row)
			}
			if slices.ContainsFunc(row[3:5], func(cell string) bool { return cell == nothing || cell == "0" }) {
				t.Errorf("bytes and records a second of %v", row)
			}
		}
	}
	for _, part := range []string{"`go run ./bench -tiny`", time.Now().UTC().Format("2006-"), "Linux", "Load average"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is missing in\n%s", part, out.String())
		}
	}
}

// rows are the tables of a Markdown text, heads included.
func rows(text string) (tables [][][]string) {
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		if !inside {
			tables, inside = append(tables, nil), true
		}
		if strings.Contains(line, "---") {
			continue
		}
		var row []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		tables[len(tables)-1] = append(tables[len(tables)-1], row)
	}
	return tables
}

// TestRun: what is counted is what there is to read, from the gateway and from the bare servers.
func TestRun(t *testing.T) {
	t.Parallel()
	o := tiny(t)
	m, err := newMeasurer(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	for _, f := range figures(o) {
		if f.payload != evev1.Payload_PAYLOAD_RAW {
			continue
		}
		want := int64(0)
		for range fakeeve.Records(fakeeve.Generated(f.session.Lines, f.session.Shape.generated(), f.session.Version), f.session.Version, 0, -1) {
			want++
		}
		switch {
		case f.server != viaGateway:
			want = f.records
		case f.growth:
			want *= max(1, (f.records+f.session.Lines-1)/f.session.Lines)
		}
		r, err := m.run(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if r.Records != want || r.Bytes < 100*want || r.Elapsed <= 0 || r.cpu < 0 || r.peak < 1<<20 {
			t.Errorf("%s, %v: %+v, want %d records", f.server, f.session, r, want)
		}
	}
}

// TestRunFails: a process that cannot do what it is told ends the measurement with what it says.
func TestRunFails(t *testing.T) {
	t.Parallel()
	m, err := newMeasurer(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	o := order{Address: m.bareAt.Address, Session: session{small, 27, 5}, ID: bareID(5)}
	if _, err := m.reader.do(o); err == nil || !strings.Contains(err.Error(), "no messages were loaded") {
		t.Errorf("reading from a bare server without messages: %v", err)
	}
	if _, err := m.bare.do(order{Address: "127.0.0.1:1", ID: "wrun_1"}); err == nil || !strings.Contains(err.Error(), "bare: reading wrun_1") {
		t.Errorf("loading messages from nowhere: %v", err)
	}
	m.program = "/nowhere"
	if _, err := m.run(t.Context(), figures(tiny(t))[0]); err == nil || !strings.Contains(err.Error(), "starting the gateway") {
		t.Errorf("without a gateway: %v", err)
	}
	m.program = "/bin/true"
	if _, err := m.run(t.Context(), figures(tiny(t))[0]); err == nil || !strings.Contains(err.Error(), "before it listened") {
		t.Errorf("with a gateway that ends: %v", err)
	}
	if _, _, err := startRole(t.Context(), "nobody", io.Discard); err == nil || !strings.Contains(err.Error(), "nobody does not answer") {
		t.Errorf("an unknown role: %v", err)
	}
}

// TestReadShort: a stream that ends before the session does is no reading.
func TestReadShort(t *testing.T) {
	t.Parallel()
	m, err := newMeasurer(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	gateway, address, err := startGateway(t.Context(), m.program, m.eveURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := gateway.stop(); err != nil {
			t.Error(err)
		}
	}()
	s := session{small, 27, 7}
	if _, err := m.eve.do(order{Session: s}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.reader.do(order{Address: address, Session: session{small, 27, 8}, ID: s.id()}); err == nil || !strings.Contains(err.Error(), "at line 7") {
		t.Errorf("seven lines for eight: %v", err)
	}
}

func TestProfile(t *testing.T) {
	t.Parallel()
	o := tiny(t)
	o.profile = filepath.Join(t.TempDir(), "profiles")
	var out bytes.Buffer
	if err := profile(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	tables := rows(out.String())
	if len(tables) != 1 || len(tables[0]) != 1+16 {
		t.Fatalf("not the table that was expected:\n%s", out.String())
	}
	for _, row := range tables[0][1:] {
		if row[4] == nothing || row[4] == "0.00" {
			t.Errorf("allocations of %v", row)
		}
		for _, suffix := range []string{cpuSuffix, allocsSuffix} {
			text, err := os.ReadFile(filepath.Join(o.profile, row[len(row)-1]+suffix))
			if err != nil || !bytes.HasPrefix(text, []byte{0x1f, 0x8b}) { // profiles are compressed
				t.Errorf("the profile of %v has %d bytes: %v", row, len(text), err)
			}
		}
	}
}

// TestEstimate: what there is no time for is left out, and said to be.
func TestEstimate(t *testing.T) {
	t.Parallel()
	o := options{scale: 1, lines: []int64{1_000, 200_000, 1_000_000}}
	all := figures(o)
	find := func(lines int64) *figure {
		for _, f := range all {
			if f.growth && f.session.Lines == lines && f.payload == payloads()[0] {
				return f
			}
		}
		t.Fatalf("no session of %d lines", lines)
		return nil
	}
	if got := estimate(all, find(1_000_000)); got != 0 {
		t.Errorf("knows without having seen anything: %v", got)
	}
	find(1_000).runs = []run{{took: time.Second}} // read many times: tells nothing
	if got := estimate(all, find(1_000_000)); got != 0 {
		t.Errorf("knows from short sessions: %v", got)
	}
	find(200_000).runs = []run{{took: time.Hour}, {took: 3 * time.Second}}
	if got := estimate(all, find(1_000_000)); got != 15*time.Second {
		t.Errorf("estimates %v", got)
	}
	if got := estimate(all, find(200_000)); got != 3*time.Second {
		t.Errorf("estimates %v for what it has seen", got)
	}
	text := (&report{figures: all}).String()
	if want := "| 1,000,000 | raw | – | – | – | – | – | – | 0 |"; !strings.Contains(text, want) {
		t.Errorf("no row %q in\n%s", want, text)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	f := &figure{}
	if got := f.median(run.perCore); !math.IsNaN(got) {
		t.Errorf("of nothing %v", got)
	}
	for i, want := range []float64{5, 4, 3, 3.5, 3} {
		f.runs = append(f.runs, run{peak: []int64{5e6, 3e6, 2e6, 4e6, 1e6}[i]})
		if got := f.median(run.peakMB); got != want {
			t.Errorf("of %d: %v, want %v", i+1, got, want)
		}
	}
	r := run{reading: reading{Records: 1000, Bytes: 5000, Elapsed: 2 * time.Second}, cpu: time.Second}
	for i, got := range []float64{r.cpuPerRecord(), r.perCore(), r.perSecond(), r.cores(), r.bytesPerRecord()} {
		if want := []float64{1000, 1000, 500, 0.5, 5}[i]; got != want {
			t.Errorf("figure %d is %v, want %v", i, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		count(0): "0", count(999): "999", count(1000): "1,000", count(1234567.4): "1,234,567", count(math.NaN()): nothing, count(math.Inf(1)): nothing,
		decimal(1.005): "1.00", decimal(12.345): "12.35", decimal(math.NaN()): nothing, percent(0.875): "88 %", percent(math.Inf(1)): nothing,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestProc(t *testing.T) {
	t.Parallel()
	const stat = "42 (a name) with) 1 2) S 1 42 42 0 -1 4194560 900 0 0 0 250 75 1 2 20 0 9 0 12345 1000 200"
	if got, err := cpuTime(stat); err != nil || got != 3250*time.Millisecond {
		t.Errorf("CPU time %v, %v", got, err)
	}
	for _, bad := range []string{"", "42 (x) S 1 2", strings.Replace(stat, "250", "x", 1)} {
		if got, err := cpuTime(bad); err == nil {
			t.Errorf("CPU time %v of %q", got, bad)
		}
	}
	if got, err := peakRSS("Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t   12 kB\nVmRSS:\t 7 kB\n"); err != nil || got != 12<<10 {
		t.Errorf("peak %v, %v", got, err)
	}
	for _, bad := range []string{"", "VmRSS:\t7 kB\n", "VmHWM:\tmuch\n"} {
		if got, err := peakRSS(bad); err == nil {
			t.Errorf("peak %v of %q", got, bad)
		}
	}
}

func TestItemOf(t *testing.T) {
	t.Parallel()
	at := &evev1.Cursor{SessionId: "s", StreamIndex: 3}
	for want, m := range map[int32]*evev1.SubscribeResponse{
		2:               {Cursor: at, Item: &evev1.SubscribeResponse_Fact{Fact: &evev1.Fact{}}},
		3:               {Item: &evev1.SubscribeResponse_Progress{Progress: &evev1.Progress{Type: "x"}}},
		checkpointField: {Cursor: at, Item: &evev1.SubscribeResponse_Checkpoint{Checkpoint: &evev1.Checkpoint{}}},
	} {
		text, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := itemOf(text); err != nil || int32(got) != want {
			t.Errorf("%v: field %d, %v", m, got, err)
		}
	}
	for _, bad := range [][]byte{nil, {0x0a}, {0x0a, 5, 1}, {0xff}, {0x0a, 0}} {
		if got, err := itemOf(bad); err == nil {
			t.Errorf("field %d of %x", got, bad)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-time", "3m", "-lines", "5,10"}, io.Discard)
	if err != nil || o.time != 3*time.Minute || !slices.Equal(o.lines, []int64{5, 10}) || o.command != "go run ./bench -time 3m -lines 5,10" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range [][]string{{"x"}, {"-time", "0s"}, {"-rounds", "-1"}, {"-scale", "0"}, {"-lines", ""}, {"-lines", "1,-2"}, {"-what"}} {
		if _, err := parse(bad, io.Discard); err == nil {
			t.Errorf("takes %v", bad)
		}
	}
}
