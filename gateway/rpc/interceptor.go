package rpc

import (
	"context"
	"errors"
	"log/slog"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
)

// ServerOptions are the interceptors every service of the gateway runs behind: errors get their trailers, and no
// panic crosses a handler.
func ServerOptions(log *slog.Logger) []grpc.ServerOption {
	caught := recovery.WithRecoveryHandlerContext(func(_ context.Context, p any) error { return Recovered(log, p) })
	return []grpc.ServerOption{
		grpc.ChainStreamInterceptor(streamTrailers, recovery.StreamServerInterceptor(caught)),
		grpc.ChainUnaryInterceptor(unaryTrailers, recovery.UnaryServerInterceptor(caught)),
	}
}

func streamTrailers(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	err := handler(srv, stream)
	if e, ok := errors.AsType[*Error](err); ok {
		stream.SetTrailer(e.trailer())
		return e.GRPCStatus().Err() // the cause stays here
	}
	return err
}

func unaryTrailers(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := handler(ctx, req)
	if e, ok := errors.AsType[*Error](err); ok {
		_ = grpc.SetTrailer(ctx, e.trailer()) // fails only outside of an rpc
		return nil, e.GRPCStatus().Err()
	}
	return resp, err
}
