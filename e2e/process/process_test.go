// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const timeout = time.Minute

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
		return
	}
	goleak.VerifyTestMain(m)
}

// act starts this test binary in a role: see play.
func act(t *testing.T, role string, args ...string) *Process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return Start(t, Settings{Path: self, Args: args, Env: []string{roleVariable + "=" + role}})
}

func TestWaitLogReturnsTheLine(t *testing.T) {
	p := act(t, "serve", freeport.Addr(t))
	assert.Equal(t, "ready in "+p.Dir(), p.WaitLog(timeout, "ready"))
	assert.Contains(t, p.Output(), "to stderr", "both streams are in the transcript")
}

func TestWaitHTTPJudgesTheAnswer(t *testing.T) {
	addr := freeport.Addr(t)
	p := act(t, "serve", addr)
	p.WaitHTTP(timeout, "http://"+addr, nil)
	looks := 0
	p.WaitHTTP(timeout, "http://"+addr, func(status int, body string) (bool, string) {
		looks++
		assert.Equal(t, 200, status)
		assert.Equal(t, "hello", body)
		return looks == 3, "too early"
	})
}

func TestStopReturnsTheExitCode(t *testing.T) {
	p := act(t, "serve", freeport.Addr(t))
	p.WaitLog(timeout, "ready")
	assert.Equal(t, 7, p.Stop(syscall.SIGTERM, timeout))
	assert.False(t, p.Running())
	assert.Contains(t, p.Output(), "drained")
	assert.Zero(t, act(t, "exit", "0").Wait(timeout))
	assert.Equal(t, 3, act(t, "exit", "3").Wait(timeout))
}

func TestKillEndsTheGroupAndRestartBeginsAnew(t *testing.T) {
	addr := freeport.Addr(t)
	p := act(t, "serve", addr)
	p.WaitLog(timeout, "ready")
	require.NoError(t, os.WriteFile(filepath.Join(p.Dir(), "kept"), nil, 0o600))
	first := p.PID()
	p.Kill()
	assert.Equal(t, -1, p.Wait(timeout), "a signal ended it")
	assert.NotContains(t, p.Output(), "drained")

	p.Restart()
	assert.NotEqual(t, first, p.PID())
	p.WaitHTTP(timeout, "http://"+addr, nil)
	assert.FileExists(t, filepath.Join(p.Dir(), "kept"))
	assert.Equal(t, 1, strings.Count(p.Output(), "ready"), "the output is that of this life")
	assert.Equal(t, 2, strings.Count(p.log.String(), "ready"), "the transcript is that of both")
}

func TestWaitingEndsWhenTheProcessDoes(t *testing.T) {
	r := &recorder{TB: t}
	p := act(t, "exit", "3")
	p.t = r
	start := time.Now()
	r.run(func() { p.WaitLog(time.Hour, "never printed") })
	assert.Less(t, time.Since(start), timeout)
	assert.Contains(t, r.failure, "exit status 3")
	assert.Contains(t, r.failure, `no line containing "never printed"`)
}

func TestAProcessEndsWithItsTest(t *testing.T) {
	var pid int
	t.Run("inner", func(t *testing.T) {
		p := act(t, "parent", freeport.Addr(t))
		p.WaitLog(timeout, "ready")
		pid = p.PID()
	})
	wait.Until(t, timeout, func() (bool, string) {
		return syscall.Kill(-pid, 0) == syscall.ESRCH, "the group of the process is still there"
	})
}

func TestUsageGrowsWithWork(t *testing.T) {
	p := act(t, "work", freeport.Addr(t))
	p.WaitLog(timeout, "ready")
	var u Usage
	wait.Until(t, timeout, func() (bool, string) {
		u = p.Usage()
		return u.CPU > 50*time.Millisecond, "no CPU time yet"
	})
	assert.Greater(t, u.RSS, int64(64<<20), "the role holds 64 MiB")
	assert.GreaterOrEqual(t, u.PeakRSS, u.RSS)
	assert.Greater(t, u.Anon, int64(64<<20))
	assert.Greater(t, u.RSS, u.Anon)
	assert.GreaterOrEqual(t, u.Files, 4, "the standard streams and a listener")
	p.Kill()
	assert.GreaterOrEqual(t, p.CPUTime(), 50*time.Millisecond)
}

func TestBinarySaysHowToGetOne(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(BinaryDir, dir)
	r := &recorder{TB: t}
	r.run(func() { Binary(r, "godwit-agent") })
	assert.Contains(t, r.failure, "run `make build`")

	want := filepath.Join(dir, "godwit-agent")
	require.NoError(t, os.WriteFile(want, nil, 0o600))
	assert.Equal(t, want, Binary(t, "godwit-agent"))
}
