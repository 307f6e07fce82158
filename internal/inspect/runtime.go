// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

// Runtime holds the settings of Go's runtime, and where they come from.
type Runtime struct {
	Profile      string   `json:"profile"`
	GOGC         int      `json:"gogc"`          // -1 means off
	MemoryLimit  int64    `json:"memory_limit"`  // 0 means none
	MemoryBudget int64    `json:"memory_budget"` // memory that the process may use, 0 if unknown
	Cgroup       bool     `json:"cgroup"`        // the budget is a cgroup's limit
	LimiterSoft  int64    `json:"limiter_soft"`  // bytes of heap at which the memory_limiter refuses, 0 without one
	LimiterHard  int64    `json:"limiter_hard"`
	FromEnv      []string `json:"from_env"` // variables of the environment, which take precedence
	Complaint    string   `json:"complaint"`
}
