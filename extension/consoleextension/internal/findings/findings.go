// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package findings detects problems, and says in plain words what is wrong and what to do next.
package findings

import (
	"slices"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/service"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/redact"
)

// A Finding is a problem in plain words, with advice.
type Finding struct {
	Severity string            `json:"severity"`
	Subject  string            `json:"subject"`
	Title    string            `json:"title"`
	Detail   string            `json:"detail"`
	Next     string            `json:"next"`
	View     string            `json:"view"`
	Query    map[string]string `json:"query"`
}

const (
	severityError   = "error"
	severityWarning = "warning"
	severityInfo    = "info"

	maxFindings = 50
)

var severities = []string{severityError, severityWarning, severityInfo}

// Views of the page to which findings link.
const (
	viewOverview      = "overview"
	viewTargets       = "targets"
	viewCardinality   = "cardinality"
	viewDelivery      = "delivery"
	viewConfiguration = "configuration"
)

// Health returns the health that follows from findings.
func Health(all []Finding) string {
	worst := "ok"
	for _, f := range all {
		switch f.Severity {
		case severityError:
			return "failing"
		case severityWarning:
			worst = "degraded"
		}
	}
	return worst
}

// Facts are the known state of all components.
type Facts struct {
	Sources  []*sources.Source
	Span     meter.Span
	Graph    *service.Graph
	Statuses map[string]service.Status // of the nodes of the graph
	Process  meter.Process
}

// Of returns the findings that follow from the facts, the worst first.
func Of(facts *Facts) []Finding {
	f := &finder{Facts: facts, refusing: map[string]bool{}, found: []Finding{}}
	f.limiters()
	for _, s := range facts.Sources {
		f.source(s)
	}
	f.statuses()
	f.process()
	inorder.Sort(f.found, func(a, b Finding) int {
		return slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
	})
	return f.found[:min(len(f.found), maxFindings)]
}

// A finder collects findings from the facts.
type finder struct {
	*Facts

	refusing map[string]bool // nodes that refuse all data because memory is short
	found    []Finding
}

func (f *finder) add(one Finding) {
	if one.Query == nil {
		one.Query = map[string]string{}
	}
	one.Title, one.Detail = redact.Text(one.Title), redact.Text(prose.Cut(one.Detail, 1000))
	f.found = append(f.found, one)
}

func (f *finder) source(s *sources.Source) {
	flow, counts := f.Span.Now.Flows[s]
	if counts {
		f.losses(s)
	}
	if s.Targets != nil && (flow.Targets[inspect.Failing] > 0 || !counts) {
		f.targets(s)
	}
	if s.Targets != nil && flow.Targets != nil && f.Span.Now.At.Sub(s.Since) >= discoveryTime {
		f.noTargets(s, flow)
	}
	if s.Delivery != nil {
		f.delivery(s)
	}
	if s.Cardinality != nil {
		f.cardinality(s)
	}
	if s.Runtime != nil {
		if r := s.Runtime(); r.Complaint != "" {
			f.add(Finding{
				Severity: severityWarning, Subject: s.Node(), Title: "Memory settings disagree", Detail: r.Complaint,
				Next: "Give the extension and the memory_limiter the same idea of how much memory there is.", View: viewConfiguration,
			})
		}
	}
}

// statuses reports components in an error state, unless there is a worse finding about them.
func (f *finder) statuses() {
	for _, id := range f.Graph.Order {
		status := f.Statuses[id]
		said := slices.ContainsFunc(f.found, func(one Finding) bool { return one.Subject == id && one.Severity == severityError })
		if !status.Faulty() || said {
			continue
		}
		severity := severityError
		if status.Name == service.Recoverable {
			severity = severityWarning
		}
		f.add(Finding{
			Severity: severity, Subject: id, Title: f.Graph.Nodes[id].Name + " reports an error", Detail: status.Error,
			Next: "The log says more about it; the component tries again by itself if the error may pass.", View: viewConfiguration,
		})
	}
}
