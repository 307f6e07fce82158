// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/advice"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/balance"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// losses reports what is lost or refused now.
func (f *finder) losses(s *sources.Source) {
	flow := f.Span.Now.Flows[s]
	earlier, seconds := f.Span.Since(s)
	was := map[string]int64{}
	if f.Span.Before != nil {
		was = balance.Losses(f.Span.Before, s)
	}
	dropped, refused := balance.Losses(f.Span.Now, s), f.Span.Refused(s)
	view := viewOverview
	if s.Delivery != nil || s.Intake != nil {
		view = viewDelivery
	}
	for _, reason := range slices.Sorted(maps.Keys(dropped)) {
		n := dropped[reason]
		lost := n - was[reason]
		if n <= 0 || reason == inspect.ReasonRefused && refused > 0 { // current refusals have a finding of their own
			continue
		}
		one := Finding{
			Severity: severityWarning, Subject: s.Node(), View: view,
			Title:  fmt.Sprintf("%s has lost %s since it started: %s", s.Name(), prose.Count(n), prose.Reason(reason)),
			Detail: "At this time nothing more is lost for that reason.", Next: advice.ForLoss(reason),
		}
		if seconds == 0 {
			one.Detail = "Whether more is lost now is known in a moment."
		}
		if lost > 0 && seconds > 0 {
			one.Severity = severityError
			one.Title = fmt.Sprintf("%s is losing data: %s, %s", s.Name(), prose.PerSecond(float64(lost)/seconds), prose.Reason(reason))
			one.Detail = fmt.Sprintf("%s since the start.%s", prose.Count(n), lastError(s))
		}
		if s.Delivery != nil {
			one.Query = map[string]string{sources.Exporter: s.Name()}
		}
		f.add(one)
	}
	// Refusals of an exporter are reported with its destinations.
	if refused > 0 && s.Delivery == nil {
		one := f.refusal(s, refused, seconds)
		if full := f.fullBehind(s); full != "" {
			one.Next = "The queue of " + full + " is full: see there."
		}
		f.add(one)
	}
	if s.Intake != nil {
		f.vainRequests(s, flow, earlier, seconds)
	}
}

// refusal is the finding for data that a component could not hand on. What was scraped cannot be scraped again.
func (f *finder) refusal(s *sources.Source, times int64, seconds float64) Finding {
	one := Finding{
		Severity: severityError, Subject: s.Node(), View: viewDelivery,
		Title:  "The pipeline refuses data of " + s.Name(),
		Detail: fmt.Sprintf("It was refused %s in the last %.0f s.", prose.Plural(times, "time"), seconds),
		Next:   "See whether a queue is full, and why its destination is slow or down.",
	}
	switch {
	case s.Targets != nil:
		one.Title = fmt.Sprintf("Scrapes of %s are lost: the pipeline refuses them", s.Name())
		one.Detail = fmt.Sprintf("%s in the last %.0f s. While it refuses, targets are scraped less, to see whether it still does.", prose.Count(times), seconds)
	case s.Intake != nil:
		one.Detail += " Clients are told to send again."
	}
	for _, n := range f.Graph.Nodes {
		switch {
		case !n.LimitsMemory() || !n.SharesPipeline(f.Graph.Nodes[s.Node()]):
		case f.refusing[n.ID]:
			one.View, one.Next = viewOverview, "It is "+n.Name+" that refuses: see there."
		default:
			one.Next = "Either a queue is full: see whether a destination is slow or down; or " + n.Name +
				" refuses because memory is short: give the process more, or send it less."
		}
	}
	return one
}

// fullBehind returns an exporter that refused data from a receiver of its pipeline: of several, always the same.
func (f *finder) fullBehind(receiver *sources.Source) (name string) {
	for s := range f.Span.Now.Flows {
		if s.Delivery != nil && f.Span.Refused(s) > 0 && f.Graph.Nodes[s.Node()].SharesPipeline(f.Graph.Nodes[receiver.Node()]) {
			if name == "" || s.Name() < name {
				name = s.Name()
			}
		}
	}
	return name
}

// vainRequests reports requests that were refused permanently, so that clients do not send them again.
func (f *finder) vainRequests(s *sources.Source, flow, earlier inspect.Flow, seconds float64) {
	var turnedDown int64
	for _, code := range []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType} {
		reason := strconv.Itoa(code)
		turnedDown += flow.Failed[reason] - earlier.Failed[reason]
	}
	if turnedDown <= 0 || seconds == 0 {
		return
	}
	f.add(Finding{
		Severity: severityError, Subject: s.Node(), View: viewDelivery,
		Title:  fmt.Sprintf("%s refuses requests of clients: %s in the last %.0f s", s.Name(), prose.Plural(turnedDown, "request"), seconds),
		Detail: "The last one was " + s.Intake().Last.Text,
		Next:   advice.Nonsense,
	})
}
