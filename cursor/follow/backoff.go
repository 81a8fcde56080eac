package follow

import (
	"math"
	"time"
)

// Backoff says how long to wait before the next call. The wait begins at Base, doubles with each call that gained
// nothing, and stays at Max; between a half and the whole of it is waited. A gateway that asks for a longer wait gets
// it, and a random part on top.
type Backoff struct {
	// Base is the first wait. Default 250 ms.
	Base time.Duration
	// Max is the longest wait that no gateway asked for. Default 10 s.
	Max time.Duration
	// GiveUp is how long to go on while nothing is gained, from the first failure on; the last one is then the error
	// of the loop. 0: for ever.
	GiveUp time.Duration
}

func (b *Backoff) complete() {
	if b.Base <= 0 {
		b.Base = 250 * time.Millisecond
	}
	if b.Max <= 0 {
		b.Max = 10 * time.Second
	}
}

// longest keeps sums of waits a duration, whatever a gateway asks for.
const longest = math.MaxInt64 / 2

// wait is how long to wait after so many failures in a row before this one; random gives a number in [0, n).
func (b *Backoff) wait(row int, asked time.Duration, random func(n int64) int64) time.Duration {
	d := b.Base
	for ; row > 0 && d < b.Max; row-- {
		d = min(d, b.Max/2) * 2 // never more than the largest duration
	}
	half := min(d, b.Max) / 2
	return max(half, min(asked, longest)) + time.Duration(random(int64(half)+1))
}
