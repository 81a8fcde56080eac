package rpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/evegateway/evegateway/gateway/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func lineOf(number uint64, size int64) source.Step {
	return source.Step{Kind: source.StepLine, Line: &source.Line{Number: number, Size: size}}
}

// What waits for a slow client is bounded in steps and in bytes, but a line larger than the bound still passes, alone.
func TestHandoffIsBounded(t *testing.T) {
	for name, size := range map[string]int64{"steps": 0, "bytes": maxHandoffBytes / 10, "a giant": 3 * maxHandoffBytes} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const total = 1000
				h := newHandoff()
				go func() {
					for i := range uint64(total) {
						if err := h.put(t.Context(), lineOf(i, size), time.Second, func() {}); err != nil {
							t.Errorf("putting %d: %v", i, err)
							return
						}
					}
					h.finish(nil)
				}()
				var next uint64
				var batch []source.Step
				for {
					synctest.Wait() // the reader is as far ahead as it gets
					var done bool
					var err error
					if batch, done, err = h.take(batch); done {
						if err != nil {
							t.Fatal(err)
						}
						break
					}
					if n := int64(len(batch)); n > maxHandoffSteps || n > 1 && n*size > maxHandoffBytes {
						t.Fatalf("%d steps of %d bytes wait", n, size)
					}
					for _, s := range batch {
						if s.Line.Number != next {
							t.Fatalf("step %d follows %d", s.Line.Number, next)
						}
						next++
					}
				}
				if next != total {
					t.Fatalf("%d steps of %d came through", next, total)
				}
			})
		})
	}
}

// A reader that waits for a slow client for long lets go of what it holds upstream, once; it leaves with the caller.
func TestHandoffBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h := newHandoff()
		began, released := time.Now(), []time.Duration{}
		for err := error(nil); err == nil; {
			err = h.put(ctx, lineOf(0, maxHandoffBytes), 5*time.Second, func() { released = append(released, time.Since(began)) })
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		if len(released) != 1 || released[0] != 5*time.Second {
			t.Errorf("released after %v, want once after 5 s", released)
		}
	})
}
