package gateway_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/policy"
	"github.com/evegateway/evegateway/gateway"
	"github.com/evegateway/evegateway/gateway/rpc"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// names lets callers in whose authorization is a name, for a while.
type names struct{ expires time.Time }

func (n names) Authenticate(_ context.Context, c auth.Caller) (auth.Principal, error) {
	if len(c.Authorization) == 0 {
		return auth.Principal{}, auth.Refuse(auth.Unauthenticated, "no credential", nil)
	}
	return auth.Principal{ID: c.Authorization[0].Reveal(), Issuer: "test", Kind: auth.KindToken, ExpiresAt: n.expires}, nil
}

// rights are those of one session: its owner's, until they are withdrawn.
type rights struct{ withdrawn *atomic.Bool }

func (r rights) Check(_ context.Context, p auth.Principal, _ string, _ policy.Action, session string) error {
	switch {
	case p.ID == "nobody":
		return auth.Refuse(auth.Denied, "you may not read from this agent", nil)
	case session != "wrun_"+p.ID:
		return auth.Refuse(auth.Hidden, "not yours", nil)
	case r.withdrawn.Load():
		return auth.Refuse(auth.Denied, "you may not any more", nil)
	}
	return nil
}

type accessRig struct {
	*rig.Rig
	withdrawn *atomic.Bool
}

func newAccessRig(t *testing.T, a names) accessRig {
	withdrawn := new(atomic.Bool)
	r := rig.New(t, rig.Options{Config: func(c *gateway.Config) {
		c.Access = &rpc.Access{Authenticator: a, Policy: rights{withdrawn}, Recheck: time.Minute}
	}})
	for _, id := range []string{"wrun_ada", "wrun_bo"} {
		r.Eve.AddSession(id, fakeeve.SessionSpec{}).Append(`{"at":"2026-11-18T09:00:00Z","facts":[{"type":"session.started","data":{}}]}`)
	}
	return accessRig{r, withdrawn}
}

func as(ctx context.Context, name string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", name)
}

func reasonOf(res rig.Result) string {
	if values := res.Trailer.Get(rpc.TrailerReason); len(values) == 1 {
		return status.Code(res.Err).String() + " " + values[0]
	}
	return status.Code(res.Err).String()
}

func TestAccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newAccessRig(t, names{})
		defer r.Close()
		ended := rig.At("wrun_bo", 27, 1)
		ended.SessionEnded = true
		for _, c := range []struct {
			name string
			ctx  context.Context
			req  *evev1.SubscribeRequest
			want string
		}{
			{"own session", as(t.Context(), "ada"), rig.FromStart("wrun_ada"), "OK"},
			{"no credential", t.Context(), rig.FromStart("wrun_ada"), "Unauthenticated CREDENTIALS_INVALID"},
			{"no right", as(t.Context(), "nobody"), rig.FromStart("wrun_ada"), "PermissionDenied ACCESS_DENIED"},
			{"someone else's", as(t.Context(), "ada"), rig.FromStart("wrun_bo"), "NotFound SESSION_NOT_FOUND"},
			{"someone else's, resumed", as(t.Context(), "ada"), rig.From(rig.At("wrun_bo", 27, 1)), "NotFound SESSION_NOT_FOUND"},
			{"someone else's, ended", as(t.Context(), "ada"), rig.From(ended), "NotFound SESSION_NOT_FOUND"},
			{"a child of someone else's", as(t.Context(), "ada"), &evev1.SubscribeRequest{SessionId: "wrun_ada",
				Child: &evev1.ChildStream{ParentSessionId: "wrun_bo", CallId: "call_1"}}, "NotFound SESSION_NOT_FOUND"},
			{"unknown", as(t.Context(), "cy"), rig.FromStart("wrun_cy"), "NotFound SESSION_NOT_FOUND"},
		} {
			if got := reasonOf(r.Subscribe(c.ctx, rig.UntilTail(c.req), nil)); got != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
		}
		if n := len(r.Eve.StreamRequests("wrun_bo")); n != 0 {
			t.Errorf("%d requests for a session that its readers may not read", n)
		}
		if _, err := healthv1.NewHealthClient(r.Conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
			t.Errorf("health asks for credentials: %v", err)
		}
	})
}

// Nothing tells a session that is hidden from one that does not exist: not the answer, nor the time it takes.
func TestHiddenLooksUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newAccessRig(t, names{})
		defer r.Close()
		ask := func(name, session string) (*status.Status, metadata.MD, time.Duration) {
			began := time.Now()
			res := r.Subscribe(as(t.Context(), name), rig.FromStart(session), nil)
			return status.Convert(res.Err), res.Trailer, time.Since(began)
		}
		hidden, hiddenTrailer, hiddenTook := ask("ada", "wrun_bo")
		unknown, unknownTrailer, unknownTook := ask("cy", "wrun_cy")
		if hidden.String() != unknown.String() || len(hidden.Details()) != len(unknown.Details()) {
			t.Errorf("hidden: %v, unknown: %v", hidden, unknown)
		}
		if len(hiddenTrailer) != len(unknownTrailer) {
			t.Errorf("trailers %v and %v", hiddenTrailer, unknownTrailer)
		}
		if hiddenTook != unknownTook {
			t.Errorf("hidden takes %v, unknown %v", hiddenTook, unknownTook)
		}
	})
}

func TestRightsEndMidStream(t *testing.T) {
	for name, c := range map[string]struct {
		life     time.Duration
		withdraw bool
		want     string
		from, to time.Duration
	}{
		"expired":   {life: 90 * time.Second, want: "Unauthenticated CREDENTIALS_EXPIRED", from: 90 * time.Second, to: 90 * time.Second},
		"withdrawn": {withdraw: true, want: "PermissionDenied ACCESS_DENIED", from: 50 * time.Second, to: 70 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n names
				if c.life > 0 {
					n.expires = time.Now().Add(c.life)
				}
				r := newAccessRig(t, n)
				defer r.Close()
				began := time.Now()
				res := r.Subscribe(as(t.Context(), "ada"), rig.FromStart("wrun_ada"), func(*evev1.SubscribeResponse) bool {
					r.withdrawn.Store(c.withdraw)
					return false
				})
				if got := reasonOf(res); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
				if d := time.Since(began); d < c.from || d > c.to {
					t.Errorf("ended after %v, want %v to %v", d, c.from, c.to)
				}
				if len(res.Records()) != 1 {
					t.Errorf("%d records before the end", len(res.Records()))
				}
			})
		})
	}
}

// A health watch goes on for ever; it must not hold up the end.
func TestShutdownEndsHealthWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.New(t, rig.Options{})
		defer r.Close()
		var watch grpc.ServerStreamingClient[healthv1.HealthCheckResponse]
		watch, err := healthv1.NewHealthClient(r.Conn).Watch(t.Context(), &healthv1.HealthCheckRequest{Service: "eve.v1.StreamService"})
		if err != nil {
			t.Fatal(err)
		}
		var last healthv1.HealthCheckResponse_ServingStatus
		seen := make(chan error, 1)
		go func() {
			for {
				m, err := watch.Recv()
				if err != nil {
					seen <- err
					return
				}
				last = m.GetStatus()
			}
		}()
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r.Server.Shutdown(ctx)
		if d := time.Since(began); d > time.Second || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("shutting down took %v", d)
		}
		if err := <-seen; status.Code(err) == codes.OK || last != healthv1.HealthCheckResponse_NOT_SERVING {
			t.Errorf("the watch ended with %v, its last word was %v", err, last)
		}
	})
}

// A gateway that was told to end before it began to serve ends in good order.
func TestShutdownBeforeServe(t *testing.T) {
	s, err := gateway.New(gateway.Config{Agents: []gateway.Agent{{Name: "tide", URL: "http://127.0.0.1:1"}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Shutdown(t.Context())
	lis := fakeeve.NewPipeListener()
	if err := s.Serve(lis); err != nil {
		t.Errorf("serving: %v", err)
	}
}
