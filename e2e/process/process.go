// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package process runs a built binary the way a user does and watches it from
// outside: what it prints, what it answers, what it costs, how it ends.
//
// A process lives in a group of its own, in a directory of its own, and never
// longer than its test: on Linux the kernel kills it even when the test binary
// dies without cleaning up. Methods that wait run on the test's goroutine and
// fail the test; what the process printed is shown when a test has failed.
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
	// How long a process may take to vanish once it was killed.
	killTimeout = time.Minute
	// How long its last words may take to be read once it has ended, on a machine that has other work.
	pipeTimeout = 10 * time.Second
)

// Settings say what to run.
type Settings struct {
	// Path of the binary: see Binary.
	Path string
	Args []string
	// Env is added to the environment of the test; NAME=value.
	Env []string
	// Dir is the working directory. Default a new one that goes with the test.
	Dir string
}

// Process is a binary that was started, and perhaps restarted.
type Process struct {
	t   testing.TB
	set Settings
	log *transcript
	run *run
}

// run is one life of a process. Its fields but done are fixed before started or
// after done is closed.
type run struct {
	cmd  *exec.Cmd
	err  error
	done chan struct{}
}

// Start runs a binary until it ends, is told to, or the test is over.
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
	// Pipes that a grandchild keeps open must not keep Wait from returning.
	cmd.WaitDelay = pipeTimeout
	r := &run{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The parent-death signal is bound to the thread that forks, so that thread stays.
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

// Restart starts the process again with the same arguments in the same
// directory. It must have ended. Waits for log lines see new lines only.
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

// PID of the current or last life.
func (p *Process) PID() int { return p.run.cmd.Process.Pid }

// Dir is the working directory.
func (p *Process) Dir() string { return p.set.Dir }

// Output is what the process printed since it was last started, stdout and
// stderr in one, less what exceeded the bound of the transcript.
func (p *Process) Output() string { return strings.Join(p.log.lines(), "\n") }

// Signal sends a signal to the process alone, as a service manager would.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.run.cmd.Process.Signal(s), "cannot signal %s", p.name())
}

// Kill ends the process and its children by SIGKILL and waits for the end.
func (p *Process) Kill() {
	p.t.Helper()
	p.run.kill()
	p.awaitEnd(killTimeout)
}

// Wait waits for the process to end by itself and returns its exit code, or -1
// when a signal ended it.
func (p *Process) Wait(timeout time.Duration) int {
	p.t.Helper()
	p.awaitEnd(timeout)
	var exit *exec.ExitError
	if err := p.run.err; err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		p.t.Fatalf("cannot wait for %s: %v", p.name(), err)
	}
	return p.run.cmd.ProcessState.ExitCode()
}

// Stop sends a signal and returns the exit code of the end that follows.
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

// WaitLog waits for a printed line that contains text and returns the line.
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

// Answer judges an HTTP answer, and says why it is not the one waited for.
type Answer func(status int, body string) (ok bool, why string)

// WaitHTTP waits for a GET of url to be answered well. Without a judgement of the
// caller's, any 2xx status is well.
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

// until is wait.Until that gives up when the process ends: nothing will come then.
func (p *Process) until(timeout time.Duration, cond func() (bool, string)) {
	p.t.Helper()
	wait.Until(p.t, timeout, func() (bool, string) {
		running := p.Running() // asked first: what a process printed before its end counts
		ok, why := cond()
		if !ok && !running {
			p.t.Fatalf("%s ended (%v): %s", p.name(), p.run.cmd.ProcessState, why)
		}
		return ok, why
	})
}

func (p *Process) name() string { return filepath.Base(p.set.Path) }

// kill may come after the end; the group is gone then.
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
