package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/evegateway/evegateway/auth/ingress"
	"github.com/evegateway/evegateway/auth/policy"
	"github.com/evegateway/evegateway/auth/servertls"
	"github.com/evegateway/evegateway/gateway/rpc"
)

// accessFlags say how callers reach the gateway, how they are recognised, and what they may read. Whoever is
// recognised in one of the ways given gets in; with none given, everyone does who reaches the port.
type accessFlags struct {
	TLSCert      string        `setting:"" name:"tls-cert" placeholder:"FILE" help:"Certificate chain of the gateway, PEM, reloaded when it changes."`
	TLSKey       string        `setting:"" name:"tls-key" placeholder:"FILE" help:"Key of the certificate, PEM."`
	ClientCA     string        `setting:"" name:"client-ca" placeholder:"FILE" help:"Authorities of client certificates, PEM, reloaded when they change."`
	TrustDomain  string        `setting:"" placeholder:"DOMAIN" help:"SPIFFE trust domain whose client certificates are callers; needs --client-ca."`
	TokenFile    string        `setting:"" placeholder:"FILE" help:"Callers by static token, a line each: NAME sha256:HEX [ATTRIBUTE=VALUE ...]."`
	OIDCIssuer   string        `setting:"" name:"oidc-issuer" placeholder:"URL" help:"OpenID Connect issuer whose signed tokens are callers."`
	OIDCAudience string        `setting:"" name:"oidc-audience" placeholder:"NAMES" help:"What tokens must be issued for, one of them at least, separated by commas."`
	OIDCSessions string        `setting:"" name:"oidc-sessions" placeholder:"CLAIM" help:"Claim that lists the sessions a token is for."`
	Sessions     string        `setting:"" default:"shared" enum:"shared,listed" placeholder:"MODE" help:"Whose sessions are whose: shared, the default, lets each caller read all; listed only those its credential lists."`
	Recheck      time.Duration `setting:"" default:"1m" placeholder:"DURATION" help:"How often the rights to an open stream are looked at again, default ${default}."`
}

// recognises says whether callers are asked who they are.
func (f *accessFlags) recognises() bool {
	return f.TokenFile != "" || f.OIDCIssuer != "" || f.TrustDomain != ""
}

// validate finds flags that make no sense together.
func (f *accessFlags) validate() error {
	switch {
	case (f.TLSCert == "") != (f.TLSKey == ""):
		return usagef("--tls-cert and --tls-key belong together")
	case f.ClientCA != "" && f.TLSCert == "":
		return usagef("--client-ca needs --tls-cert and --tls-key: client certificates come with TLS")
	case (f.TrustDomain == "") != (f.ClientCA == ""):
		return usagef("--trust-domain and --client-ca belong together: one says who is a caller, the other who vouches for that")
	case (f.OIDCIssuer == "") != (f.OIDCAudience == ""):
		return usagef("--oidc-issuer and --oidc-audience belong together: a token for anyone else must not get in")
	case f.OIDCSessions != "" && f.OIDCIssuer == "":
		return usagef("--oidc-sessions needs --oidc-issuer")
	case f.Sessions == "listed" && !f.recognises():
		return usagef("--sessions listed needs callers that are recognised: --token-file, --oidc-issuer or --trust-domain")
	case f.Recheck < 0:
		return usagef("--recheck is %v, want 0 or more", f.Recheck)
	}
	return nil
}

// build makes what the flags describe; its background work ends with ctx. A nil access lets everyone in.
func (f *accessFlags) build(ctx context.Context, agent string, log *slog.Logger) (*rpc.Access, []grpc.ServerOption, error) {
	if err := f.validate(); err != nil {
		return nil, nil, err
	}
	cfg := ingress.Config{TokenFile: f.TokenFile, Logger: log}
	var opts []grpc.ServerOption
	if f.TLSCert != "" {
		tls, err := servertls.New(servertls.Config{CertFile: f.TLSCert, KeyFile: f.TLSKey, ClientRootsFile: f.ClientCA, Logger: log})
		if err != nil {
			return nil, nil, &usageError{err}
		}
		opts = append(opts, grpc.Creds(credentials.NewTLS(tls.TLS())))
		if f.ClientCA != "" {
			cfg.VerifyPeer = tls.Verify
			cfg.ClientCert = &ingress.ClientCert{Identities: ingress.Identities{TrustDomains: []string{f.TrustDomain}}}
		}
	}
	if !f.recognises() {
		return nil, opts, nil
	}
	if f.OIDCIssuer != "" {
		issuer := ingress.OIDC{Issuer: f.OIDCIssuer, Audiences: strings.Split(f.OIDCAudience, ",")}
		if f.OIDCSessions != "" {
			issuer.Attributes = map[string]string{"sessions": f.OIDCSessions}
		}
		cfg.OIDC = []ingress.OIDC{issuer}
	}
	authenticator, err := ingress.New(ctx, cfg)
	if err != nil {
		return nil, nil, &usageError{err}
	}
	mode := policy.Shared
	if f.Sessions == "listed" {
		mode = policy.Listed
	}
	recognised := []policy.Match{{IDs: []string{"*"}}}
	rules, err := policy.New(map[string]policy.Agent{agent: {Read: recognised, Act: recognised, Sessions: mode}}, nil)
	if err != nil {
		return nil, nil, &usageError{err}
	}
	return &rpc.Access{Authenticator: authenticator, Policy: rules, Recheck: f.Recheck, Grace: 5 * f.Recheck}, opts, nil
}
