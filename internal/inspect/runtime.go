// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

// Runtime is what Go's runtime was told, and by whom.
type Runtime struct {
	Profile      string   `json:"profile"`
	GOGC         int      `json:"gogc"`          // -1 is off
	MemoryLimit  int64    `json:"memory_limit"`  // 0 is none
	MemoryBudget int64    `json:"memory_budget"` // what the process may use, 0 if it is not known
	Cgroup       bool     `json:"cgroup"`        // the budget is a cgroup's
	LimiterSoft  int64    `json:"limiter_soft"`  // bytes of heap at which the memory_limiter refuses, 0 without one
	LimiterHard  int64    `json:"limiter_hard"`
	FromEnv      []string `json:"from_env"` // what the environment says, and is therefore left alone
	Complaint    string   `json:"complaint"`
}
