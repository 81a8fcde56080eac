package ingress

import (
	"context"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/evegateway/evegateway/auth"
)

// Metadata entries that say who calls. Nothing else of the metadata is read for that.
const (
	MetadataAuthorization = "authorization"
	MetadataForwardedCert = "x-forwarded-client-cert"
)

// CallerOf is what is known of the caller of an rpc, from the context of its handler or interceptor.
func CallerOf(ctx context.Context) auth.Caller {
	var c auth.Caller
	for _, v := range metadata.ValueFromIncomingContext(ctx, MetadataAuthorization) {
		c.Authorization = append(c.Authorization, auth.NewSecret(v))
	}
	c.ForwardedCert = metadata.ValueFromIncomingContext(ctx, MetadataForwardedCert)
	if p, ok := peer.FromContext(ctx); ok {
		c.Peer = p.Addr
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			c.TLS = &info.State
		}
	}
	return c
}
