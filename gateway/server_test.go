package gateway_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/evegateway/evegateway/gateway"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A gateway that stops tells its health first, goes on serving for a while, then ends each stream with a checkpoint
// and a status that says to resume elsewhere.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.New(t, rig.Options{Config: func(c *gateway.Config) { c.DrainDelay = 5 * time.Second }})
		defer r.Close()
		session := r.Eve.AddSession("wrun_1", fakeeve.SessionSpec{})
		session.Append(`{"at":"2026-11-18T09:00:00Z","facts":[{"type":"session.started","data":{}}]}`)
		got := make(chan rig.Result, 1)
		go func() { got <- r.Subscribe(t.Context(), rig.FromStart("wrun_1"), nil) }()
		synctest.Wait()

		stopped := make(chan time.Duration, 1)
		began := time.Now()
		go func() {
			r.Server.Shutdown(t.Context())
			stopped <- time.Since(began)
		}()
		synctest.Wait()
		h, err := healthv1.NewHealthClient(r.Conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: "eve.v1.StreamService"})
		if err != nil || h.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
			t.Errorf("health while draining: %v, %v", h.GetStatus(), err)
		}
		early := r.Subscribe(t.Context(), rig.UntilTail(rig.FromStart("wrun_1")), nil)
		if early.Err != nil || len(early.Records()) != 1 {
			t.Errorf("during the delay service goes on; got %d records, %v", len(early.Records()), early.Err)
		}

		res := <-got
		checkDraining(t, res.Err, codes.Aborted)
		if c := res.Last().GetCheckpoint().GetReason(); c != evev1.CheckpointReason_CHECKPOINT_REASON_DRAINING {
			t.Errorf("last checkpoint is %v", c)
		}
		if d := <-stopped; d < 5*time.Second || d > 6*time.Second {
			t.Errorf("draining took %v, want the delay of 5 s and hardly more", d)
		}
	})
}

// A client that does not read cannot hold the gateway up: the status goes out behind what is queued for it.
func TestDrainStalledClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.New(t, rig.Options{})
		defer r.Close()
		r.Eve.AddSession("wrun_1", fakeeve.SessionSpec{Log: fakeeve.Generated(1_000, fakeeve.Commits, 27)})
		stream, err := r.Client.Subscribe(t.Context(), rig.FromStart("wrun_1"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the sender is stuck behind flow control
		began := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r.Server.Shutdown(ctx)
		}()
		time.Sleep(10 * time.Second) // virtual
		for err == nil {
			_, err = stream.Recv()
		}
		checkDraining(t, err, codes.Aborted)
		<-ended
		if d := time.Since(began); d > 15*time.Second {
			t.Errorf("draining took %v", d)
		}
	})
}

func checkDraining(t *testing.T, err error, code codes.Code) {
	t.Helper()
	s := status.Convert(err)
	if errors.Is(err, io.EOF) || s.Code() != code {
		t.Fatalf("status %v, want %v", err, code)
	}
	var reason string
	var retry time.Duration
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			reason = d.GetReason()
		case *errdetails.RetryInfo:
			retry = d.GetRetryDelay().AsDuration()
		}
	}
	if reason != "DRAINING" || retry <= 0 {
		t.Errorf("reason %q, retry after %v", reason, retry)
	}
}

func TestNewRefusesBadConfigurations(t *testing.T) {
	one := gateway.Agent{Name: "tide", URL: "http://127.0.0.1:1"}
	for name, cfg := range map[string]gateway.Config{
		"no agent":        {},
		"bad name":        {Agents: []gateway.Agent{{Name: "Tide Desk", URL: one.URL}}},
		"two of one name": {Agents: []gateway.Agent{one, one}},
		"bad URL":         {Agents: []gateway.Agent{{Name: "tide", URL: "ftp://127.0.0.1"}}},
		"secret in URL":   {Agents: []gateway.Agent{{Name: "tide", URL: "http://me:secret@127.0.0.1"}}},
		"heartbeat":       {Agents: []gateway.Agent{one}, Heartbeat: time.Hour},
		"negative limit":  {Agents: []gateway.Agent{one}, MaxLineBytes: -1},
	} {
		if _, err := gateway.New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
