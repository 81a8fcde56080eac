//go:build realeve

package realeve_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/test/process"
)

// buildGateway builds the binary under test, with the race detector, and returns its path.
func buildGateway(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "gateway")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", binary, "github.com/evegateway/evegateway/cmd/gateway")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the gateway: %v\n%s", err, out)
	}
	return binary
}

// startGateway runs `gateway serve` in front of eve and returns a client of it. When the test ends, the gateway is
// interrupted and has to end in good order.
func startGateway(t *testing.T, binary string, e *eve, bearer string) evev1.StreamServiceClient {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bearer")
	if err := os.WriteFile(file, []byte(bearer+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := process.Start(t, "gateway", "", nil, binary, "serve", "--listen", "127.0.0.1:0", "--eve-url", e.url(), "--eve-bearer-file", file)
	t.Cleanup(func() {
		p.Interrupt(t)
		if out := p.Output(); strings.Contains(out, "DATA RACE") || strings.Contains(out, bearer) {
			t.Errorf("the gateway printed a data race or its credentials:\n%s", out)
		}
	})
	conn, err := grpc.NewClient("passthrough:///"+p.ListenAddress(t), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return evev1.NewStreamServiceClient(conn)
}
