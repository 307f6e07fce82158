// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"time"
)

// Targets are what a receiver scrapes.
type Targets struct {
	Jobs []Job
}

// A Job is a scrape configuration and its targets.
type Job struct {
	Name      string
	Targets   []Target
	Dropped   []Labels // targets that relabelling dropped; no more than keep_dropped_targets
	Drops     int      // number of all dropped targets
	Elsewhere int      // targets of other members
	Limit     int      // target_limit, 0 for none
	// Rules returns relabel_configs and metric_relabel_configs as YAML.
	Rules func() (relabel, metricRelabel string)
}

// Labels are computed on request.
type Labels interface {
	// Labels returns the labels of series, after relabelling, without reserved ones.
	Labels() []Label
	// Discovered returns the labels before relabelling.
	Discovered() []Label
}

// The states of a target.
const (
	Healthy = "healthy"
	Failing = "failing"
	Unknown = "unknown" // not scraped yet
)

// A Target is the state of one target.
type Target struct {
	// ID identifies the target, as long as its labels and its URL stay the same.
	ID       string
	URL      string // without credentials
	Labels   Labels
	Interval time.Duration
	Timeout  time.Duration

	State        string
	LastError    string
	Reason       string // class of the error, the same for the same cause
	LastScrape   time.Time
	LastDuration time.Duration
	Samples      int   // in the last page
	Bytes        int64 // of the last page as transferred
	PlanHits     int   // lines of the last page that the plan predicted
	PlanMisses   int   // lines that it did not predict
	Refused      int64 // scrapes whose metrics the pipeline refused
	Skipped      int64 // scrapes that were due but not made
}

// A Looker fetches a target's page like a scrape, without counting or changing anything.
type Looker interface {
	// Look returns at most limit bytes of the page of a current target. It returns [ErrNoTarget] for all others: nothing
	// else can be fetched.
	Look(ctx context.Context, id string, limit int) (Page, error)
}

// A Page is a target's response.
type Page struct {
	URL         string
	Status      string // of an error, as code and reason
	ContentType string
	Encoding    string
	WireBytes   int
	Truncated   bool
	Took        time.Duration
	Body        []byte
}

// ErrNoTarget is returned if the target does not exist, or no longer.
var ErrNoTarget = errors.New("there is no such target")
