// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"fmt"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/internal/inspect"
)

const (
	queueFull  = 0.8 // from here on a queue is worth a word
	oldQueue   = time.Minute
	stuckQueue = 15 * time.Second // with an error that lasts
)

// deliveryFindings are about destinations that do not take what there is for them: one for each, however many signs
// there are of it.
func deliveryFindings(s *source, now *reading, refuses bool, add func(finding)) {
	d := now.deliveries[s]
	for i := range d.Destinations {
		if f, ok := stuck(s, &d.Destinations[i], now.at, refuses); ok {
			f.Subject, f.View, f.Query = s.node(), viewDelivery, map[string]string{wordExporter: s.name()}
			add(f)
			refuses = refuses && f.Severity != severityError // it is that one
		}
	}
	if refuses {
		add(finding{
			Severity: severityError, Subject: s.node(), View: viewDelivery, Query: map[string]string{wordExporter: s.name()},
			Title:  s.name() + " refuses data",
			Detail: "Its queue has no room, or its disk has none. Scrapes that it refuses are lost; clients are told to send again." + lastError(s),
			Next:   "See whether the destination is slow or down, and whether the disk of the queue is full.",
		})
	}
}

// stuck says why nothing, or too little, gets to a destination.
func stuck(s *source, to *inspect.Destination, now time.Time, refuses bool) (f finding, ok bool) {
	used, age := share(to.Queue), to.Queue.Age.Round(time.Second)
	full := used >= 0.98 || refuses && used >= queueFull
	var detail []string
	if to.LastError != "" {
		detail = append(detail, strings.TrimSuffix(to.LastError, "."))
	}
	switch {
	case to.Queue.Capacity > 0 && full:
		detail = append(detail, "Its queue is full: what comes is refused or dropped")
	case to.Queue.Capacity > 0 && used > 0:
		detail = append(detail, fmt.Sprintf("What waits fills %s of the queue", percent(used)))
	}
	f.Severity, f.Next = severityWarning, nextForAnswer(to.LastError)
	left := to.ThrottledUntil.Sub(now)
	switch {
	case to.BreakerOpen:
		f.Severity, f.Title = severityError, fmt.Sprintf("%s sends nothing to %s: the circuit breaker is open", s.name(), to.Name)
		f.Next += " It is tried again by itself."
		if to.LastError == "" {
			detail = append(detail, "The destination has failed many times in a row")
		}
	case full:
		f.Severity, f.Title = severityError, fmt.Sprintf("The queue of %s to %s is full", s.name(), to.Name)
		f.Next += " A larger queue, or one on disk, only buys time."
	case left > 0:
		f.Title = fmt.Sprintf("%s accepts nothing for another %.0f s", to.Name, left.Seconds())
		detail = append(detail, "It has asked for a pause (Retry-After, RetryInfo)")
		f.Next = nextForThrottle
	case used >= queueFull:
		f.Title = fmt.Sprintf("The queue of %s to %s is %s full", s.name(), to.Name, percent(used))
	case age >= stuckQueue && to.LastError != "":
		f.Title = fmt.Sprintf("%s does not take what %s sends, for %s", to.Name, s.name(), age)
	case age > oldQueue:
		f.Title = fmt.Sprintf("Data of %s for %s waits for %s", s.name(), to.Name, age)
	default:
		return f, false
	}
	if len(detail) > 0 {
		f.Detail = strings.Join(detail, ". ") + "."
	}
	return f, true
}

// lastError is what the destinations of an exporter said last, as a sentence to come after another.
func lastError(s *source) string {
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

func percent(share float64) string {
	switch {
	case share > 0 && share < 0.001:
		return "<0.1%"
	case share < 0.1:
		return fmt.Sprintf("%.2g%%", share*100)
	}
	return fmt.Sprintf("%.0f%%", share*100)
}

func share(q inspect.Queue) float64 {
	if q.Capacity <= 0 {
		return 0
	}
	if q.Unit == wordBytes {
		return float64(q.Bytes) / float64(q.Capacity)
	}
	return float64(q.Items) / float64(q.Capacity)
}
