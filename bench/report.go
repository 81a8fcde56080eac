package main

import (
	"debug/buildinfo"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"time"
)

// report is what was measured, in Markdown.
type report struct {
	figures []*figure
	machine machine
	command string
	load    [2]string
	at      time.Time
	took    time.Duration
}

// The targets of the budgets that these figures are the first of, in records a second and core.
const (
	targetRaw   = 250_000
	targetTyped = 120_000
)

func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What the gateway costs\n\n%s\n\n", r.machine)
	fmt.Fprintf(&b, "`%s`, %s, in %v. Load average %s before, %s after. Whatever else runs on the machine makes the figures worse, "+
		"those of CPU time, too.\n\n", r.command, r.at.UTC().Format("2006-01-02 15:04 MST"), r.took.Round(time.Second), r.load[0], r.load[1])
	r.shapes(&b)
	r.growth(&b)
	return b.String()
}

func (r *report) shapes(b *strings.Builder) {
	fmt.Fprintf(b, "## Eve to one subscriber\n\nBudgets, per core: raw %s records/s and no slower than the bare server; raw + typed %s.\n\n",
		count(targetRaw), count(targetTyped))
	t := table{b: b}
	t.row("session", "version", "payload", "B/record", "records/s", "gateway cores", "gateway µs/record", "**records/s per core**",
		"bare server", "of it", "encoded beforehand", "peak RSS MB", "runs")
	for _, f := range r.figures {
		if f.server != viaGateway || f.growth {
			continue
		}
		bare, encoded := math.NaN(), math.NaN()
		if f.session.Version == 27 {
			bare = r.find(viaBare, f).median(run.perCore)
			encoded = r.find(viaEncoded, f).median(run.perCore)
		}
		t.row(string(f.session.Shape), fmt.Sprint(f.session.Version), payloadName(f.payload),
			count(f.median(run.bytesPerRecord)), count(f.median(run.perSecond)), decimal(f.median(run.cores)),
			decimal(f.median(run.cpuPerRecord)), count(f.median(run.perCore)), count(bare),
			percent(f.median(run.perCore)/bare), count(encoded), count(f.median(run.peakMB)), fmt.Sprint(len(f.runs)))
	}
	b.WriteString("\nB/record is the message, gRPC's own bytes not counted. records/s is of all processes together on this machine; " +
		"where the gateway used less than the cores it could have, the fake Eve or the reader was what kept it waiting. " +
		"The bare server is grpc-go with the same messages and the default codec; encoded beforehand is what is left without encoding.\n\n")
}

// find is the figure of another server that belongs to one of the gateway.
func (r *report) find(via server, of *figure) *figure {
	for _, f := range r.figures {
		if f.server == via && f.session.Shape == of.session.Shape && f.payload == of.payload {
			return f
		}
	}
	return &figure{}
}

func (r *report) growth(b *strings.Builder) {
	b.WriteString("## Growth with the length of the session\n\nBudget: flat per record, and constant memory. " +
		"Sessions are `mixed`, of version 27; short ones are read several times.\n\n")
	t := table{b: b}
	t.row("lines", "payload", "records read", "B/record", "records/s", "gateway µs/record", "**records/s per core**", "peak RSS MB", "runs")
	for _, p := range payloads() {
		for _, f := range r.figures {
			if !f.growth || f.payload != p {
				continue
			}
			t.row(count(float64(f.session.Lines)), payloadName(p), count(f.median(func(r run) float64 { return float64(r.Records) })),
				count(f.median(run.bytesPerRecord)), count(f.median(run.perSecond)), decimal(f.median(run.cpuPerRecord)),
				count(f.median(run.perCore)), count(f.median(run.peakMB)), fmt.Sprint(len(f.runs)))
		}
	}
	b.WriteString("\nA row without figures did not fit into the time: `-time` gives more.\n")
}

// table writes the rows of a Markdown table; the first is its head. Numbers stand at the right.
type table struct {
	b    *strings.Builder
	head bool
}

func (t *table) row(cells ...string) {
	fmt.Fprintf(t.b, "| %s |\n", strings.Join(cells, " | "))
	if t.head {
		return
	}
	t.head = true
	t.b.WriteString("|" + strings.Repeat(" ---: |", len(cells)) + "\n")
}

const nothing = "–"

// count is a whole number, in groups of three.
func count(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nothing
	}
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func decimal(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nothing
	}
	return fmt.Sprintf("%.2f", x)
}

func percent(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nothing
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

// machine is where the figures come from.
type machine struct {
	cpu     string
	cores   int
	kernel  string
	gateway string // versions of what was built
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores, Linux %s. Gateway: %s.", m.cpu, m.cores, m.kernel, m.gateway)
}

// thisMachine describes this machine and the program that was measured.
func thisMachine(program string) machine {
	m := machine{cpu: "an unknown processor", cores: runtime.NumCPU(), kernel: firstLine("/proc/sys/kernel/osrelease"), gateway: "of unknown build"}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return m
	}
	versions := []string{info.GoVersion}
	for _, d := range info.Deps {
		switch d.Path {
		case "google.golang.org/grpc", "google.golang.org/protobuf", "github.com/go-json-experiment/json":
			versions = append(versions, d.Path[strings.LastIndexByte(d.Path, '/')+1:]+" "+d.Version)
		}
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			versions = append(versions, "revision "+s.Value[:min(12, len(s.Value))])
		case s.Key == "vcs.modified" && s.Value == "true":
			versions = append(versions, "with changes")
		}
	}
	m.gateway = strings.Join(versions, ", ")
	return m
}

// loadAverage is how busy the machine was in the last minute.
func loadAverage() string {
	load, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	return load
}

func firstLine(path string) string {
	text, err := os.ReadFile(path) //nolint:gosec // of /proc
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}
