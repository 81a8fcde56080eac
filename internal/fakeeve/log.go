package fakeeve

import (
	"slices"
	"sync"
)

// Log is the stored stream of a session: an append-only list of lines, numbered from 0 (contract 2.1).
//
// A Log that is nothing more has a fixed length and is closed: no line will ever follow. One that grows also
// implements [Watcher]. Implementations must be safe for concurrent use.
type Log interface {
	// Len is the number of stored lines; the durable tail is Len() - 1.
	Len() int64
	// Line is line i without its line end, for 0 <= i < Len(). nil is a line that readers can no longer have: the
	// server skips it and names the next one by a position record (contract 2.4). The caller does not write to it.
	Line(i int64) []byte
}

// Watcher is a [Log] that can grow or be closed.
type Watcher interface {
	Log
	// Watch tells whether the stored stream is closed, and gives a channel that is closed at the next change. Take
	// it before reading Len, then wait on it: no change is missed.
	Watch() (changed <-chan struct{}, ended bool)
}

// appender is a Log that can write a line into a buffer of the caller, so that reading it allocates nothing.
type appender interface {
	appendLine(dst []byte, i int64) []byte
}

// watch is Watch for any Log.
func watch(l Log) (changed <-chan struct{}, ended bool) {
	if w, ok := l.(Watcher); ok {
		return w.Watch()
	}
	return nil, true
}

// MemLog is a [Log] in memory that grows, wakes its followers, and can be rewritten the way no real log is, to show
// how a reader takes it. The zero value is not usable; see [NewMemLog] and [Continue].
type MemLog struct {
	mu      sync.Mutex
	base    Log              // the lines below baseLen; nil when there are none
	baseLen int64            // how many lines of base still count
	over    map[int64][]byte // lines below baseLen that were rewritten
	lines   [][]byte         // the lines from baseLen on
	ended   bool
	changed chan struct{} // closed at the next change; nil while nobody watches
}

var _ Watcher = (*MemLog)(nil)

// NewMemLog is an open log that starts with these lines.
func NewMemLog(lines ...string) *MemLog {
	l := &MemLog{}
	l.Append(lines...)
	return l
}

// Continue is an open log whose history is base and that grows from there: a long generated history with a live end.
func Continue(base Log) *MemLog {
	return &MemLog{base: base, baseLen: base.Len()}
}

// Len implements [Log].
func (l *MemLog) Len() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.len()
}

func (l *MemLog) len() int64 { return l.baseLen + int64(len(l.lines)) }

// Line implements [Log]. A line at or beyond the end is nil, so that a log truncated under a reader does no harm.
func (l *MemLog) Line(i int64) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i >= l.len() {
		return nil
	}
	if i >= l.baseLen {
		return l.lines[i-l.baseLen]
	}
	if line, ok := l.over[i]; ok {
		return line
	}
	return l.base.Line(i)
}

// Watch implements [Watcher].
func (l *MemLog) Watch() (<-chan struct{}, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed, l.ended
}

// change runs f under the lock and wakes everyone who watches.
func (l *MemLog) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Append adds lines, each without its line end, and wakes the followers once: they see all of them pending at the
// same time. It returns the number of the first.
func (l *MemLog) Append(lines ...string) int64 {
	raw := make([][]byte, len(lines))
	for i, line := range lines {
		raw[i] = []byte(line)
	}
	return l.AppendRaw(raw...)
}

// AppendRaw is Append without a copy; nil is a line that was trimmed before anyone could read it.
func (l *MemLog) AppendRaw(lines ...[]byte) (first int64) {
	l.change(func() {
		first = l.len()
		l.lines = append(l.lines, lines...)
	})
	return first
}

// End closes the stored stream: followers get what is left, then the end.
func (l *MemLog) End() {
	l.change(func() { l.ended = true })
}

// Replace rewrites line i.
func (l *MemLog) Replace(i int64, line string) {
	l.change(func() { l.set(i, []byte(line)) })
}

// Trim takes the lines from <= i < to away from readers, as a server does that keeps only some of them; what
// follows keeps its numbers.
func (l *MemLog) Trim(from, to int64) {
	l.change(func() {
		for i := from; i < min(to, l.len()); i++ {
			l.set(i, nil)
		}
	})
}

func (l *MemLog) set(i int64, line []byte) {
	if i >= l.baseLen {
		l.lines[i-l.baseLen] = line
		return
	}
	if l.over == nil {
		l.over = make(map[int64][]byte)
	}
	l.over[i] = line
}

// Truncate drops all lines from n on: the stored stream as it was before they were written.
func (l *MemLog) Truncate(n int64) {
	l.change(func() {
		if n < l.baseLen {
			l.baseLen, l.lines = n, nil
			return
		}
		if n < l.len() {
			l.lines = slices.Clip(l.lines[:n-l.baseLen])
		}
	})
}

// Purge drops everything: the stream looks like that of a session that has not begun (contract G7). For the other
// answer a purged session can give, 410, see [Session.Expire].
func (l *MemLog) Purge() { l.Truncate(0) }
