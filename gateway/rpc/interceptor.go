package rpc

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	middleware "github.com/grpc-ecosystem/go-grpc-middleware/v2"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/auth"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/selector"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// ServerConfig is what every service of the gateway runs behind.
type ServerConfig struct {
	// Logger gets panics.
	Logger *slog.Logger
	// Access decides who gets in.
	Access *Access
	// Draining is closed when streams must end; those of health and reflection then end by themselves.
	Draining <-chan struct{}
}

// ServerOptions are the interceptors, outermost first: errors get their trailers, no panic crosses a handler, and
// nobody gets in unknown.
func ServerOptions(cfg ServerConfig) []grpc.ServerOption {
	caught := recovery.WithRecoveryHandlerContext(func(_ context.Context, p any) error { return Recovered(cfg.Logger, p) })
	guarded := selector.MatchFunc(func(_ context.Context, c interceptors.CallMeta) bool {
		return !isPublic(c.FullMethod())
	})
	return []grpc.ServerOption{
		grpc.ChainStreamInterceptor(streamTrailers(cfg.Logger), recovery.StreamServerInterceptor(caught),
			selector.StreamServerInterceptor(auth.StreamServerInterceptor(cfg.Access.authenticate), guarded), endWith(cfg.Draining)),
		grpc.ChainUnaryInterceptor(unaryTrailers(cfg.Logger), recovery.UnaryServerInterceptor(caught),
			selector.UnaryServerInterceptor(auth.UnaryServerInterceptor(cfg.Access.authenticate), guarded)),
	}
}

// isPublic says whether a method is of health or reflection, the only services that can be open to all.
func isPublic(fullMethod string) bool {
	return strings.HasPrefix(fullMethod, "/grpc.health.v1.") || strings.HasPrefix(fullMethod, "/grpc.reflection.")
}

// isOwn says whether a method is of the gateway's own services.
func isOwn(fullMethod string) bool {
	return strings.HasPrefix(strings.TrimPrefix(fullMethod, "/"), Domain+".")
}

// endWith ends the streams of other services, a health watch for one, that would go on for ever.
func endWith(draining <-chan struct{}) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if isOwn(info.FullMethod) { // they say goodbye
			return handler(srv, stream)
		}
		ctx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		go func() {
			select {
			case <-draining:
				cancel()
			case <-ctx.Done():
			}
		}()
		return handler(srv, &middleware.WrappedServerStream{ServerStream: stream, WrappedContext: ctx})
	}
}

func streamTrailers(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		err := handler(srv, stream)
		if e, ok := errors.AsType[*Error](err); ok {
			logRefused(stream.Context(), log, info.FullMethod, e)
			stream.SetTrailer(e.trailer())
			return e.GRPCStatus().Err() // the cause stays here
		}
		return err
	}
}

func unaryTrailers(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(ctx, req)
		if e, ok := errors.AsType[*Error](err); ok {
			logRefused(ctx, log, info.FullMethod, e)
			_ = grpc.SetTrailer(ctx, e.trailer()) // fails only outside of an rpc
			return nil, e.GRPCStatus().Err()
		}
		return resp, err
	}
}

// logRefused tells operators of callers that were turned away, without a word of what they sent.
func logRefused(ctx context.Context, log *slog.Logger, method string, e *Error) {
	if e.Code == codes.Unauthenticated || e.Code == codes.PermissionDenied {
		log.LogAttrs(ctx, slog.LevelWarn, "call refused", slog.String("method", method), slog.String("reason", e.ReasonName()))
	}
}
