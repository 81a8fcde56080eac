package reload_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/evegateway/evegateway/auth/internal/reload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// parse joins the texts; one that contains BAD is bad.
func parse(texts [][]byte) (string, error) {
	text := string(bytes.Join(texts, []byte("+")))
	if strings.Contains(text, "BAD") {
		return "", errors.New("no good")
	}
	return text, nil
}

func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		write(t, a, "1")
		write(t, b, "2")
		var log bytes.Buffer
		f, err := reload.New("pair", []string{a, b}, parse, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			name   string
			change func()
			wait   time.Duration
			want   string
			logged []string
		}{
			{"as it was", func() {}, 0, "1+2", nil},
			{"not read again at once", func() { write(t, a, "3") }, 999 * time.Millisecond, "1+2", nil},
			{"read again", func() {}, time.Millisecond, "3+2", []string{"level=INFO msg=\"file reloaded\" file=pair"}},
			{"of the same size and time", func() {
				info, err := os.Stat(a)
				if err != nil {
					t.Fatal(err)
				}
				write(t, a, "4")
				if err := os.Chtimes(a, info.ModTime(), info.ModTime()); err != nil {
					t.Fatal(err)
				}
			}, time.Second, "4+2", []string{"reloaded"}},
			{"text moves from one file to the other", func() { write(t, a, ""); write(t, b, "42") }, time.Second, "+42", []string{"reloaded"}},
			{"a bad file changes nothing", func() { write(t, b, "BAD") }, time.Second, "+42", []string{"level=ERROR msg=\"file is bad"}},
			{"and is not reported every second", func() {}, time.Second, "+42", nil},
			{"but again while it lasts", func() {}, time.Minute, "+42", []string{"level=ERROR"}},
			{"bad in another way", func() {
				if err := os.Remove(b); err != nil {
					t.Fatal(err)
				}
			}, time.Second, "+42", []string{"level=ERROR"}},
			{"back to what it was", func() { write(t, b, "42") }, time.Second, "+42", []string{"msg=\"file is good again\""}},
			{"bad once more", func() { write(t, b, "BAD") }, time.Second, "+42", []string{"level=ERROR"}},
			{"repaired", func() { write(t, b, "5") }, time.Second, "+5", []string{"reloaded", "good again"}},
			{"too large", func() { write(t, b, strings.Repeat("x", 4<<20+1)) }, time.Second, "+5", []string{"larger than"}},
			{"replaced by another file", func() {
				write(t, b+".new", "6")
				if err := os.Rename(b+".new", b); err != nil {
					t.Fatal(err)
				}
			}, time.Second, "+6", []string{"reloaded", "good again"}},
		} {
			log.Reset()
			step.change()
			time.Sleep(step.wait) // virtual
			if got := f.Get(); got != step.want {
				t.Errorf("%s: %.20q, want %q", step.name, got, step.want)
			}
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			if log.Len() == 0 {
				lines = nil
			}
			if len(lines) != len(step.logged) {
				t.Errorf("%s: logged %q, want %d lines", step.name, lines, len(step.logged))
				continue
			}
			for i, want := range step.logged {
				if !strings.Contains(lines[i], want) {
					t.Errorf("%s: logged %q, want %q", step.name, lines[i], want)
				}
			}
		}
	})
}

func TestFilesBadAtFirst(t *testing.T) {
	good, bad := filepath.Join(t.TempDir(), "good"), filepath.Join(t.TempDir(), "bad")
	write(t, good, "1")
	write(t, bad, "BAD secret")
	for name, path := range map[string]string{"missing": good + ".not", "a directory": t.TempDir(), "bad": bad} {
		_, err := reload.New("pair", []string{good, path}, parse, nil)
		if err == nil || !strings.Contains(err.Error(), "reading the pair") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFilesFromManyGoroutines: while files change, everyone gets something whole.
func TestFilesFromManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a")
		write(t, path, "0")
		f, err := reload.New("file", []string{path}, parse, nil)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 100 {
					if got := f.Get(); len(got) != 1 {
						t.Errorf("read %q", got)
					}
					time.Sleep(100 * time.Millisecond) // virtual
				}
			})
		}
		for i := range 9 {
			write(t, path+".new", string(rune('1'+i)))
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second + time.Millisecond) // virtual
		}
		wg.Wait()
		time.Sleep(time.Second)
		if got := f.Get(); got != "9" {
			t.Errorf("at last %q", got)
		}
	})
}
