package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"

	"github.com/evegateway/evegateway/gateway"
)

// allocations are what a process has allocated so far.
type allocations struct {
	Mallocs, Allocated uint64
	Collections        uint32
}

// newInside is the gateway in a process that can look inside itself: the same code as `gateway serve`, under the
// profiler. An order with an address starts it in front of an Eve; each says whether to go on profiling, and where to.
func newInside() player {
	var profiling *os.File
	var name string
	return func(ctx context.Context, o order) (a answer, err error) {
		if o.Address != "" {
			if a.Address, err = serveInside(ctx, o.Address); err != nil {
				return a, err
			}
		}
		if profiling != nil {
			pprof.StopCPUProfile()
			if err := errors.Join(profiling.Close(), writeAllocations(name+allocsSuffix)); err != nil {
				return a, err
			}
			profiling = nil
		}
		if name = o.Profile; name != "" {
			if profiling, err = os.Create(name + cpuSuffix); err != nil { //nolint:gosec // where the caller wants it
				return a, err
			}
			if err := pprof.StartCPUProfile(profiling); err != nil {
				return a, err
			}
		}
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		a.allocations = allocations{Mallocs: stats.Mallocs, Allocated: stats.TotalAlloc, Collections: stats.NumGC}
		return a, nil
	}
}

// What is behind the name of a profile.
const (
	cpuSuffix    = ".cpu.pprof"
	allocsSuffix = ".allocs.pprof"
)

// writeAllocations writes what the process has allocated since it began.
func writeAllocations(path string) error {
	f, err := os.Create(path) //nolint:gosec // where the caller wants it
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}

// serveInside serves a gateway until the process ends.
func serveInside(ctx context.Context, eve string) (string, error) {
	srv, err := gateway.New(gateway.Config{Agents: []gateway.Agent{{Name: "default", URL: eve}}})
	if err != nil {
		return "", err
	}
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = srv.Serve(lis) }()
	return lis.Addr().String(), nil
}

// profiledReads is how often a session is read for a profile: CPU time is sampled a hundred times a second.
const profiledReads = 10

// profile writes profiles for each shape and payload, of CPU time and of allocations, and prints what a record
// allocates.
func profile(ctx context.Context, o options, stdout io.Writer) error {
	if err := os.MkdirAll(o.profile, 0o750); err != nil {
		return err
	}
	m, err := newMeasurer(ctx, o)
	if err != nil {
		return err
	}
	defer m.close()
	var b strings.Builder
	b.WriteString("What the gateway allocates, its whole process included. Budget: raw ≤ 10 allocations per record.\n\n")
	t := table{b: &b}
	t.row("session", "version", "payload", "records", "allocations/record", "B/record", "records/collection", "profiles")
	for _, f := range figures(o) {
		if f.server != viaGateway || f.growth {
			continue
		}
		name := fmt.Sprintf("%s-%d-%s", f.session.Shape, f.session.Version, strings.ReplaceAll(payloadName(f.payload), " ", ""))
		fmt.Fprintln(o.log, "bench: profiling", name)
		r, spent, err := m.inside(ctx, f, filepath.Join(o.profile, name), o.log)
		if err != nil {
			return err
		}
		n := float64(r.Records)
		t.row(string(f.session.Shape), fmt.Sprint(f.session.Version), payloadName(f.payload), count(n),
			decimal(float64(spent.Mallocs)/n), count(float64(spent.Allocated)/n), count(n/float64(spent.Collections)), name)
	}
	b.WriteString("\n`go tool pprof -top` shows what is in a profile, " + cpuSuffix + " or " + allocsSuffix + ".\n")
	_, err = io.WriteString(stdout, b.String())
	return err
}

// inside reads a session once, and again under the profiler.
func (m *measurer) inside(ctx context.Context, f *figure, path string, stderr io.Writer) (r reading, spent allocations, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return r, spent, err
	}
	g, _, err := startRole(ctx, roleServe, stderr)
	if err != nil {
		return r, spent, err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	started, err := g.do(order{Address: m.eveURL})
	if err != nil {
		return r, spent, err
	}
	o := order{Address: started.Address, Session: f.session, ID: f.session.id(), Payload: int32(f.payload)}
	if err := m.read(o); err != nil {
		return r, spent, err
	}
	before, err := g.do(order{Profile: path})
	if err != nil {
		return r, spent, err
	}
	o.Reads = profiledReads
	a, err := m.reader.do(o)
	if err != nil {
		return r, spent, err
	}
	after, err := g.do(order{})
	if err != nil {
		return r, spent, err
	}
	return a.reading, allocations{
		Mallocs:     after.Mallocs - before.Mallocs,
		Allocated:   after.Allocated - before.Allocated,
		Collections: after.Collections - before.Collections,
	}, nil
}
