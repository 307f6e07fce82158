// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// urgency is the order of states: failing targets come first.
var urgency = map[string]int{inspect.Failing: 0, inspect.Unknown: 1, inspect.Healthy: 2, meter.Dropped: 3}

var orders = map[string]func(a, b *inspect.Target) int{
	"url":         func(a, b *inspect.Target) int { return cmp.Compare(a.URL, b.URL) },
	"state":       func(a, b *inspect.Target) int { return cmp.Compare(urgency[a.State], urgency[b.State]) },
	"last_scrape": func(a, b *inspect.Target) int { return a.LastScrape.Compare(b.LastScrape) },
	"duration":    func(a, b *inspect.Target) int { return cmp.Compare(a.LastDuration, b.LastDuration) },
	"samples":     func(a, b *inspect.Target) int { return cmp.Compare(a.Samples, b.Samples) },
	"bytes":       func(a, b *inspect.Target) int { return cmp.Compare(a.Bytes, b.Bytes) },
	"plan":        func(a, b *inspect.Target) int { return cmp.Compare(a.PlanMisses, b.PlanMisses) },
	"error":       func(a, b *inspect.Target) int { return cmp.Compare(a.LastError, b.LastError) },
}

// order parses the order in which to list targets.
func order(r *http.Request) (func(a, b entry) int, error) {
	by, err := answer.OneOf(r, "sort", "url", "job", "state", "last_scrape", "duration", "samples", "bytes", "plan", "error")
	if err != nil {
		return nil, err
	}
	direction, err := answer.OneOf(r, "order", "asc", "desc")
	if err != nil {
		return nil, err
	}
	sign := 1
	if direction == "desc" {
		sign = -1
	}
	return func(a, b entry) int {
		var first int
		if by == "job" {
			first = cmp.Compare(a.job.Name, b.job.Name)
		} else {
			first = orders[by](a.target, b.target)
		}
		return sign * cmp.Or(first, cmp.Compare(a.target.URL, b.target.URL), cmp.Compare(a.target.ID, b.target.ID))
	}, nil
}

// least returns the first n entries in an order, keeping the order of equal ones. It compares each entry once, and
// sorts few: a page shows fifty of ten thousand targets.
func least(all []entry, n int, less func(a, b entry) int) []entry {
	if n >= len(all)/2 {
		slices.SortStableFunc(all, less)
		return all[:min(n, len(all))]
	}
	first := make([]entry, 0, 2*n+1)
	for _, e := range all {
		if len(first) >= n && (n == 0 || less(first[n-1], e) <= 0) {
			continue
		}
		// New entries are appended, so a stable sort keeps the order of equal ones. After the first n, nothing is
		// sorted until there are as many again.
		if first = append(first, e); len(first) == n || len(first) == 2*n {
			slices.SortStableFunc(first, less)
			first = first[:n]
		}
	}
	slices.SortStableFunc(first, less)
	return first[:min(n, len(first))]
}
