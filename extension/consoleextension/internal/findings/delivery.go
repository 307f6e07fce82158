// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/advice"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/delivery"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
)

const (
	queueFull  = 0.8 // from which on a queue is reported
	oldQueue   = time.Minute
	stuckQueue = 15 * time.Second // with a lasting error
)

// delivery reports destinations that do not accept their data, each once, however many signs there are.
func (f *finder) delivery(s *sources.Source) {
	refuses := f.Span.Refused(s) > 0
	d := f.Span.Now.Deliveries[s]
	for i := range d.Destinations {
		if one, ok := stuck(s, &d.Destinations[i], f.Span.Now.At, refuses); ok {
			one.Subject, one.View, one.Query = s.Node(), viewDelivery, map[string]string{sources.Exporter: s.Name()}
			f.add(one)
			refuses = refuses && one.Severity != severityError // this destination refuses
		}
	}
	if refuses {
		f.add(Finding{
			Severity: severityError, Subject: s.Node(), View: viewDelivery, Query: map[string]string{sources.Exporter: s.Name()},
			Title:  s.Name() + " refuses data",
			Detail: "Its queue has no room, or its disk has none. Scrapes that it refuses are lost; clients are told to send again." + lastError(s),
			Next:   "See whether the destination is slow or down, and whether the disk of the queue is full.",
		})
	}
}

// stuck returns the reason why nothing, or too little, reaches a destination.
func stuck(s *sources.Source, to *inspect.Destination, now time.Time, refuses bool) (f Finding, ok bool) {
	used, age := delivery.Used(to.Queue), to.Queue.Age.Round(time.Second)
	full := used >= 0.98 || refuses && used >= queueFull
	var detail []string
	if to.LastError != "" {
		detail = append(detail, strings.TrimSuffix(to.LastError, "."))
	}
	switch {
	case to.Queue.Capacity > 0 && full:
		detail = append(detail, "Its queue is full: new data is refused or dropped")
	case to.Queue.Capacity > 0 && used > 0:
		detail = append(detail, fmt.Sprintf("Waiting data fills %s of the queue", prose.Percent(used)))
	}
	f.Severity, f.Next = severityWarning, advice.ForAnswer(to.LastError)
	left := to.ThrottledUntil.Sub(now)
	switch {
	case to.BreakerOpen:
		f.Severity, f.Title = severityError, fmt.Sprintf("%s sends nothing to %s: the circuit breaker is open", s.Name(), to.Name)
		f.Next += " It is retried automatically."
		if to.LastError == "" {
			detail = append(detail, "The destination has failed many times in a row")
		}
	case full:
		f.Severity, f.Title = severityError, fmt.Sprintf("The queue of %s to %s is full", s.Name(), to.Name)
		f.Next += " A larger queue, or one on disk, only buys time."
	case left > 0:
		f.Title = fmt.Sprintf("%s accepts nothing for another %.0f s", to.Name, left.Seconds())
		detail = append(detail, "It has asked for a pause (Retry-After, RetryInfo)")
		f.Next = advice.Throttled
	case used >= queueFull:
		f.Title = fmt.Sprintf("The queue of %s to %s is %s full", s.Name(), to.Name, prose.Percent(used))
	case age >= stuckQueue && to.LastError != "":
		f.Title = fmt.Sprintf("%s does not accept data from %s, for %s", to.Name, s.Name(), age)
	case age > oldQueue:
		f.Title = fmt.Sprintf("Data of %s for %s waits for %s", s.Name(), to.Name, age)
	default:
		return f, false
	}
	if len(detail) > 0 {
		f.Detail = strings.Join(detail, ". ") + "."
	}
	return f, true
}

// lastError returns the last error of an exporter's destinations, as a sentence to be appended.
func lastError(s *sources.Source) string {
	if s.Delivery == nil {
		return ""
	}
	d := s.Delivery()
	for i := range d.Destinations {
		if text := d.Destinations[i].LastError; text != "" {
			return " " + d.Destinations[i].Name + ": " + strings.TrimSuffix(text, ".") + "."
		}
	}
	return ""
}
