// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// inspection returns what the extension shows on request.
func (e *runtimeProfile) inspection() inspect.Source {
	return inspect.Source{Kind: component.KindExtension, ID: e.id, Runtime: e.inspectRuntime}
}

func (e *runtimeProfile) inspectRuntime() inspect.Runtime {
	now := readKnobs() // including those set by others
	if now.limit == noLimit {
		now.limit = 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	out := inspect.Runtime{
		Profile: string(e.cfg.Profile), GOGC: now.gogc, MemoryLimit: now.limit,
		MemoryBudget: e.budget.total(), Cgroup: e.budget.cgroup > 0,
		LimiterSoft: e.limiter.soft, LimiterHard: e.limiter.hard, Complaint: e.complaint,
	}
	if e.lease != nil {
		out.FromEnv = e.lease.fromEnv()
	}
	return out
}
