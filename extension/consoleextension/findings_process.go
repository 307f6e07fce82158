// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"fmt"
	"strings"

	"github.com/godwit-otel/godwit/internal/inspect"
)

const (
	busyGC   = 0.25 // of the processors
	tightRSS = 0.9  // of the budget
)

func isLimiter(kind, name string) bool {
	typ, _, _ := strings.Cut(name, "/")
	return kind == wordProcessor && typ == "memory_limiter"
}

// limiterFinding is about a memory_limiter that refuses all data, which it says in its status.
func limiterFinding(n *nodeJSON, r *inspect.Runtime) finding {
	f := finding{
		Severity: severityError, Subject: n.ID, View: viewOverview,
		Title:  n.Name + " refuses all data: memory is short",
		Detail: "Whatever is scraped meanwhile is lost, and clients are told to send again.",
		Next:   "Give the process more memory and raise the limit, or send it less: see which targets and which metrics have grown.",
	}
	if r != nil && r.LimiterSoft > 0 {
		f.Detail = fmt.Sprintf("It does from %d MiB of heap on. %s", r.LimiterSoft>>20, f.Detail)
	}
	return f
}

func processFindings(o *overviewJSON, add func(finding)) {
	if r := o.Process.GCRatio; r != nil && *r > busyGC && o.Process.CPUCores != nil && *o.Process.CPUCores > 0.1 {
		add(finding{
			Severity: severityWarning, Title: fmt.Sprintf("%.0f%% of the CPU goes to garbage collection", *r*100),
			Detail: fmt.Sprintf("GOGC is %d.", o.Process.GOGC), Next: "Give the process more memory, or choose a profile of runtimeprofile that uses more.",
			View: viewOverview,
		})
	}
	run, rss := o.Process.Runtime, o.Process.RSS
	if run != nil && rss != nil && run.MemoryBudget > 0 && *rss > tightRSS*float64(run.MemoryBudget) {
		add(finding{
			Severity: severityWarning, Title: fmt.Sprintf("%.0f%% of the memory is used", *rss/float64(run.MemoryBudget)*100),
			Detail: "Beyond all of it the system ends the process.", Next: "Give it more memory, or send it less.", View: viewOverview,
		})
	}
}
