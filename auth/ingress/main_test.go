package ingress_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/ingress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logged is a log that tests read while others write.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// newAuthenticator makes the authenticator of a configuration that must be good.
func newAuthenticator(t *testing.T, cfg ingress.Config) auth.Authenticator {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	a, err := ingress.New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// saying is a caller with these authorization entries.
func saying(values ...string) auth.Caller {
	var c auth.Caller
	for _, v := range values {
		c.Authorization = append(c.Authorization, auth.NewSecret(v))
	}
	return c
}

func bearer(token string) auth.Caller { return saying("Bearer " + token) }

// file writes a file and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, text)
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// refused checks that a call was refused for a reason, in words that tell the caller what to do, and that neither these
// nor the log repeat any of the secrets.
func refused(t *testing.T, name string, p auth.Principal, err error, want auth.Reason, log *logged, secrets ...string) {
	t.Helper()
	var e *auth.Error
	if !errors.As(err, &e) || e.Reason != want || p.ID != "" {
		t.Errorf("%s: %v, %v; want reason %v", name, p.ID, err, want)
		return
	}
	if !strings.Contains(e.Message, ": ") {
		t.Errorf("%s: %q does not say what to do", name, e.Message)
	}
	text := err.Error()
	if log != nil {
		text += log.String()
	}
	for _, s := range secrets {
		if len(s) >= 8 && strings.Contains(text, s) {
			t.Errorf("%s: %q is in %q", name, s, text)
		}
	}
}
