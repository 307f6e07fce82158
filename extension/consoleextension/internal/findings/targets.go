// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/targets"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// discoveryTime is how long discovery may take to find the first targets.
const discoveryTime = 20 * time.Second

// queryState is the parameter for the state of the targets to list.
const queryState = "state"

// targets reports failing targets, grouped by reason.
func (f *finder) targets(s *sources.Source) {
	all := s.Targets()
	total := 0
	for i := range all.Jobs {
		total += len(all.Jobs[i].Targets)
	}
	for _, e := range targets.ErrorsOf(all.Jobs...) {
		verb := "fail"
		if e.Count == 1 {
			verb = "fails"
		}
		f.add(Finding{
			Severity: severityError, Subject: s.Node(), View: viewTargets,
			Title:  fmt.Sprintf("%s of %s targets %s: %s", prose.Count(int64(e.Count)), prose.Count(int64(total)), verb, e.Text),
			Detail: exampleOf(e), Next: e.Next,
			Query: map[string]string{queryState: inspect.Failing, "reason": e.Reason, sources.Receiver: s.Name()},
		})
	}
}

// noTargets reports a receiver without targets, unless other members have them.
func (f *finder) noTargets(s *sources.Source, flow inspect.Flow) {
	for state, n := range flow.Targets {
		if n > 0 && state != meter.Dropped {
			return
		}
	}
	one := Finding{
		Severity: severityWarning, Subject: s.Node(), View: viewTargets, Query: map[string]string{sources.Receiver: s.Name()},
		Title:  s.Name() + " has no targets: nothing is scraped",
		Detail: "Discovery has found none for any of its jobs.",
		Next:   "See whether the jobs are those you mean, and whether discovery can reach what it asks: the log has its errors.",
	}
	if n := flow.Targets[meter.Dropped]; n > 0 {
		one.Detail = fmt.Sprintf("Discovery has found %s, and relabelling drops all of them.", prose.Plural(int64(n), "target"))
		one.Next = "Look at one of those that are dropped, and at what each rule does to its labels."
		one.Query[queryState] = meter.Dropped
	}
	f.add(one)
}

// exampleOf returns the jobs whose targets fail, and one of their errors.
func exampleOf(e targets.Errors) string {
	jobs := prose.Name(strings.Join(e.Jobs, ", "))
	if len(e.Jobs) == 1 {
		return "Job " + jobs + ": " + e.Example
	}
	return "Jobs " + jobs + ". One of them: " + e.Example
}
