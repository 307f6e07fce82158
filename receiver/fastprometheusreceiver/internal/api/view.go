// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
)

// A View is the receiver as the API shows it. Requests call it anew, several at a time.
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
	Dropped []labels.Labels // before relabelling; may be incomplete
	Drops   int             // number of dropped targets
}

// A Target is something that is scraped.
type Target struct {
	Discovered labels.Labels // before relabelling
	Labels     labels.Labels // after relabelling, including reserved ones
	URL        string
	Health     Health
	LastError  string
	LastScrape time.Time
	Duration   time.Duration
	// Families returns the metadata in the target's last page, in any order.
	Families func() []Family
}

// Health is the result of a target's last scrape.
type Health string

// The healths.
const (
	Unknown Health = "unknown"
	Up      Health = "up"
	Down    Health = "down"
)

// A Family is a metric's metadata.
type Family struct {
	Name, Type, Help, Unit string
}
