package follow_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/evegateway/evegateway/cursor"
	"github.com/evegateway/evegateway/cursor/follow"
	"github.com/evegateway/evegateway/gateway"
	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// A session is read to its end, whatever happens to connections and gateways meanwhile.
func Example() {
	client, done := exampleGateway()
	defer done()

	request := &evev1.SubscribeRequest{SessionId: "wrun_1"}
	for m, err := range follow.New(client, request).Messages(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch item := m.GetItem().(type) {
		case *evev1.SubscribeResponse_Fact:
			fmt.Println(item.Fact.GetType())
		case *evev1.SubscribeResponse_Checkpoint:
			fmt.Println(item.Checkpoint.GetReason())
		}
	}
	// Output:
	// session.started
	// delivery.admitted
	// turn.started
	// delivery.consumed
	// delivery.settled
	// turn.settled
	// session.ended
	// CHECKPOINT_REASON_CAUGHT_UP
	// CHECKPOINT_REASON_ENDED
}

// A program that remembers in a file how far it has come.
func ExampleWithSave() {
	client, done := exampleGateway()
	defer done()
	dir, err := os.MkdirTemp("", "follow")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := dir + "/cursor"

	load := func() (c cursor.Cursor, err error) {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			return c, nil // the zero cursor: from the start of the request
		}
		if err != nil {
			return c, err
		}
		err = c.UnmarshalText(text)
		return c, err
	}
	save := func(_ context.Context, c cursor.Cursor) error {
		text, err := c.MarshalText()
		if err != nil {
			return err
		}
		if err := os.WriteFile(file+".new", text, 0o600); err != nil {
			return err
		}
		return os.Rename(file+".new", file) // the old one or the new one, never half of one
	}
	// read is one run of the program. It stops before it has handled the fact it is told to stop at.
	read := func(stopAt string) error {
		start, err := load()
		if err != nil {
			return err
		}
		request := &evev1.SubscribeRequest{SessionId: "wrun_1"}
		for m, err := range follow.New(client, request, follow.WithStart(start), follow.WithSave(save)).Messages(context.Background()) {
			if err != nil {
				return err
			}
			if m.GetFact().GetType() == stopAt {
				return errors.New("stopped")
			}
			if m.GetFact() != nil {
				fmt.Println(m.GetFact().GetType())
			}
		}
		return nil
	}
	fmt.Println(read("delivery.consumed"))
	fmt.Println(read("nothing"))
	// Output:
	// session.started
	// delivery.admitted
	// turn.started
	// stopped
	// delivery.consumed
	// delivery.settled
	// turn.settled
	// session.ended
	// <nil>
}

// A loop that hands messages on acknowledges what is done with, not what was handed on.
func ExampleFollower_Ack() {
	client, done := exampleGateway()
	defer done()
	ctx := context.Background()

	save := func(_ context.Context, c cursor.Cursor) error {
		fmt.Println("saved", c)
		return nil
	}
	f := follow.New(client, &evev1.SubscribeRequest{SessionId: "wrun_1"}, follow.WithSave(save), follow.WithManualAck())
	var batch []*evev1.SubscribeResponse
	write := func() error {
		fmt.Println("written", len(batch))
		defer func() { batch = nil }()
		return f.Ack(ctx, batch[len(batch)-1]) // and with it those before
	}
	for m, err := range f.Messages(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if batch = append(batch, m); len(batch) < 4 {
			continue
		}
		if err := write(); err != nil {
			fmt.Println(err)
			return
		}
	}
	if len(batch) > 0 {
		if err := write(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// written 4
	// saved tide/wrun_1@1.1 v27
	// written 4
	// saved tide/wrun_1@2.0 v27 ended
	// written 1
}

// What went wrong for good can be told apart by its reason.
func ExampleError() {
	client, done := exampleGateway()
	defer done()

	request := &evev1.SubscribeRequest{SessionId: "wrun_2"}
	for _, err := range follow.New(client, request).Messages(context.Background()) {
		failed, ok := errors.AsType[*follow.Error](err)
		switch {
		case ok && failed.Reason == "SESSION_NOT_FOUND":
			fmt.Println("no such session")
		case ok && failed.Reason == "HISTORY_EXPIRED":
			fmt.Println("too late")
		case err != nil:
			fmt.Println(err)
		}
	}
	// Output: no such session
}

// What a program sets up once: a connection that comes back soon and notices when it has died, and a reader that says
// why it waits and gives up some time.
func ExampleNew() {
	conn, err := grpc.NewClient("127.0.0.1:7443",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 250 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 10 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = conn.Close() }()

	f := follow.New(evev1.NewStreamServiceClient(conn), &evev1.SubscribeRequest{SessionId: "wrun_1"},
		follow.WithBackoff(follow.Backoff{GiveUp: 10 * time.Minute}),
		follow.WithRetryNotice(func(failed *follow.Error, wait time.Duration) {
			log.Printf("%v; trying again in %v", failed, wait)
		}))
	fmt.Println(f.Cursor().StreamIndex)
	// Output: 0
}

// exampleGateway is a gateway in front of an agent with one finished session.
func exampleGateway() (client evev1.StreamServiceClient, done func()) {
	eve := fakeeve.New()
	turn := `"scope":{"turnId":"turn_0"},"data":{"turnId":"turn_0"`
	eve.AddSession("wrun_1", fakeeve.SessionSpec{Log: fakeeve.Head(fakeeve.NewMemLog(
		`{"at":"2026-11-01T12:00:00.000Z","facts":[{"type":"session.started","data":{}},`+
			`{"type":"delivery.admitted","data":{"deliveryId":"d1"}},`+
			`{"type":"turn.started",`+turn+`,"cause":{"deliveryId":"d1"},"follows":null}}]}`,
		`{"at":"2026-11-01T12:00:01.000Z","facts":[{"type":"delivery.consumed","scope":{"turnId":"turn_0"},"data":{"deliveryId":"d1","turnId":"turn_0","parts":[]}},`+
			`{"type":"delivery.settled","data":{"deliveryId":"d1","outcome":"handled","turnId":"turn_0"}},`+
			`{"type":"turn.settled",`+turn+`,"outcome":"completed"}},`+
			`{"type":"session.ended","data":{"outcome":"completed"}}]}`,
	), 2)})
	running, err := fakeeve.StartTCP(context.Background(), eve)
	if err != nil {
		log.Fatal(err)
	}
	server, err := gateway.New(gateway.Config{Agents: []gateway.Agent{{
		Name: "tide", URL: running.URL, Transport: running.Transport,
		Tune: func(c *source.Config) { c.Settle = time.Nanosecond }, // what is not there will not come
	}}})
	if err != nil {
		log.Fatal(err)
	}
	lis, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	return evev1.NewStreamServiceClient(conn), func() {
		_ = conn.Close()
		server.Shutdown(context.Background())
		if err := <-served; err != nil {
			log.Fatal(err)
		}
		running.Close()
	}
}
