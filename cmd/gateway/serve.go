package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/alecthomas/kong"

	"github.com/evegateway/evegateway/auth/egress"
	"github.com/evegateway/evegateway/gateway"
)

// serveCommand serves one agent. Each flag is also an environment variable and a key of the configuration file, see
// settings.
type serveCommand struct {
	Access accessFlags `embed:""`

	Config        string        `setting:"" placeholder:"FILE" help:"YAML file with flags as keys; flags and environment variables win over it."`
	Listen        string        `setting:"" default:"127.0.0.1:7443" placeholder:"ADDRESS" help:"Where to listen, default ${default}; port 0 takes a free one."`
	Insecure      bool          `setting:"" negatable:"" help:"Listen on other addresses than loopback even without TLS, or without asking who calls."`
	EveURL        string        `setting:"" name:"eve-url" default:"http://127.0.0.1:2000" placeholder:"URL" help:"Base URL of the agent, default ${default}."`
	EveBearerFile string        `setting:"" placeholder:"FILE" help:"File with the bearer token for the agent, read for every request."`
	AgentName     string        `setting:"" default:"default" placeholder:"NAME" help:"What callers call the agent; they may leave it out. Default: ${default}."`
	MaxLineBytes  int           `setting:"" default:"16777216" placeholder:"BYTES" help:"Largest source line that is read, default 16 MiB."`
	Heartbeat     time.Duration `setting:"" default:"10s" placeholder:"DURATION" help:"Longest silence on a stream that asks for none, default ${default}."`
	DrainDelay    time.Duration `setting:"" default:"0s" placeholder:"DURATION" help:"How long to go on serving when told to end, health NOT_SERVING, default ${default}."`
	DrainTimeout  time.Duration `setting:"" default:"30s" placeholder:"DURATION" help:"How long what is open may then take to end, default ${default}."`
	LogFormat     string        `setting:"" default:"json" enum:"json,text" placeholder:"FORMAT" help:"Format of the log on standard error: json, the default, or text."`
	LogLevel      string        `setting:"" default:"info" enum:"debug,info,warn,error" placeholder:"LEVEL" help:"What to log: debug, info, the default, warn, or error."`
}

// BeforeResolve implements a hook of kong.
func (*serveCommand) BeforeResolve(command *kong.Context, p *process) error {
	s, err := newSettings(command, p.getenv)
	if err != nil {
		return err
	}
	command.AddResolver(s)
	return nil
}

// Run implements the command.
func (c *serveCommand) Run(ctx context.Context, p *process) error {
	log := newLogger(p.stderr, c.LogFormat, c.LogLevel)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	srv, err := c.server(life, log)
	if err != nil {
		return err
	}
	lis, err := listen(ctx, c.Listen, c.Insecure || c.Access.TLSCert != "" && c.Access.recognises())
	if err != nil {
		return err
	}
	return serve(ctx, srv, lis, serving{
		cut: p.cut, timeout: c.DrainDelay + c.DrainTimeout, log: log,
		ready: func() { logListening(log, lis) },
	})
}

// server makes the gateway that the flags describe.
func (c *serveCommand) server(ctx context.Context, log *slog.Logger) (*gateway.Server, error) {
	if c.MaxLineBytes <= 0 {
		return nil, usagef("--max-line-bytes is %d, want at least 1", c.MaxLineBytes)
	}
	if c.DrainTimeout < 0 {
		return nil, usagef("--drain-timeout is %v, want 0 or more", c.DrainTimeout)
	}
	agent := gateway.Agent{Name: c.AgentName, URL: c.EveURL}
	if c.EveBearerFile != "" {
		bearer, err := egress.New(egress.Config{Bearer: egress.File(c.EveBearerFile)})
		if err != nil {
			return nil, fmt.Errorf("--eve-bearer-file: %w", err)
		}
		agent.Headers = bearer
	}
	access, opts, err := c.Access.build(ctx, agent.Name, log)
	if err != nil {
		return nil, err
	}
	srv, err := gateway.New(gateway.Config{
		Agents: []gateway.Agent{agent}, Access: access, MaxLineBytes: c.MaxLineBytes, Heartbeat: c.Heartbeat,
		DrainDelay: c.DrainDelay, Logger: log,
	}, opts...)
	if err != nil {
		return nil, &usageError{err}
	}
	return srv, nil
}

// newLogger logs to w; format and level are of the flags' enums.
func newLogger(w io.Writer, format, level string) *slog.Logger {
	var opts slog.HandlerOptions
	var l slog.Level
	if l.UnmarshalText([]byte(level)) == nil {
		opts.Level = l
	}
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, &opts))
	}
	return slog.New(slog.NewJSONHandler(w, &opts))
}

// logListening is the sign that a gateway is ready. Programs wait for it.
func logListening(log *slog.Logger, lis net.Listener) {
	log.Info("listening", "address", lis.Addr().String())
}

// listen opens the port. Without TLS and callers that are recognised that is for loopback only, unless told otherwise.
func listen(ctx context.Context, address string, anywhere bool) (net.Listener, error) {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, usagef("--listen: %w", err)
	}
	if !addr.IP.IsLoopback() && !anywhere {
		return nil, usagef("--listen: %s is not a loopback address: sessions would cross the network in the clear, or go to "+
			"whoever asks. Give the gateway TLS (--tls-cert, --tls-key) and a way to recognise callers (--token-file, "+
			"--oidc-issuer or --trust-domain), listen on loopback, or say --insecure where the network is private", address)
	}
	// What was checked is what is opened: a name is not looked up again.
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", addr.String())
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return lis, nil
}

// serving says how to serve.
type serving struct {
	cut     context.Context // ends when the gateway must end at once
	timeout time.Duration   // for the gateway to end in good order
	log     *slog.Logger
	ready   func() // called once the port is served
}

// errCut: streams were open when the gateway had to end at once.
var errCut = errors.New("told twice to end: what was open was cut")

// serve serves until ctx ends, then ends in good order.
func serve(ctx context.Context, srv *gateway.Server, lis net.Listener, s serving) error {
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	s.ready()
	select {
	case err := <-served:
		srv.Shutdown(s.cut)
		return fmt.Errorf("serving on %s: %w", lis.Addr(), err)
	case <-ctx.Done():
	}
	s.log.Info("ending")
	limit, cancel := context.WithTimeout(s.cut, s.timeout)
	defer cancel()
	srv.Shutdown(limit)
	if err := <-served; err != nil {
		return fmt.Errorf("serving on %s: %w", lis.Addr(), err)
	}
	switch {
	case s.cut.Err() != nil:
		return errCut
	case limit.Err() != nil:
		s.log.Warn("ended by cutting what was still open", "after", s.timeout.String())
	default:
		s.log.Info("ended")
	}
	return nil
}
