// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"github.com/stretchr/testify/require"
)

// Usage is the resources that a process uses.
type Usage struct {
	// RSS is the resident memory now, PeakRSS its maximum, in bytes.
	RSS, PeakRSS int64
	// Anon is the anonymous part of RSS. The rest is pages of files, mostly of the binary; how many of them the kernel
	// maps depends on how the file came into its cache.
	Anon int64
	// Files is the number of open file descriptors, including connections.
	Files int
	// Threads is the number of threads of the operating system.
	Threads int
	// CPU is the user and system time since the start.
	CPU time.Duration
}

// Usage returns the resources of the running process. Linux only.
func (p *Process) Usage() Usage {
	p.t.Helper()
	u, err := usageOf(p.PID())
	require.NoError(p.t, err, "cannot read what %s costs", p.name())
	return u
}

// CPUTime returns the user and system time of a process that has ended.
func (p *Process) CPUTime() time.Duration {
	p.t.Helper()
	require.False(p.t, p.Running(), "%s still runs", p.name())
	return p.run.cmd.ProcessState.UserTime() + p.run.cmd.ProcessState.SystemTime()
}
