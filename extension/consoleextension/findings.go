// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

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

	// Discovery may take so long to find the first targets.
	discoveryTime = 20 * time.Second

	maxShownName = 100 // bytes of a label's or metric's

	busyGC   = 0.25
	tightRSS = 0.9
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
			add(limiterFinding(n, o.Process.RuntimeOfExt))
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
	slices.SortStableFunc(out, func(a, b finding) int {
		return slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
	})
	return out[:min(len(out), maxFindings)]
}

// lossFindings are about what is lost or refused at this time.
func lossFindings(before, now *reading, s *source, g *graph, refusing map[string]bool, add func(finding)) {
	flow := now.flows[s]
	earlier, seconds := stretch(before, now, s)
	was := map[string]int64{}
	if before != nil {
		was = lossesOf(before, s)
	}
	dropped := lossesOf(now, s)
	view := viewOverview
	if s.Delivery != nil || s.Intake != nil {
		view = viewDelivery
	}
	for _, reason := range slices.Sorted(maps.Keys(dropped)) {
		n := dropped[reason]
		lost := n - was[reason]
		if n <= 0 || reason == inspect.ReasonRefused && lost > 0 { // what is refused now has a finding of its own
			continue
		}
		f := finding{
			Severity: severityWarning, Subject: s.node(), View: view,
			Title:  fmt.Sprintf("%s has lost %s since it started: %s", s.name(), grouped(n), spoken(reason)),
			Detail: "At this time nothing more is lost for that reason.", Next: nextForDrop(reason),
		}
		if seconds == 0 {
			f.Detail = "Whether more is lost now is known in a moment."
		}
		if lost > 0 && seconds > 0 {
			f.Severity = severityError
			f.Title = fmt.Sprintf("%s is losing data: %s, %s", s.name(), perSecondOf(float64(lost)/seconds), spoken(reason))
			f.Detail = fmt.Sprintf("%s since the start.%s", grouped(n), lastError(s))
		}
		if s.Delivery != nil {
			f.Query = map[string]string{wordExporter: s.name()}
		}
		add(f)
	}
	// What an exporter refuses is said of its destinations.
	if refused := refusedLately(before, now, s); refused > 0 && s.Delivery == nil {
		f := refusalFinding(s, g, refusing, refused, seconds)
		if full := fullBehind(before, now, s, g); full != "" {
			f.Next = "The queue of " + full + " is full: see there."
		}
		add(f)
	}
	if s.Intake != nil {
		intakeFinding(s, flow, earlier, seconds, add)
	}
}

// refusalFinding is about what a component could not get rid of. What was scraped cannot be scraped again.
func refusalFinding(s *source, g *graph, refusing map[string]bool, times int64, seconds float64) finding {
	f := finding{
		Severity: severityError, Subject: s.node(), View: viewDelivery,
		Title:  fmt.Sprintf("The pipeline does not take all that %s offers", s.name()),
		Detail: fmt.Sprintf("It was refused %s in the last %.0f s.", plural(times, "time"), seconds),
		Next:   "See whether a queue is full, and why its destination is slow or down.",
	}
	switch {
	case s.Targets != nil:
		f.Title = fmt.Sprintf("Scrapes of %s are lost: the pipeline does not take them", s.name())
		f.Detail = fmt.Sprintf("%s in the last %.0f s. While it refuses, targets are scraped less, to see whether it still does.", grouped(times), seconds)
	case s.Intake != nil:
		f.Detail += " Clients are told to send again."
	}
	for _, n := range g.nodes {
		switch {
		case !isLimiter(n.kind, n.name) || !sharePipeline(n, g.nodes[s.node()]):
		case refusing[n.id]:
			f.View, f.Next = viewOverview, "It is "+n.name+" that refuses: see there."
		default:
			f.Next = "Either a queue is full: see whether a destination is slow or down; or " + n.name +
				" refuses because memory is short: give the process more, or send it less."
		}
	}
	return f
}

// refusedLately is how often a component refused, or was refused, since the earlier reading.
func refusedLately(before, now *reading, s *source) int64 {
	earlier, seconds := stretch(before, now, s)
	flow, known := now.flows[s]
	if !known || seconds == 0 || flow.Refused <= 0 {
		return 0
	}
	return flow.Refused - earlier.Refused
}

// fullBehind names an exporter that refused what a receiver of its pipeline offered.
func fullBehind(before, now *reading, receiver *source, g *graph) string {
	for s := range now.flows {
		if s.Delivery != nil && refusedLately(before, now, s) > 0 && sharePipeline(g.nodes[s.node()], g.nodes[receiver.node()]) {
			return s.name()
		}
	}
	return ""
}

// intakeFinding is about requests that clients sent in vain, and will not send again.
func intakeFinding(s *source, flow, earlier inspect.Flow, seconds float64, add func(finding)) {
	var turnedDown int64
	for _, code := range []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType} {
		reason := strconv.Itoa(code)
		turnedDown += flow.Failed[reason] - earlier.Failed[reason]
	}
	if turnedDown <= 0 || seconds == 0 {
		return
	}
	add(finding{
		Severity: severityError, Subject: s.node(), View: viewDelivery,
		Title:  fmt.Sprintf("%s turns down what clients send: %s in the last %.0f s", s.name(), plural(turnedDown, "request"), seconds),
		Detail: "The last one was " + s.Intake().Last.Text,
		Next:   nextForNonsense,
	})
}

func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(n) + " " + thing + "s"
}

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

func sharePipeline(a, b *graphNode) bool {
	return a != nil && b != nil && slices.ContainsFunc(a.pipelines, func(p string) bool { return slices.Contains(b.pipelines, p) })
}

// targetFindings groups failing targets by what is wrong with them.
func targetFindings(s *source, add func(finding)) {
	all := s.Targets()
	total := 0
	for i := range all.Jobs {
		total += len(all.Jobs[i].Targets)
	}
	for _, e := range errorsOf(s, all) {
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

func processFindings(o *overviewJSON, add func(finding)) {
	if r := o.Process.GCRatio; r != nil && *r > busyGC && o.Process.CPUCores != nil && *o.Process.CPUCores > 0.1 {
		add(finding{
			Severity: severityWarning, Title: fmt.Sprintf("%.0f%% of the CPU goes to garbage collection", *r*100),
			Detail: fmt.Sprintf("GOGC is %d.", o.Process.GOGC), Next: "Give the process more memory, or choose a profile of runtimeprofile that uses more.",
			View: viewOverview,
		})
	}
	run, rss := o.Process.RuntimeOfExt, o.Process.RSS
	if run != nil && rss != nil && run.MemoryBudget > 0 && *rss > tightRSS*float64(run.MemoryBudget) {
		add(finding{
			Severity: severityWarning, Title: fmt.Sprintf("%.0f%% of the memory is used", *rss/float64(run.MemoryBudget)*100),
			Detail: "Beyond all of it the system ends the process.", Next: "Give it more memory, or send it less.", View: viewOverview,
		})
	}
}

// exampleOf names the jobs whose targets fail, and one of their errors.
func exampleOf(e errorJSON) string {
	jobs := cut(strings.Join(e.Jobs, ", "), maxShownName)
	if len(e.Jobs) == 1 {
		return "Job " + jobs + ": " + e.Example
	}
	return "Jobs " + jobs + ". One of them: " + e.Example
}

// spoken makes a reason readable.
func spoken(reason string) string {
	if reason == "" {
		return "other errors"
	}
	return strings.ReplaceAll(reason, "_", " ")
}
