// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// lossFindings are about what is lost or refused at this time.
func lossFindings(before, now *reading, s *source, g *graph, refusing map[string]bool, add func(finding)) {
	flow := now.flows[s]
	earlier, seconds := stretch(before, now, s)
	was := map[string]int64{}
	if before != nil {
		was = lossesOf(before, s)
	}
	dropped, refused := lossesOf(now, s), refusedLately(before, now, s)
	view := viewOverview
	if s.Delivery != nil || s.Intake != nil {
		view = viewDelivery
	}
	for _, reason := range slices.Sorted(maps.Keys(dropped)) {
		n := dropped[reason]
		lost := n - was[reason]
		if n <= 0 || reason == inspect.ReasonRefused && refused > 0 { // what is refused now has a finding of its own
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
	if refused > 0 && s.Delivery == nil {
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

// fullBehind names an exporter that refused what a receiver of its pipeline offered: of several the same each time.
func fullBehind(before, now *reading, receiver *source, g *graph) (name string) {
	for s := range now.flows {
		if s.Delivery != nil && refusedLately(before, now, s) > 0 && sharePipeline(g.nodes[s.node()], g.nodes[receiver.node()]) {
			if name == "" || s.name() < name {
				name = s.name()
			}
		}
	}
	return name
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
