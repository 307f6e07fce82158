// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"io/fs"

	"github.com/godwit-otel/godwit/internal/memlimit"
)

// budget is the memory that the process may use, in bytes; 0 means unknown or unlimited.
type budget struct {
	cgroup int64 // the lowest limit from the process's cgroup up to the root, if it is below the host's memory
	host   int64
}

// leastBudget is the smallest container for which the limits that nobody sets are made. In one of 64 MiB a target whose
// series are new in each scrape was seen to end an agent.
const leastBudget = 128 << 20

func (b budget) total() int64 {
	if b.cgroup > 0 {
		return b.cgroup
	}
	return b.host
}

// readBudget reads the budget below root, which is / except in tests. It returns what it could read even with an error.
// Above memory.high, no process is killed, but all allocations wait for memory to be reclaimed.
func readBudget(root fs.FS) (budget, error) {
	limits, err := memlimit.Read(root)
	return budget{cgroup: limits.Cgroup(), host: limits.Host}, err
}
