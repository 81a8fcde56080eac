package fakeeve_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// contents are the lines of a log; "-" is one that is not there any more.
func contents(l fakeeve.Log) []string {
	var lines []string
	for i := range l.Len() {
		if raw := l.Line(i); raw == nil {
			lines = append(lines, "-")
		} else {
			lines = append(lines, string(raw))
		}
	}
	return lines
}

// TestMemLogRewritten: every change, over lines of its own and over those of a base.
func TestMemLogRewritten(t *testing.T) {
	makers := map[string]func() *fakeeve.MemLog{
		"own lines": func() *fakeeve.MemLog { return fakeeve.NewMemLog("0", "1", "2", "3") },
		"base":      func() *fakeeve.MemLog { return fakeeve.Continue(fakeeve.NewMemLog("0", "1", "2", "3")) },
		"both": func() *fakeeve.MemLog {
			l := fakeeve.Continue(fakeeve.Head(fakeeve.NewMemLog("0", "1", "x"), 2))
			l.Append("2", "3")
			return l
		},
	}
	tests := []struct {
		name   string
		change func(*fakeeve.MemLog)
		want   []string
	}{
		{"nothing", func(*fakeeve.MemLog) {}, []string{"0", "1", "2", "3"}},
		{"append", func(l *fakeeve.MemLog) { l.Append("4", "5") }, []string{"0", "1", "2", "3", "4", "5"}},
		{"replace", func(l *fakeeve.MemLog) { l.Replace(1, "one"); l.Replace(3, "three") }, []string{"0", "one", "2", "three"}},
		{"trim", func(l *fakeeve.MemLog) { l.Trim(1, 3) }, []string{"0", "-", "-", "3"}},
		{"trim beyond the end", func(l *fakeeve.MemLog) { l.Trim(3, 30) }, []string{"0", "1", "2", "-"}},
		{"truncate", func(l *fakeeve.MemLog) { l.Truncate(3) }, []string{"0", "1", "2"}},
		{"truncate and go on", func(l *fakeeve.MemLog) {
			l.Replace(0, "zero")
			l.Replace(1, "one")
			l.Truncate(1)
			l.Append("a", "b")
		}, []string{"zero", "a", "b"}},
		{"truncate beyond the end", func(l *fakeeve.MemLog) { l.Truncate(9) }, []string{"0", "1", "2", "3"}},
		{"purge", func(l *fakeeve.MemLog) { l.Purge() }, nil},
	}
	for kind, maker := range makers {
		for _, tt := range tests {
			l := maker()
			changed, ended := l.Watch()
			tt.change(l)
			if diff := cmp.Diff(tt.want, contents(l)); diff != "" || ended {
				t.Errorf("%s, %s: ended %v (-want +got):\n%s", kind, tt.name, ended, diff)
			}
			select {
			case <-changed:
				if tt.name == "nothing" {
					t.Errorf("%s: woken by nothing", kind)
				}
			default:
				if tt.name != "nothing" {
					t.Errorf("%s, %s: not woken", kind, tt.name)
				}
			}
			if l.Line(99) != nil {
				t.Errorf("%s, %s: a line beyond the end", kind, tt.name)
			}
		}
	}
}

// TestMemLogEnd: an end wakes and stays.
func TestMemLogEnd(t *testing.T) {
	l := fakeeve.NewMemLog()
	changed, _ := l.Watch()
	l.End()
	<-changed
	if _, ended := l.Watch(); !ended {
		t.Error("not ended")
	}
}

// TestAppendNumbers: an append tells the number of its first line.
func TestAppendNumbers(t *testing.T) {
	l := fakeeve.Continue(fakeeve.Generated(5, fakeeve.Commits, 27))
	if a, b := l.Append("5", "6"), l.AppendRaw([]byte("7")); a != 5 || b != 7 {
		t.Errorf("first lines %d and %d", a, b)
	}
}
