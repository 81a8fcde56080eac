package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"github.com/evegateway/evegateway/auth/ingress"
	"github.com/evegateway/evegateway/auth/policy"
	"github.com/evegateway/evegateway/gateway/rpc"
	"github.com/evegateway/evegateway/gateway/source"
)

// Config configures a gateway. Every field but Agents has a default.
type Config struct {
	// Agents are the Eve agents to serve, at least one, with distinct names.
	Agents []Agent
	// MaxLineBytes is the largest source line that is read. Default 16 MiB.
	MaxLineBytes int
	// Heartbeat is the heartbeat interval of streams that ask for none. Default 10 s.
	Heartbeat time.Duration
	// HeartbeatMin and HeartbeatMax clamp what streams ask for. Defaults 1 s and 60 s.
	HeartbeatMin, HeartbeatMax time.Duration
	// DrainDelay is how long a stopping gateway goes on serving after its health turned NOT_SERVING, so that load
	// balancers notice. Default none.
	DrainDelay time.Duration
	// Access says who may call, and what they may do. Nil: whoever reaches the gateway may read everything.
	Access *rpc.Access
	// Logger gets the gateway's log. Default: none.
	Logger *slog.Logger
}

// Agent is one Eve agent.
type Agent struct {
	// Name is what callers call it: lower-case letters, digits, '-' and '_'.
	Name string
	// URL is its base URL (contract 1.1).
	URL string
	// Headers authenticates the gateway to it. Nil: not at all.
	Headers source.HeaderSource
	// Transport replaces the HTTP transport. Nil: source.NewTransport.
	Transport http.RoundTripper
	// Tune adjusts the reading of this agent. Nil: the defaults.
	Tune func(*source.Config)
}

// openAccess lets everyone who reaches the gateway read and act.
func openAccess(agents []Agent) (*rpc.Access, error) {
	everyone := []policy.Match{{IDs: []string{"*"}}}
	all := map[string]policy.Agent{}
	for _, a := range agents {
		all[a.Name] = policy.Agent{Read: everyone, Act: everyone, Sessions: policy.Shared}
	}
	p, err := policy.New(all, nil)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return &rpc.Access{Authenticator: &ingress.Anonymous{Anywhere: true}, Policy: p}, nil
}

// maxMaxLineBytes bounds the line limit: a line is held in memory, whole.
const maxMaxLineBytes = 1 << 30

var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

func (c *Config) complete() error {
	if len(c.Agents) == 0 {
		return errors.New("configuration: no agent")
	}
	seen := map[string]bool{}
	for _, a := range c.Agents {
		if !agentName.MatchString(a.Name) {
			return fmt.Errorf("configuration: agent name %q: want lower-case letters, digits, '-' and '_', at most 64", a.Name)
		}
		if seen[a.Name] {
			return fmt.Errorf("configuration: two agents are named %q", a.Name)
		}
		seen[a.Name] = true
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = 10 * time.Second
	}
	if c.HeartbeatMin == 0 {
		c.HeartbeatMin = time.Second
	}
	if c.HeartbeatMax == 0 {
		c.HeartbeatMax = time.Minute
	}
	if c.HeartbeatMin < 0 || c.HeartbeatMin > c.HeartbeatMax || c.Heartbeat < c.HeartbeatMin || c.Heartbeat > c.HeartbeatMax {
		return fmt.Errorf("configuration: heartbeat %v is not within %v and %v", c.Heartbeat, c.HeartbeatMin, c.HeartbeatMax)
	}
	if c.MaxLineBytes < 0 || c.DrainDelay < 0 {
		return errors.New("configuration: a negative limit")
	}
	if c.MaxLineBytes > maxMaxLineBytes {
		return fmt.Errorf("configuration: a line limit of %d bytes, want at most %d", c.MaxLineBytes, maxMaxLineBytes)
	}
	if c.Access == nil {
		open, err := openAccess(c.Agents)
		if err != nil {
			return err
		}
		c.Access = open
	}
	if c.Access.HideFor == 0 {
		access := *c.Access // the caller's stays as it is
		access.HideFor = source.DefaultSettle
		c.Access = &access
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
