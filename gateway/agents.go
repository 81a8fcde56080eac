package gateway

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/evegateway/evegateway/auth/dialguard"
	"github.com/evegateway/evegateway/gateway/rpc"
	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// agents are the configured agents by name.
type agents map[string]*source.Client

func newAgents(cfg *Config) (agents, error) {
	all := agents{}
	for _, a := range cfg.Agents {
		if a.Transport == nil {
			a.Transport = source.NewTransport(guardedDial)
		}
		sc := source.Config{URL: a.URL, Headers: a.Headers, Transport: a.Transport, MaxLineBytes: cfg.MaxLineBytes}
		if a.Tune != nil {
			a.Tune(&sc)
		}
		client, err := source.NewClient(sc)
		if err != nil {
			return nil, fmt.Errorf("configuration: agent %s: %w", a.Name, err)
		}
		all[a.Name] = client
	}
	return all, nil
}

// guardedDial dials agents, but no address that answers with a machine's credentials.
func guardedDial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second, ControlContext: dialguard.Guard{}.Control}
	return d.DialContext(ctx, network, address)
}

// Resolve implements rpc.Agents.
func (a agents) Resolve(name string) (string, error) {
	problem := "is unknown; the gateway has: "
	switch _, known := a[name]; {
	case known:
		return name, nil
	case name == "" && len(a) == 1:
		for only := range a {
			return only, nil
		}
	case name == "":
		problem = "is missing, and the gateway has several: "
	}
	names := make([]string, 0, len(a))
	for n := range a {
		names = append(names, n)
	}
	slices.Sort(names)
	return "", &rpc.Error{Code: codes.InvalidArgument, Reason: evev1.ErrorReason_ERROR_REASON_REQUEST_INVALID,
		Field: "agent", Message: "agent: " + problem + strings.Join(names, ", ")}
}

// Log implements rpc.Agents.
func (a agents) Log(name string) rpc.Log { return eveLog{a[name]} }

// eveLog reads every stream from Eve itself.
type eveLog struct{ client *source.Client }

func (l eveLog) Open(ctx context.Context, req source.Request) (rpc.Reader, error) {
	r, err := l.client.Read(ctx, req)
	if err != nil {
		return nil, err // not r: a nil *source.Reader would be no nil rpc.Reader
	}
	return r, nil
}
