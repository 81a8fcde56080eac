package process_test

import (
	"testing"

	"github.com/evegateway/evegateway/test/process"
)

func TestProcessEndsWhenInterrupted(t *testing.T) {
	t.Parallel()
	p := process.Start(t, "shell", t.TempDir(), []string{"GREETING=127.0.0.1:7"}, "/bin/sh", "-c",
		`trap 'exit 0' INT; echo not json; echo "{\"msg\":\"listening\",\"address\":\"$GREETING\"}" >&2; while :; do sleep 0.01; done`)
	if got := p.ListenAddress(t); got != "127.0.0.1:7" {
		t.Errorf("listens on %q", got)
	}
	p.Interrupt(t)
	select {
	case <-p.Exited():
	default:
		t.Error("interrupted, and still there")
	}
}
