// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// A finding says in plain words what is wrong, and what to do next.
type finding struct {
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

	maxShownName = 100 // bytes of a label's or metric's
)

var severities = []string{severityError, severityWarning, severityInfo}

func health(all []finding) string {
	worst := healthOK
	for _, f := range all {
		switch f.Severity {
		case severityError:
			return healthFailing
		case severityWarning:
			worst = healthDegraded
		}
	}
	return worst
}

// findings returns all that is to be said, the worst first.
func (c *console) findings(before, now *reading, g *graph, o *overviewJSON) []finding {
	out := []finding{}
	add := func(f finding) {
		if f.Query == nil {
			f.Query = map[string]string{}
		}
		f.Title, f.Detail = redactor.Text(f.Title), redactor.Text(cut(f.Detail, 1000))
		out = append(out, f)
	}
	refusing := map[string]bool{}
	for i := range o.Nodes {
		if n := &o.Nodes[i]; isLimiter(n.Kind, n.Name) && n.Status == statusRecoverable {
			refusing[n.ID] = true
			add(limiterFinding(n, o.Process.Runtime))
		}
	}
	for _, s := range c.all() {
		flow, known := now.flows[s]
		if known {
			lossFindings(before, now, s, g, refusing, add)
		}
		if s.Targets != nil && (flow.Targets[inspect.Failing] > 0 || !known) {
			targetFindings(s, add)
		}
		if s.Targets != nil && flow.Targets != nil && now.at.Sub(s.since) >= discoveryTime {
			emptyFinding(s, flow, add)
		}
		if s.Delivery != nil {
			deliveryFindings(s, now, refusedLately(before, now, s) > 0, add)
		}
		if s.Cardinality != nil {
			cardinalityFindings(s, add)
		}
		if s.Runtime != nil {
			if r := s.Runtime(); r.Complaint != "" {
				add(finding{
					Severity: severityWarning, Subject: s.node(), Title: "Memory settings disagree", Detail: r.Complaint,
					Next: "Give the extension and the memory_limiter the same idea of how much memory there is.", View: viewConfiguration,
				})
			}
		}
	}
	for i := range o.Nodes {
		n := &o.Nodes[i]
		known := slices.ContainsFunc(out, func(f finding) bool { return f.Subject == n.ID && f.Severity == severityError })
		if strings.HasSuffix(n.Status, "_error") && !known {
			severity := severityError
			if n.Status == statusRecoverable {
				severity = severityWarning
			}
			add(finding{
				Severity: severity, Subject: n.ID, Title: n.Name + " reports an error", Detail: n.StatusError,
				Next: "The log says more about it; the component tries again by itself if the error may pass.", View: viewConfiguration,
			})
		}
	}
	processFindings(o, add)
	inorder.Sort(out, func(a, b finding) int {
		return slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
	})
	return out[:min(len(out), maxFindings)]
}

func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(n) + " " + thing + "s"
}

func sharePipeline(a, b *graphNode) bool {
	return a != nil && b != nil && slices.ContainsFunc(a.pipelines, func(p string) bool { return slices.Contains(b.pipelines, p) })
}

// spoken makes a reason readable.
func spoken(reason string) string {
	if reason == "" {
		return "other errors"
	}
	return strings.ReplaceAll(reason, "_", " ")
}
