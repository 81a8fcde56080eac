package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// child is a process that this one started.
type child struct {
	name string
	cmd  *exec.Cmd
	// in and out carry orders and answers; nil for a gateway.
	in  io.WriteCloser
	out *json.Decoder
}

// startRole starts this program again, in a role, and waits until it is ready.
func startRole(ctx context.Context, role string, stderr io.Writer) (*child, answer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, answer{}, err
	}
	c := &child{name: role, cmd: exec.CommandContext(ctx, self)} //nolint:gosec // this very program
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	c.cmd.Stderr = stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, answer{}, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, answer{}, err
	}
	c.out = json.NewDecoder(out)
	if err := c.cmd.Start(); err != nil {
		return nil, answer{}, fmt.Errorf("starting %s: %w", role, err)
	}
	ready, err := c.answer()
	if err != nil {
		return nil, answer{}, errors.Join(err, c.stop())
	}
	return c, ready, nil
}

// do gives an order and waits for the answer.
func (c *child) do(o order) (answer, error) {
	if err := json.NewEncoder(c.in).Encode(o); err != nil {
		return answer{}, fmt.Errorf("%s takes no orders: %w", c.name, err)
	}
	return c.answer()
}

func (c *child) answer() (a answer, err error) {
	if err := c.out.Decode(&a); err != nil {
		return a, fmt.Errorf("%s does not answer: %w", c.name, err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("%s: %s", c.name, a.Error)
	}
	return a, nil
}

// stop ends the process: a role when it is given no more orders, a gateway when it is told.
func (c *child) stop() error {
	if c.in != nil {
		_ = c.in.Close()
	} else {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
	}
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// buildGateway builds the gateway as it is shipped.
func buildGateway(ctx context.Context, directory string, stderr io.Writer) (string, error) {
	path := filepath.Join(directory, "gateway")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=auto", "-o", path, "github.com/evegateway/evegateway/cmd/gateway") //nolint:gosec // a directory of our own
	cmd.Env, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building the gateway: %w", err)
	}
	return path, nil
}

// startGateway starts a gateway in front of an Eve, and waits until it listens.
func startGateway(ctx context.Context, program, eve string) (*child, string, error) {
	c := &child{name: "gateway", cmd: exec.CommandContext(ctx, program, "serve", "--listen", "127.0.0.1:0", "--eve-url", eve)} //nolint:gosec // built here, or named by the caller
	stderr, err := c.cmd.StderrPipe()
	if err != nil {
		return nil, "", err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, "", fmt.Errorf("starting the gateway: %w", err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			go func() { _, _ = io.Copy(io.Discard, stderr) }() // until Wait closes it
			return c, line.Address, nil
		}
	}
	return nil, "", errors.Join(errors.New("the gateway ended before it listened"), c.stop())
}

// used is what the process has used so far.
func (c *child) used() (cpu time.Duration, peak int64, err error) {
	of := func(file string) (string, error) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", c.cmd.Process.Pid, file)) //nolint:gosec // of our own child
		return string(text), err
	}
	stat, err := of("stat")
	if err != nil {
		return 0, 0, err
	}
	if cpu, err = cpuTime(stat); err != nil {
		return 0, 0, err
	}
	status, err := of("status")
	if err != nil {
		return 0, 0, err
	}
	peak, err = peakRSS(status)
	return cpu, peak, err
}

// tick is the unit of CPU time in /proc: USER_HZ, which is 100 on every architecture that Go runs on.
const tick = time.Second / 100

// cpuTime is user and system time out of /proc/<pid>/stat.
func cpuTime(stat string) (time.Duration, error) {
	// The second field, the program's name, is in brackets and may hold anything.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const utime, stime = 14 - 3, 15 - 3 // numbered from 1, and two are cut off
	if len(fields) <= stime {
		return 0, fmt.Errorf("stat has only %d fields", len(fields))
	}
	var sum int64
	for _, f := range []string{fields[utime], fields[stime]} {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("stat: %w", err)
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}

// peakRSS is the most memory that was resident at a time, in bytes, out of /proc/<pid>/status.
func peakRSS(status string) (int64, error) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("status: %w", err)
			}
			return kb << 10, nil
		}
	}
	return 0, errors.New("status has no VmHWM")
}
