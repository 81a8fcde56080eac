// Package chaos_test runs gateways through random sessions, faults, clients and restarts, in virtual time, and checks
// everything every client received with internal/guarantee. A run follows from its seed alone:
//
//	go test ./test/chaos -run TestChaos -chaos.seed=N
//
// runs one again, and prints its schedule if it fails (with -v in any case).
package chaos_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// Flags of this package.
//
//nolint:gochecknoglobals // the flags of a test binary
var (
	seedFlag  = flag.Uint64("chaos.seed", 0, "run this seed alone, and show its schedule with -v")
	firstFlag = flag.Uint64("chaos.first", 1, "first of the seeds to run")
	seedsFlag = flag.Uint64("chaos.seeds", 300, "how many seeds to run")
)

// stuckAfter is how long a run may take in real time; it takes a fraction of a second, unless no time passes in it.
const stuckAfter = 100 * time.Second

func TestChaos(t *testing.T) {
	if *seedFlag != 0 {
		runSeed(t, *seedFlag)
		return
	}
	for seed := *firstFlag; seed < *firstFlag+*seedsFlag; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			runSeed(t, seed)
		})
	}
}

// runSeed runs one seed and shows its schedule when it fails in any way.
func runSeed(t *testing.T, seed uint64) {
	t.Helper()
	log := &schedule{}
	show := func() string {
		return fmt.Sprintf("seed %d; to run it again: go test ./test/chaos -run 'TestChaos$' -chaos.seed=%d\n%s", seed, seed, log)
	}
	watchdog := time.AfterFunc(stuckAfter, func() {
		fmt.Fprintf(os.Stderr, "no time passes any more: %s", show())
		panic("stuck")
	})
	defer watchdog.Stop()
	defer func() {
		if p := recover(); p != nil { // a bubble that deadlocks, or the driver
			fmt.Fprint(os.Stderr, show())
			panic(p)
		}
		if t.Failed() || testing.Verbose() && *seedFlag != 0 {
			t.Log(show())
		}
	}()
	synctest.Test(t, func(t *testing.T) { chaos(t, seed, log) })
}
