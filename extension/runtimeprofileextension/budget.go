// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"io/fs"

	"github.com/godwit-otel/godwit/internal/memlimit"
)

// budget is the memory the process may use, in bytes; 0 is unknown or none.
type budget struct {
	cgroup int64 // the tightest limit on the way from the process's cgroup to the root, if it binds
	host   int64
}

func (b budget) total() int64 {
	if b.cgroup > 0 {
		return b.cgroup
	}
	return b.host
}

// readBudget reads the budget below root, which is / or a test's tree. What can be read is returned even beside an
// error. Above memory.high nothing is killed, but all that the process allocates has to wait for memory to be reclaimed.
func readBudget(root fs.FS) (budget, error) {
	limits, err := memlimit.Read(root)
	return budget{cgroup: limits.Cgroup(), host: limits.Host}, err
}
