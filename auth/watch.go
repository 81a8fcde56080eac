package auth

import (
	"context"
	"math/rand/v2"
	"time"
)

// Watch keeps asking whether a right that was granted still holds, for streams that outlive credentials.
type Watch struct {
	// Every is the time between two questions, give or take a tenth, so that streams opened together do not ask
	// together. Zero: never; then only the end of the credential counts.
	Every time.Duration
	// Grace is how long the right goes on while the question cannot be answered (Unavailable). Zero: not at all.
	Grace time.Duration
	// Ask authenticates the caller and checks its right once more, exactly as when the stream opened. Required with
	// Every.
	Ask func(ctx context.Context) (Principal, error)
	// Rand gives jitter in [0,1). Nil: the process's random source.
	Rand func() float64
}

// Wait returns when p's right has ended, with the reason, an *Error or what Ask returned; nil when ctx has ended first.
// A credential that runs out ends the right to the moment, between two questions too.
func (w Watch) Wait(ctx context.Context, p Principal) error {
	random := w.Rand
	if random == nil {
		random = rand.Float64
	}
	key := p.Key()
	answered := time.Now()
	for {
		expiry := p.ExpiresAt
		next := expiry
		if w.Every > 0 {
			ask := time.Now().Add(time.Duration(float64(w.Every) * (0.9 + 0.2*random())))
			if expiry.IsZero() || ask.Before(expiry) {
				next = ask
			}
		}
		if !sleepUntil(ctx, next) {
			return nil
		}
		if p.Expired(time.Now()) {
			return Refuse(Expired, "the credential has run out: get a new one and resume from the last message handled", nil)
		}
		again, err := w.Ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the right has not ended, the stream has
		case err != nil && ReasonOf(err) == Unavailable && time.Since(answered) < w.Grace:
		case err != nil:
			return err
		case again.Key() != key:
			return Refuse(Denied, "the credential now stands for someone else: open the stream anew", nil)
		default:
			p, answered = again, time.Now()
		}
	}
}

// sleepUntil waits for a time, the zero time never comes. False: ctx ended first.
func sleepUntil(ctx context.Context, t time.Time) bool {
	var due <-chan time.Time
	if !t.IsZero() {
		timer := time.NewTimer(time.Until(t))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
		return true
	}
}
