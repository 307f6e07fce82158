// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package process runs a built binary as a user does, and observes it from outside: its output, its responses, its
// resources and its end.
//
// A process has a process group and a directory of its own, and ends at the latest with its test: on Linux the kernel
// kills it even if the test binary dies without cleaning up. Methods that wait must run on the test's goroutine,
// because they fail the test. When a test has failed, it logs the output of its processes.
package process

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	// The longest time until a killed process has ended.
	killTimeout = time.Minute
	// The longest time, on a busy machine, to read the rest of the output after the end.
	pipeTimeout = 10 * time.Second
)

// Settings are what to run.
type Settings struct {
	// Path of the binary: see Binary.
	Path string
	Args []string
	// Env is added to the test's environment, as NAME=value.
	Env []string
	// Dir is the working directory. By default it is a temporary one, which is removed after the test.
	Dir string
}

// Process is a binary that was started, and may be restarted.
type Process struct {
	t   testing.TB
	set Settings
	log *transcript
	run *run
}

// run is one run of a process. cmd is set before it starts, and err before done is closed.
type run struct {
	cmd  *exec.Cmd
	err  error
	done chan struct{}
}

// Start runs a binary until it ends, is stopped, or the test ends.
func Start(t testing.TB, set Settings) *Process {
	t.Helper()
	if set.Dir == "" {
		set.Dir = t.TempDir()
	}
	p := &Process{t: t, set: set, log: newTranscript()}
	t.Cleanup(func() {
		if p.run != nil {
			p.run.kill()
			p.awaitEnd(killTimeout)
		}
		if t.Failed() {
			t.Logf("%s printed:\n%s", p.name(), p.log)
		}
	})
	p.start()
	return p
}

func (p *Process) start() {
	p.t.Helper()
	cmd := exec.Command(p.set.Path, p.set.Args...)
	cmd.Dir = p.set.Dir
	cmd.Env = append(os.Environ(), p.set.Env...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.SysProcAttr = attributes()
	// Wait must return even if a grandchild keeps the pipes open.
	cmd.WaitDelay = pipeTimeout
	r := &run{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The parent-death signal is sent when the forking thread ends, so that thread must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			r.err = cmd.Wait()
		}
		close(r.done)
	}()
	require.NoError(p.t, <-started, "cannot start %s", p.set.Path)
	p.run = r
}

// Restart starts the process again, with the same arguments in the same directory. It must have ended. Waits for log
// lines consider only new lines.
func (p *Process) Restart() {
	p.t.Helper()
	require.False(p.t, p.Running(), "%s still runs", p.name())
	p.log.cut()
	p.start()
}

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.run.done:
		return false
	default:
		return true
	}
}

// PID returns the process ID of the last run.
func (p *Process) PID() int { return p.run.cmd.Process.Pid }

// Dir returns the working directory.
func (p *Process) Dir() string { return p.set.Dir }

// Output returns what the process printed since its last start, stdout and stderr together, without what exceeds the
// limits of the transcript.
func (p *Process) Output() string { return strings.Join(p.log.lines(), "\n") }

// Signal sends a signal only to the process itself, as a service manager would.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.run.cmd.Process.Signal(s), "cannot signal %s", p.name())
}

// Kill ends the process and its children by SIGKILL and waits until it has ended.
func (p *Process) Kill() {
	p.t.Helper()
	p.run.kill()
	p.awaitEnd(killTimeout)
}

// Wait waits until the process ends by itself. It returns the exit code, or -1 if a signal ended it.
func (p *Process) Wait(timeout time.Duration) int {
	p.t.Helper()
	p.awaitEnd(timeout)
	var exit *exec.ExitError
	if err := p.run.err; err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		p.t.Fatalf("cannot wait for %s: %v", p.name(), err)
	}
	return p.run.cmd.ProcessState.ExitCode()
}

// Stop sends a signal, waits for the end, and returns the exit code.
func (p *Process) Stop(s os.Signal, timeout time.Duration) int {
	p.t.Helper()
	p.Signal(s)
	return p.Wait(timeout)
}

func (p *Process) awaitEnd(timeout time.Duration) {
	p.t.Helper()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.run.done:
	case <-timer.C:
		p.t.Fatalf("%s did not end within %v", p.name(), timeout)
	}
}

// WaitLog waits for a printed line that contains text, and returns the line.
func (p *Process) WaitLog(timeout time.Duration, text string) string {
	p.t.Helper()
	var found string
	p.until(timeout, func() (bool, string) {
		for _, line := range p.log.lines() {
			if strings.Contains(line, text) {
				found = line
				return true, ""
			}
		}
		return false, fmt.Sprintf("%s printed no line containing %q", p.name(), text)
	})
	return found
}

// Answer judges an HTTP response. If that is not the one to wait for, it says why.
type Answer func(status int, body string) (ok bool, why string)

// WaitHTTP waits for a good response to a GET of url. If well is nil, any 2xx status is good.
func (p *Process) WaitHTTP(timeout time.Duration, url string, well Answer) {
	p.t.Helper()
	if well == nil {
		well = func(status int, _ string) (bool, string) {
			return status/100 == 2, fmt.Sprintf("GET %s answers %d", url, status)
		}
	}
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	p.until(timeout, func() (bool, string) {
		resp, err := client.Get(url)
		if err != nil {
			return false, err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
		if err != nil {
			return false, err.Error()
		}
		return well(resp.StatusCode, string(body))
	})
}

// until is wait.Until, but fails at once when the process ends.
func (p *Process) until(timeout time.Duration, cond func() (bool, string)) {
	p.t.Helper()
	wait.Until(p.t, timeout, func() (bool, string) {
		running := p.Running() // checked before the condition, because output from before the end counts
		ok, why := cond()
		if !ok && !running {
			p.t.Fatalf("%s ended (%v): %s", p.name(), p.run.cmd.ProcessState, why)
		}
		return ok, why
	})
}

func (p *Process) name() string { return filepath.Base(p.set.Path) }

// kill may come after the end; then the group no longer exists.
func (r *run) kill() {
	select {
	case <-r.done:
		return
	default:
	}
	if err := killGroup(r.cmd.Process.Pid); err != nil && !errors.Is(err, syscall.ESRCH) {
		_ = r.cmd.Process.Kill()
	}
}
