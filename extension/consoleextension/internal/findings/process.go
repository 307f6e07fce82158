// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/service"
)

const (
	busyGC   = 0.25 // of the processors
	tightRSS = 0.9  // of the budget
)

// limiters reports memory_limiters that refuse all data, by their status.
func (f *finder) limiters() {
	for _, id := range f.Graph.Order {
		n := f.Graph.Nodes[id]
		if !n.LimitsMemory() || f.Statuses[id].Name != service.Recoverable {
			continue
		}
		f.refusing[id] = true
		one := Finding{
			Severity: severityError, Subject: id, View: viewOverview,
			Title:  n.Name + " refuses all data: memory is short",
			Detail: "Whatever is scraped meanwhile is lost, and clients are told to send again.",
			Next:   "Give the process more memory and raise the limit, or send it less: see which targets and which metrics have grown.",
		}
		if r := f.Process.Runtime; r != nil && r.LimiterSoft > 0 {
			one.Detail = fmt.Sprintf("It does from %d MiB of heap on. %s", r.LimiterSoft>>20, one.Detail)
		}
		f.add(one)
	}
}

// process reports problems of this process.
func (f *finder) process() {
	p := &f.Process
	if r := p.GCRatio; r != nil && *r > busyGC && p.CPUCores != nil && *p.CPUCores > 0.1 {
		f.add(Finding{
			Severity: severityWarning, Title: fmt.Sprintf("%.0f%% of the CPU goes to garbage collection", *r*100),
			Detail: fmt.Sprintf("GOGC is %d.", p.GOGC), Next: "Give the process more memory, or choose a profile of runtimeprofile that uses more.",
			View: viewOverview,
		})
	}
	run, rss := p.Runtime, p.RSS
	if run != nil && rss != nil && run.MemoryBudget > 0 && *rss > tightRSS*float64(run.MemoryBudget) {
		f.add(Finding{
			Severity: severityWarning, Title: fmt.Sprintf("%.0f%% of the memory is used", *rss/float64(run.MemoryBudget)*100),
			Detail: "Beyond all of it the system ends the process.", Next: "Give it more memory, or send it less.", View: viewOverview,
		})
	}
}
