package source_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/evegateway/evegateway/gateway/source"
)

// TestTransport checks the settings that net/http has other defaults for (contract G8, G10, O16, 7.1).
func TestTransport(t *testing.T) {
	for name, transport := range map[string]*http.Transport{
		"network": source.NewTransport(nil),
		"dial":    source.NewTransport((&net.Dialer{}).DialContext),
	} {
		switch {
		case !transport.DisableCompression:
			t.Errorf("%s: compression stalls live lines", name)
		case transport.Proxy != nil:
			t.Errorf("%s: a proxy from the environment would see credentials", name)
		case transport.ResponseHeaderTimeout != 0:
			t.Errorf("%s: Eve may take long to open a stream", name)
		case transport.IdleConnTimeout <= 0 || transport.IdleConnTimeout >= 5*time.Second:
			t.Errorf("%s: idle connections are kept for %v, Eve drops them after 5 s", name, transport.IdleConnTimeout)
		case transport.DialContext == nil:
			t.Errorf("%s: dialing has no deadline", name)
		}
	}
}

// TestErrorText: an error says what happened and gives its cause to those who ask.
func TestErrorText(t *testing.T) {
	e := &source.Error{Reason: source.Unavailable, Message: "the agent cannot be reached"}
	if got := e.Error(); got != "the agent cannot be reached" {
		t.Errorf("%q", got)
	}
	e.Err = io.ErrUnexpectedEOF
	if got := e.Error(); got != "the agent cannot be reached: unexpected EOF" || !errors.Is(e, io.ErrUnexpectedEOF) {
		t.Errorf("%q", got)
	}
}

// TestNeverEOF: an error that ends a read is never taken for a complete read, whatever the server did.
func TestNeverEOF(t *testing.T) {
	config := func(c *source.Config) { c.OpenAttempts = 3 }
	for name, fault := range cuts() {
		bubble(t, setup{lines: pages(3), script: each(fault), config: config}, func(w *world) {
			_, err := w.read(source.Request{Bounded: true})
			w.failed(err, source.Unavailable)
			if errors.Is(err, io.EOF) {
				t.Errorf("%s: %v says that the read is complete", name, err)
			}
		})
	}
}
