// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"slices"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/advice"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/redact"
)

type targetJSON struct {
	ID           string          `json:"id"`
	Receiver     string          `json:"receiver"`
	Job          string          `json:"job"`
	URL          string          `json:"url"`
	State        string          `json:"state"`
	Labels       []inspect.Label `json:"labels"`
	Interval     float64         `json:"interval_seconds"`
	Timeout      float64         `json:"timeout_seconds"`
	LastScrape   *time.Time      `json:"last_scrape"`
	LastDuration float64         `json:"last_duration_seconds"`
	Samples      int             `json:"samples"`
	Bytes        int64           `json:"bytes"`
	PlanHits     int             `json:"plan_hits"`
	PlanMisses   int             `json:"plan_misses"`
	Refused      int64           `json:"refused"` // scrapes whose metrics the pipeline refused
	Skipped      int64           `json:"skipped"` // scrapes that were due but not made
	LastError    string          `json:"last_error"`
	Reason       string          `json:"reason"`
	ReasonText   string          `json:"reason_text"`
}

// An entry is a target in the list.
type entry struct {
	source *sources.Source
	job    *inspect.Job
	target *inspect.Target
}

// has reports whether the target's texts contain all words.
func (e entry) has(words []string) bool {
	if len(words) == 0 {
		return true
	}
	url, fault := redact.Text(e.target.URL), redact.Text(e.target.LastError)
	var labels []inspect.Label // computed for the first word that needs them
	for _, word := range words {
		if contains(e.job.Name, word) || contains(url, word) || contains(fault, word) {
			continue
		}
		if labels == nil {
			labels = e.labels()
		}
		if !slices.ContainsFunc(labels, func(l inspect.Label) bool {
			name, value, exact := strings.Cut(word, "=")
			return contains(l.Value, word) || contains(l.Name, word) ||
				exact && strings.EqualFold(l.Name, name) && contains(l.Value, strings.Trim(value, `"`))
		}) {
			return false
		}
	}
	return true
}

// contains ignores case; word must be in lower case.
func contains(s, word string) bool {
	return strings.Contains(s, word) || strings.Contains(strings.ToLower(s), word)
}

func (e entry) labels() []inspect.Label {
	if e.target.State == meter.Dropped {
		return hidden(e.target.Labels.Discovered())
	}
	return hidden(e.target.Labels.Labels())
}

// hidden removes secrets from labels, and returns an empty list for nil.
func hidden(labels []inspect.Label) []inspect.Label {
	if labels == nil {
		return []inspect.Label{}
	}
	for i := range labels {
		labels[i].Value = redact.Label(labels[i].Name, labels[i].Value)
	}
	return labels
}

func (e entry) json() targetJSON {
	t := e.target
	out := targetJSON{
		ID: t.ID, Receiver: e.source.Name(), Job: e.job.Name, URL: redact.Text(t.URL), State: t.State, Labels: e.labels(),
		Interval: t.Interval.Seconds(), Timeout: t.Timeout.Seconds(), LastDuration: t.LastDuration.Seconds(),
		Samples: t.Samples, Bytes: t.Bytes, PlanHits: t.PlanHits, PlanMisses: t.PlanMisses,
		Refused: t.Refused, Skipped: t.Skipped, LastError: redact.Text(prose.Cut(t.LastError, 10_000)), Reason: t.Reason,
	}
	if t.State == inspect.Failing {
		out.ReasonText = advice.Failure(t.Reason)
	}
	if !t.LastScrape.IsZero() {
		out.LastScrape = &t.LastScrape
	}
	return out
}
