package gateway

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/evegateway/evegateway/gateway/rpc"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// Server is a gateway. Serve it on any number of listeners, then Shutdown.
type Server struct {
	cfg      Config
	grpc     *grpc.Server
	health   *health.Server
	draining chan struct{}
	once     sync.Once
}

// drainRetry is the delay suggested to clients of a draining gateway.
const drainRetry = 250 * time.Millisecond

// New assembles a gateway. It makes no connection yet.
func New(cfg Config, opts ...grpc.ServerOption) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	all, err := newAgents(&cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, health: health.NewServer(), draining: make(chan struct{})}
	s.grpc = grpc.NewServer(append(s.options(), opts...)...)
	evev1.RegisterStreamServiceServer(s.grpc, rpc.NewStreamServer(rpc.StreamConfig{
		Agents:     all,
		Access:     cfg.Access,
		Limits:     rpc.Limits{HeartbeatDefault: cfg.Heartbeat, HeartbeatMin: cfg.HeartbeatMin, HeartbeatMax: cfg.HeartbeatMax},
		Logger:     cfg.Logger,
		Draining:   s.draining,
		DrainRetry: drainRetry,
	}))
	healthv1.RegisterHealthServer(s.grpc, s.health)
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
	reflection.Register(s.grpc)
	return s, nil
}

// options replace the defaults of grpc-go that do not fit streams that live for hours.
func (s *Server) options() []grpc.ServerOption {
	return append(rpc.ServerOptions(rpc.ServerConfig{
		Logger: s.cfg.Logger, Access: s.cfg.Access, Draining: s.draining,
	}),
		grpc.MaxConcurrentStreams(1000),
		grpc.MaxHeaderListSize(32<<10),
		grpc.MaxRecvMsgSize(64<<10), // requests are small; no command carries files yet
		grpc.ConnectionTimeout(10*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	)
}

// Serve accepts connections until the listener fails or Shutdown is called; then it returns nil.
func (s *Server) Serve(lis net.Listener) error {
	if err := s.grpc.Serve(lis); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil // Shutdown came first
}

// Shutdown ends the gateway: health turns NOT_SERVING, service goes on for DrainDelay, clients are told to go
// elsewhere, open streams end with DRAINING and can be resumed anywhere. When ctx ends first, what is left is cut.
func (s *Server) Shutdown(ctx context.Context) {
	s.once.Do(func() { s.shutdown(ctx) })
}

func (s *Server) shutdown(ctx context.Context) {
	s.health.Shutdown()
	if s.cfg.DrainDelay > 0 {
		timer := time.NewTimer(s.cfg.DrainDelay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.grpc.GracefulStop() // GOAWAY first, or clients resume on this very gateway
	}()
	close(s.draining)
	select {
	case <-stopped:
	case <-ctx.Done():
		s.grpc.Stop()
		<-stopped
	}
}
