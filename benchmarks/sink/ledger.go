// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package sink receives what agents send, decodes all of it, and keeps an account: the bytes on the wire, and, per
// target and scrape, the number of samples and a checksum of their values. It stores nothing else.
//
// It shares no code with the agents that it judges.
package sink

import (
	"bytes"
	"math"
	"slices"
	"sync"

	"github.com/godwit-otel/godwit/benchmarks/tally"
)

// Group is what arrived of one target with one timestamp, which is that of one scrape.
type Group struct {
	Time   int64       `json:"time"` // Unix milliseconds
	Number int         `json:"n"`    // of the scrape, zero while unknown
	Page   tally.Tally `json:"page"`
}

// Stats are sums since the last reset.
type Stats struct {
	Requests int64 `json:"requests"`
	Failed   int64 `json:"failed"` // requests that could not be decoded
	Wire     int64 `json:"wire"`   // all bytes read from sockets
	Raw      int64 `json:"raw"`    // bytes of messages after decompression

	Samples   int64 `json:"samples"` // of targets' pages, without `_created`
	Created   int64 `json:"created"` // samples of `_created` series
	Own       int64 `json:"own"`     // up, scrape_*, target_info: added by the agent
	Stale     int64 `json:"stale"`   // staleness markers
	Exemplars int64 `json:"exemplars"`
	Strangers int64 `json:"strangers"` // samples of targets that are not the farm's
	Series    int64 `json:"series"`    // number of distinct series

	// The number of scrapes whose duration the agent reported, and the sum of durations.
	Durations int64   `json:"durations"`
	Seconds   float64 `json:"seconds"`
}

// Ledger is the account of all requests. It is safe for concurrent use.
type Ledger struct {
	mu     sync.Mutex
	stats  Stats
	groups map[groupKey]*Group
	series map[uint64]struct{}
}

type groupKey struct {
	target int
	time   int64
}

// NewLedger makes an empty ledger.
func NewLedger() *Ledger {
	l := &Ledger{}
	l.Reset()
	return l
}

// Reset forgets everything.
func (l *Ledger) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats, l.groups, l.series = Stats{}, map[groupKey]*Group{}, map[uint64]struct{}{}
}

// Stats returns the sums, without the bytes on the wire.
func (l *Ledger) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	stats := l.stats
	stats.Series = int64(len(l.series))
	return stats
}

// Arrived returns the groups of each target, sorted by time.
func (l *Ledger) Arrived() map[int][]Group {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[int][]Group{}
	for key, g := range l.groups {
		all[key.target] = append(all[key.target], *g)
	}
	for _, groups := range all {
		slices.SortFunc(groups, func(a, b Group) int { return int(a.Time - b.Time) })
	}
	return all
}

func (l *Ledger) failed() {
	l.mu.Lock()
	l.stats.Failed++
	l.mu.Unlock()
}

// entry is the account of one request, separate so that the ledger is locked only once per request.
type entry struct {
	stats  Stats
	groups map[groupKey]*Group
	series []uint64
	// The last group: the samples of a scrape mostly come together.
	key   groupKey
	group *Group
}

func newEntry(raw int) *entry {
	return &entry{stats: Stats{Requests: 1, Raw: int64(raw)}, groups: map[groupKey]*Group{}}
}

func (l *Ledger) add(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.stats
	s.Requests += e.stats.Requests
	s.Raw += e.stats.Raw
	s.Samples += e.stats.Samples
	s.Created += e.stats.Created
	s.Own += e.stats.Own
	s.Stale += e.stats.Stale
	s.Exemplars += e.stats.Exemplars
	s.Strangers += e.stats.Strangers
	s.Durations += e.stats.Durations
	s.Seconds += e.stats.Seconds
	for key, g := range e.groups {
		sum, ok := l.groups[key]
		if !ok {
			sum = &Group{Time: key.time}
			l.groups[key] = sum
		}
		sum.Number = max(sum.Number, g.Number)
		sum.Page.Merge(g.Page)
	}
	for _, h := range e.series {
		l.series[h] = struct{}{}
	}
}

// class is the class of a series in the account, by its name.
type class uint8

const (
	onPage class = iota
	scrapeID
	createdAt
	duration
	own
)

func classify(name []byte) class {
	switch {
	case bytes.HasPrefix(name, []byte("scrape_")):
		if string(name) == "scrape_duration_seconds" {
			return duration
		}
		return own
	case string(name) == "up", string(name) == "target_info", string(name) == "otel_scope_info":
		return own
	case string(name) == tally.ScrapeID:
		return scrapeID
	case tally.IsCreated(name):
		return createdAt
	}
	return onPage
}

// isStale reports whether v is Prometheus' staleness marker, a specific NaN.
func isStale(v float64) bool { return math.Float64bits(v) == 0x7ff0000000000002 }

// sample accounts for one sample.
func (e *entry) sample(target int, c class, time int64, value float64) {
	switch {
	case isStale(value):
		e.stats.Stale++
		return
	case target < 0:
		e.stats.Strangers++
		return
	}
	switch c {
	case duration:
		e.stats.Durations++
		e.stats.Seconds += value
		e.stats.Own++
		return
	case own:
		e.stats.Own++
		return
	case createdAt:
		e.stats.Created++
		return
	}
	e.stats.Samples++
	if key := (groupKey{target, time}); e.group == nil || e.key != key {
		e.key, e.group = key, e.groups[key]
		if e.group == nil {
			e.group = &Group{}
			e.groups[key] = e.group
		}
	}
	e.group.Page.Add(value)
	if c == scrapeID {
		e.group.Number = int(value)
	}
}
