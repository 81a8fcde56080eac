package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// server is what sends the records of a measurement.
type server string

// The servers: the gateway, and bare ones with the default codec and with messages that are encoded beforehand.
const (
	viaGateway server = "gateway"
	viaBare    server = "bare"
	viaEncoded server = "bare, encoded beforehand"
)

// figure is one thing that is measured, and what it was each time.
type figure struct {
	server  server
	session session
	payload evev1.Payload
	// growth: it belongs to the table of growth.
	growth bool
	// records is how many to read at least; a session that has fewer is read several times.
	records int64
	runs    []run
}

// run is one measurement.
type run struct {
	reading
	cpu  time.Duration
	peak int64
	took time.Duration // with all that surrounds it
}

func (r run) cpuPerRecord() float64 { return float64(r.cpu.Nanoseconds()) / 1e3 / float64(r.Records) }
func (r run) perCore() float64      { return 1e6 / r.cpuPerRecord() }
func (r run) perSecond() float64    { return float64(r.Records) / r.Elapsed.Seconds() }
func (r run) cores() float64        { return r.cpu.Seconds() / r.Elapsed.Seconds() }
func (r run) bytesPerRecord() float64 {
	return float64(r.Bytes) / float64(r.Records)
}
func (r run) peakMB() float64 { return float64(r.peak) / 1e6 }

// median is the median of something over all runs; NaN when there are none.
func (f *figure) median(of func(run) float64) float64 {
	if len(f.runs) == 0 {
		return math.NaN()
	}
	var all []float64
	for _, r := range f.runs {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// recordsOf is how many records of a shape make a measurement long enough for a clock that ticks every 10 ms, and no
// longer than they must.
func recordsOf(s shape, scale float64) int64 {
	n := 60_000.0
	if s == large {
		n = 4_000
	}
	return max(1, int64(n*scale))
}

// figures are all that is measured, in the order of a round: the longest last.
func figures(o options) (all []*figure) {
	for _, p := range payloads() {
		for _, s := range shapes() {
			records := recordsOf(s, o.scale)
			lines := records
			for _, version := range []int{26, 27} {
				// The lines of a generated session have one record each, those of typical at version 27 three.
				if s == typical && version == 27 {
					lines = max(1, records/3)
				}
				all = append(all, &figure{server: viaGateway, session: session{s, version, lines}, payload: p})
			}
			for _, via := range []server{viaBare, viaEncoded} { // faster, so more of them
				all = append(all, &figure{server: via, session: session{s, 27, min(lines, 1000)}, payload: p, records: 4 * records})
			}
		}
	}
	for _, lines := range o.lines {
		for _, p := range payloads() {
			all = append(all, &figure{server: viaGateway, growth: true, session: session{mixed, 27, lines}, payload: p, records: recordsOf(mixed, 2*o.scale)})
		}
	}
	return all
}

// measure measures everything for as long as there is time, and prints the tables.
func measure(ctx context.Context, o options, stdout io.Writer) error {
	m, err := newMeasurer(ctx, o)
	if err != nil {
		return err
	}
	defer m.close()
	began := time.Now() // building the gateway may take long, once
	all := figures(o)
	before := loadAverage()
	for round := range o.rounds {
		for i, f := range all {
			if time.Since(began)+estimate(all, f) >= o.time {
				continue
			}
			fmt.Fprintf(o.log, "bench: round %d, %d of %d: %s, %s, %s\n", round+1, i+1, len(all), f.server, f.session.id(), payloadName(f.payload))
			r, err := m.run(ctx, f)
			if err != nil {
				return err
			}
			f.runs = append(f.runs, r)
		}
	}
	r := report{figures: all, machine: thisMachine(m.program), command: o.command, load: [2]string{before, loadAverage()}, at: began, took: time.Since(began)}
	_, err = io.WriteString(stdout, r.String())
	return err
}

// estimate is how long a run will take: as long as the last, or else as one of the same kind that is shorter, for each
// of its lines. Without either there is no telling, and it is tried.
func estimate(all []*figure, f *figure) time.Duration {
	if n := len(f.runs); n > 0 {
		return f.runs[n-1].took
	}
	like := slices.MaxFunc(all, func(a, b *figure) int { return cmp.Compare(likeness(a, f), likeness(b, f)) })
	if likeness(like, f) == 0 {
		return 0
	}
	last := like.runs[len(like.runs)-1]
	return time.Duration(float64(last.took) * float64(f.session.Lines) / float64(like.session.Lines))
}

// likeness is how well the runs of one figure tell how long those of another will take, 0 if not at all.
func likeness(a, b *figure) int64 {
	if len(a.runs) == 0 || a.server != b.server || a.session.Shape != b.session.Shape ||
		a.session.Version != b.session.Version || a.payload != b.payload || a.session.Lines < a.records || b.session.Lines < b.records {
		return 0
	}
	return a.session.Lines
}

// measurer has the processes that serve every measurement; a gateway it starts anew for each.
type measurer struct {
	program   string
	directory string // temporary
	eve       *child
	eveURL    string
	reader    *child
	bare      *child
	bareAt    answer
}

func newMeasurer(ctx context.Context, o options) (m *measurer, err error) {
	m = &measurer{program: o.gateway}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	if m.program == "" && o.profile == "" {
		if m.directory, err = os.MkdirTemp("", "bench"); err != nil {
			return nil, err
		}
		if m.program, err = buildGateway(ctx, m.directory, o.log); err != nil {
			return nil, err
		}
	}
	var ready answer
	if m.eve, ready, err = startRole(ctx, roleEve, o.log); err != nil {
		return nil, err
	}
	m.eveURL = ready.Address
	if m.reader, _, err = startRole(ctx, roleRead, o.log); err != nil {
		return nil, err
	}
	if m.bare, m.bareAt, err = startRole(ctx, roleBare, o.log); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *measurer) close() {
	for _, c := range []*child{m.bare, m.reader, m.eve} {
		if c != nil {
			_ = c.stop()
		}
	}
	if m.directory != "" {
		_ = os.RemoveAll(m.directory) //nolint:gosec // made by os.MkdirTemp
	}
}

// run measures once.
func (m *measurer) run(ctx context.Context, f *figure) (r run, err error) {
	began := time.Now()
	if _, err := m.eve.do(order{Session: f.session}); err != nil {
		return r, err
	}
	gateway, address, err := startGateway(ctx, m.program, m.eveURL)
	if err != nil {
		return r, err
	}
	stopped := false
	defer func() {
		if !stopped {
			_ = gateway.stop()
		}
	}()
	measured, o := gateway, order{Address: address, Session: f.session, ID: f.session.id(), Payload: int32(f.payload)}
	if f.server == viaGateway {
		// Once over a session of its own kind, so that what is paid once is not measured.
		warm := f.session
		warm.Lines = min(warm.Lines, 100)
		if err := m.read(order{Address: address, Session: warm, ID: warm.id(), Payload: o.Payload}); err != nil {
			return r, err
		}
		o.Reads = max(1, int((f.records+f.session.Lines-1)/f.session.Lines))
	} else {
		if _, err := m.bare.do(o); err != nil {
			return r, err
		}
		stopped = true
		if err := gateway.stop(); err != nil {
			return r, err
		}
		measured, o.ID, o.Address = m.bare, bareID(f.records), m.bareAt.Address
		if f.server == viaEncoded {
			o.Address = m.bareAt.Encoded
		}
	}
	cpu, _, err := measured.used()
	if err != nil {
		return r, err
	}
	a, err := m.reader.do(o)
	if err != nil {
		return r, err
	}
	after, peak, err := measured.used()
	if err != nil {
		return r, err
	}
	return run{reading: a.reading, cpu: after - cpu, peak: peak, took: time.Since(began)}, nil
}

// read adds a session and reads it once.
func (m *measurer) read(o order) error {
	if _, err := m.eve.do(order{Session: o.Session}); err != nil {
		return err
	}
	_, err := m.reader.do(o)
	return err
}
