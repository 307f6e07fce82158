// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"fmt"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// Discovery may take so long to find the first targets.
const discoveryTime = 20 * time.Second

// targetFindings groups failing targets by what is wrong with them.
func targetFindings(s *source, add func(finding)) {
	all := s.Targets()
	total := 0
	for i := range all.Jobs {
		total += len(all.Jobs[i].Targets)
	}
	for _, e := range errorsOf(all.Jobs...) {
		verb := "fail"
		if e.Count == 1 {
			verb = "fails"
		}
		add(finding{
			Severity: severityError, Subject: s.node(), View: viewTargets,
			Title:  fmt.Sprintf("%s of %s targets %s: %s", grouped(int64(e.Count)), grouped(int64(total)), verb, e.Text),
			Detail: exampleOf(e), Next: e.Next,
			Query: map[string]string{paramState: inspect.Failing, paramReason: e.Reason, wordReceiver: s.name()},
		})
	}
}

// emptyFinding is about a receiver that has nothing to scrape, and no other member has it instead.
func emptyFinding(s *source, flow inspect.Flow, add func(finding)) {
	for state, n := range flow.Targets {
		if n > 0 && state != stateDropped {
			return
		}
	}
	f := finding{
		Severity: severityWarning, Subject: s.node(), View: viewTargets, Query: map[string]string{wordReceiver: s.name()},
		Title:  s.name() + " has no targets: nothing is scraped",
		Detail: "Discovery has found none for any of its jobs.",
		Next:   "See whether the jobs are those you mean, and whether discovery can reach what it asks: the log has its errors.",
	}
	if n := flow.Targets[stateDropped]; n > 0 {
		f.Detail = fmt.Sprintf("Discovery has found %s, and relabelling drops all of them.", plural(int64(n), "target"))
		f.Next = "Look at one of those that are dropped, and at what each rule does to its labels."
		f.Query[paramState] = stateDropped
	}
	add(f)
}

// exampleOf names the jobs whose targets fail, and one of their errors.
func exampleOf(e errorJSON) string {
	jobs := cut(strings.Join(e.Jobs, ", "), maxShownName)
	if len(e.Jobs) == 1 {
		return "Job " + jobs + ": " + e.Example
	}
	return "Jobs " + jobs + ". One of them: " + e.Example
}
