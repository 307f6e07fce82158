// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"github.com/stretchr/testify/require"
)

// Usage is what a process costs.
type Usage struct {
	// RSS is the memory resident now, PeakRSS the most there was, in bytes.
	RSS, PeakRSS int64
	// Anon is the part of RSS that is the process' own. The rest is pages of files,
	// the binary's above all, of which the kernel maps more or fewer depending on
	// how the file came into its cache.
	Anon int64
	// Files is how many file descriptors are open, connections included.
	Files int
	// Threads is how many threads of the operating system there are.
	Threads int
	// CPU is the time spent in user and system mode since the start.
	CPU time.Duration
}

// Usage reads what the running process costs. Linux only.
func (p *Process) Usage() Usage {
	p.t.Helper()
	u, err := usageOf(p.PID())
	require.NoError(p.t, err, "cannot read what %s costs", p.name())
	return u
}

// CPUTime is what the process that has ended spent in user and system mode.
func (p *Process) CPUTime() time.Duration {
	p.t.Helper()
	require.False(p.t, p.Running(), "%s still runs", p.name())
	return p.run.cmd.ProcessState.UserTime() + p.run.cmd.ProcessState.SystemTime()
}
