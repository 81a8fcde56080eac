// Package process runs other programs for a test: started, watched and ended one by one, by their own handle.
package process

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Patience bounds every wait for something a program should do at once.
const Patience = 30 * time.Second

// Process is a program that a test started.
type Process struct {
	name   string
	cmd    *exec.Cmd
	output *output
	exited chan struct{}
	err    error // what Wait said; set when exited is closed
}

// Start runs a program in a directory, with env on top of the test's own environment, until it ends or the test does.
// If the test fails, its output is shown.
func Start(t *testing.T, name, dir string, env []string, path string, args ...string) *Process {
	t.Helper()
	// Not bound to the test's context, which ends before the cleanups that let a program end in good order.
	cmd := exec.Command(path, args...) //nolint:gosec,noctx // the test names the program; see above
	p := &Process{name: name, cmd: cmd, output: &output{grown: make(chan struct{})}, exited: make(chan struct{})}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), p.output, p.output
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.Kill(t)
		if t.Failed() {
			t.Logf("output of %s:\n%s", name, p.Output())
		}
	})
	return p
}

// Interrupt asks the program to end, as Ctrl-C does, and fails the test unless it ends with status 0.
func (p *Process) Interrupt(t *testing.T) {
	t.Helper()
	p.end(t, syscall.SIGINT)
	if p.err != nil {
		t.Errorf("%s, interrupted: %v", p.name, p.err)
	}
}

// Kill ends the program without a chance to say goodbye.
func (p *Process) Kill(t *testing.T) {
	t.Helper()
	p.end(t, syscall.SIGKILL)
}

// end sends the program a signal and waits until it is gone.
func (p *Process) end(t *testing.T, sig syscall.Signal) {
	t.Helper()
	_ = p.cmd.Process.Signal(sig) // one that has ended by itself is what Wait tells
	select {
	case <-p.exited:
	case <-time.After(Patience):
		t.Errorf("%s is still there %v after the signal %v", p.name, Patience, sig)
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// Exited is closed when the program has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

func (p *Process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Output is everything the program has printed so far, to either of its outputs.
func (p *Process) Output() string {
	text, _ := p.output.read()
	return text
}

// WaitFor waits until find finds what it looks for in the output, and returns it.
func (p *Process) WaitFor(t *testing.T, what string, find func(text string) (string, bool)) string {
	t.Helper()
	deadline := time.After(Patience)
	for {
		ended := p.hasExited() // before the output is read: what an ended program printed is complete
		text, grown := p.output.read()
		if found, ok := find(text); ok {
			return found
		}
		if ended {
			t.Fatalf("%s ended (%v) before it printed %s:\n%s", p.name, p.err, what, text)
		}
		select {
		case <-grown:
		case <-p.exited:
		case <-deadline:
			t.Fatalf("%s did not print %s in %v:\n%s", p.name, what, Patience, text)
		}
	}
}

// ListenAddress waits for the log line in which a gateway says where it listens.
func (p *Process) ListenAddress(t *testing.T) string {
	t.Helper()
	return p.WaitFor(t, "its address", func(text string) (string, bool) {
		for line := range strings.Lines(text) {
			var entry struct{ Msg, Address string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" {
				return entry.Address, true
			}
		}
		return "", false
	})
}

// output collects what a program prints and tells who waits for more of it.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{} // closed and replaced when there is more
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.grown)
	o.grown = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) read() (text string, grown <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.grown
}
