// Package reload keeps what files say up to date without a restart, and without ever taking a bad file's word.
package reload

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Interval is how old an answer can be: files are read again at most that often, when someone asks.
	Interval = time.Second
	// remindAfter is how often a problem that lasts is logged again.
	remindAfter = time.Minute
	// maxFile bounds what is read of a file.
	maxFile = 4 << 20
)

// Files is what a set of files says, read together. When they change to something that cannot be read or parsed, the
// last good state stays and the problem is logged. Whole texts are compared, not times and sizes: a change is never
// overlooked. Safe for concurrent use.
type Files[T any] struct {
	what  string
	paths []string
	parse func(texts [][]byte) (T, error)
	log   *slog.Logger

	current atomic.Pointer[T]

	mu       sync.Mutex // held by the one caller that reads; others go on with what is known
	due      time.Time
	sum      [sha256.Size]byte
	problem  string
	reported time.Time
}

// New reads the files and fails if they are bad now. what names them in logs; parse must not put their content into
// its errors.
func New[T any](what string, paths []string, parse func(texts [][]byte) (T, error), log *slog.Logger) (*Files[T], error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := &Files[T]{what: what, paths: paths, parse: parse, log: log}
	if err := f.read(); err != nil {
		return nil, err
	}
	f.due = time.Now().Add(Interval)
	return f, nil
}

// Get returns what the files said last when they were good.
func (f *Files[T]) Get() T {
	if f.mu.TryLock() {
		if now := time.Now(); !now.Before(f.due) {
			f.report(f.read(), now)
			f.due = now.Add(Interval)
		}
		f.mu.Unlock()
	}
	return *f.current.Load()
}

// read takes over what the files say now, if it is new and good.
func (f *Files[T]) read() error {
	texts := make([][]byte, len(f.paths))
	hash := sha256.New()
	for i, path := range f.paths {
		text, err := readFile(path)
		if err != nil {
			return fmt.Errorf("reading the %s: %w", f.what, err)
		}
		texts[i] = text
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		hash.Write(text)
	}
	sum := [sha256.Size]byte(hash.Sum(nil))
	if f.current.Load() != nil && sum == f.sum {
		return nil
	}
	value, err := f.parse(texts)
	if err != nil {
		return fmt.Errorf("reading the %s %q: %w", f.what, f.paths, err)
	}
	if f.current.Swap(&value) != nil {
		f.log.LogAttrs(context.Background(), slog.LevelInfo, "file reloaded", slog.String("file", f.what))
	}
	f.sum = sum
	return nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the path comes from the operator's configuration
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return text, nil
}

// report logs a problem when it is new, now and then while it lasts, and when it is over.
func (f *Files[T]) report(err error, now time.Time) {
	switch {
	case err == nil && f.problem != "":
		f.problem = ""
		f.log.LogAttrs(context.Background(), slog.LevelInfo, "file is good again", slog.String("file", f.what))
	case err != nil && (err.Error() != f.problem || now.Sub(f.reported) >= remindAfter):
		f.problem, f.reported = err.Error(), now
		f.log.LogAttrs(context.Background(), slog.LevelError, "file is bad: what it said before stays in force, until it is repaired",
			slog.String("file", f.what), slog.String("problem", f.problem))
	}
}
