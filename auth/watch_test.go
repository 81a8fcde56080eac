package auth_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evegateway/evegateway/auth"
)

func TestWatch(t *testing.T) {
	ada := auth.Principal{ID: "ada", Issuer: "https://a.example"}
	until := func(d time.Duration) auth.Principal {
		p := ada
		p.ExpiresAt = time.Now().Add(d)
		return p
	}
	denied := auth.Refuse(auth.Denied, "not any more", nil)
	down := errors.New("the store is down")
	type answer struct {
		p   auth.Principal
		err error
	}
	const never = 0
	for _, tt := range []struct {
		name         string
		every, grace time.Duration
		expires      time.Duration // zero: never
		answers      func() []answer
		want         auth.Reason // zero: it holds until the stream ends, after a day and a half hour
		after        time.Duration
		asked        int
	}{
		{name: "for ever", after: 1470 * time.Minute},
		{name: "until it expires", expires: 90 * time.Minute, want: auth.Expired, after: 90 * time.Minute},
		{name: "it had expired already", expires: -time.Second, want: auth.Expired},
		{name: "asked again and again", every: time.Hour, answers: func() []answer { return []answer{{p: ada}} },
			after: 1470 * time.Minute, asked: 24},
		{name: "refused later", every: time.Hour, answers: func() []answer { return []answer{{p: ada}, {p: ada}, {err: denied}} },
			want: auth.Denied, after: 3 * time.Hour, asked: 3},
		{name: "expires between two questions", every: time.Hour, expires: 90 * time.Minute,
			answers: func() []answer { return []answer{{p: until(30 * time.Minute)}} }, want: auth.Expired, after: 90 * time.Minute, asked: 1},
		{name: "a new expiry counts", every: time.Hour, expires: 90 * time.Minute,
			answers: func() []answer { return []answer{{p: until(4*time.Hour + time.Minute)}} }, want: auth.Expired, after: 5*time.Hour + time.Minute, asked: 5},
		{name: "someone else now", every: time.Hour,
			answers: func() []answer { return []answer{{p: auth.Principal{ID: "bob", Issuer: ada.Issuer}}} }, want: auth.Denied, after: time.Hour, asked: 1},
		{name: "cannot be asked", every: time.Hour, answers: func() []answer { return []answer{{err: down}} },
			want: auth.Unavailable, after: time.Hour, asked: 1},
		{name: "cannot be asked for a while", every: time.Hour, grace: 3 * time.Hour,
			answers: func() []answer { return []answer{{p: ada}, {err: down}, {err: down}, {p: ada}, {err: down}} },
			want:    auth.Unavailable, after: 7 * time.Hour, asked: 7},
		{name: "a refusal knows no grace", every: time.Hour, grace: 24 * time.Hour,
			answers: func() []answer { return []answer{{err: down}, {err: denied}} }, want: auth.Denied, after: 2 * time.Hour, asked: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 1470*time.Minute) // never the moment of a question
				defer cancel()
				p := ada
				if tt.expires != never {
					p = until(tt.expires)
				}
				var answers []answer
				asked := 0
				w := auth.Watch{Every: tt.every, Grace: tt.grace, Rand: func() float64 { return 0.5 }, Ask: func(context.Context) (auth.Principal, error) {
					if answers == nil {
						answers = tt.answers()
					}
					a := answers[min(asked, len(answers)-1)]
					asked++
					return a.p, a.err
				}}
				began := time.Now()
				err := w.Wait(ctx, p)
				took := time.Since(began).Round(time.Second)
				if (err == nil) != (tt.want == 0) || err != nil && auth.ReasonOf(err) != tt.want || took != tt.after || asked != tt.asked {
					t.Errorf("%v after %v, asked %d times; want reason %v after %v, asked %d times", err, took, asked, tt.want, tt.after, tt.asked)
				}
			})
		})
	}
}

// TestWatchJitter: streams that were opened together do not ask together, and none much later than it should.
func TestWatchJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := map[time.Duration]bool{}
		for range 50 {
			began := time.Now()
			w := auth.Watch{Every: time.Hour, Ask: func(context.Context) (auth.Principal, error) { return auth.Principal{}, errors.New("no") }}
			if err := w.Wait(t.Context(), auth.Anonymous()); err == nil {
				t.Fatal("the right goes on")
			}
			took := time.Since(began)
			if took < 54*time.Minute || took > 66*time.Minute {
				t.Errorf("asked after %v", took)
			}
			times[took] = true
		}
		if len(times) < 25 {
			t.Errorf("50 streams asked at %d different times only", len(times))
		}
	})
}

// TestWatchEndsWithTheStream, also while the question is being asked.
func TestWatchEndsWithTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		w := auth.Watch{Every: time.Hour, Ask: func(ctx context.Context) (auth.Principal, error) {
			<-ctx.Done()
			return auth.Principal{}, ctx.Err()
		}}
		if err := w.Wait(ctx, auth.Anonymous()); err != nil {
			t.Errorf("%v", err)
		}
	})
}
