// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
)

// A View is the receiver as the API shows it. It is asked anew for each request, by several at a time.
type View interface {
	// Pools returns the jobs, sorted by name.
	Pools() []Pool
	// Config returns the configuration as YAML, without secrets, when it was last changed, and whether the change after
	// that, if any, was wrong.
	Config() (text string, since time.Time, rejected bool)
	// Gatherer returns the metrics to serve.
	Gatherer() prometheus.Gatherer
}

// A Pool is one job.
type Pool struct {
	Job     *promconfig.ScrapeConfig
	Targets []Target
	Dropped []labels.Labels // before relabelling; may be fewer than were dropped
	Drops   int             // how many were dropped
}

// A Target is something that is scraped.
type Target struct {
	Discovered labels.Labels // before relabelling
	Labels     labels.Labels // after it, reserved ones included
	URL        string
	Health     Health
	LastError  string
	LastScrape time.Time
	Duration   time.Duration
	// Families returns what the target's last page said of its metrics, in any order.
	Families func() []Family
}

// Health is what the last scrape of a target says of it.
type Health string

// The healths.
const (
	Unknown Health = "unknown"
	Up      Health = "up"
	Down    Health = "down"
)

// A Family is what a page says of a metric.
type Family struct {
	Name, Type, Help, Unit string
}
