package main

import (
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// messageBytes is the largest record to receive, and messageMargin what the library may see around it.
const (
	messageBytes  = 16 << 20
	messageMargin = 64 << 10
)

// dial makes a connection to the gateway at an address. It is opened when it is used.
func dial(server string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(server,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(messageBytes+messageMargin)),
		// The default would wait for up to two minutes after a gateway is back.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 250 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 10 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	)
	if err != nil {
		return nil, usagef("the gateway's address: %w", err)
	}
	return conn, nil
}

// boundOf is the bound that a value of --until names; nil for the session's own end.
func boundOf(until string) (*evev1.Until, error) {
	switch until {
	case "end":
		return nil, nil
	case "tail":
		return &evev1.Until{Bound: &evev1.Until_Tail_{Tail: &evev1.Until_Tail{}}}, nil
	case "turn":
		return &evev1.Until{Bound: &evev1.Until_TurnEnd_{TurnEnd: &evev1.Until_TurnEnd{}}}, nil
	}
	return nil, fmt.Errorf("unknown bound %q", until)
}
