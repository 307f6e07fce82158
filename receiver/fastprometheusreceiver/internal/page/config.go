// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// A Config says how the pages of a job are read.
type Config struct {
	// Scrape gives honor_labels, honor_timestamps, track_timestamps_staleness, metric_relabel_configs, the limits, the
	// naming scheme, the switches for native histograms and fallback_scrape_protocol.
	Scrape *promconfig.ScrapeConfig
	// External labels are set on every series, over its own.
	External labels.Labels
	// Version is the version of the default scope.
	Version string
	// TrimSuffixes removes type and unit from the names of metrics.
	TrimSuffixes bool
	// ExtraMetrics adds scrape_timeout_seconds, scrape_sample_limit and scrape_body_size_bytes.
	ExtraMetrics bool
	// NoStaleMarkers leaves out the stale markers of series that vanish.
	NoStaleMarkers bool
	// SeriesLimit limits the series that a target may show during its life; samples of further series are dropped. 0 is
	// no limit.
	SeriesLimit int
	// MaxMemory limits, as an estimate in bytes, what a page may take while it is read and afterwards. 0 is no limit.
	MaxMemory int64
	// Room limits what pages and series of all targets take together; nil is no limit.
	Room *Room
	// Reuse says that no consumer keeps metrics after they are released, or has changed more of them than Changes says.
	Reuse bool
	// Changes is what must be restored before metrics are filled again.
	Changes handback.Changes
	// Unread says that nobody reads the attributes of points without first asking for those that were left out.
	Unread bool
	// Later says that metrics are kept after the consumer has returned, and come back from the exporter.
	Later bool
	// JobAndInstance adds the attributes job and instance to resources, beside service.name and service.instance.id.
	JobAndInstance bool
	// KeepIdentity takes service.name and service.instance.id from job and instance, whatever a target_info says.
	KeepIdentity bool
	// BrokenHistograms counts histograms that were left out because their buckets are inconsistent.
	BrokenHistograms *atomic.Int64
	Logger           *zap.Logger
}

// A Job is what the targets of a scrape configuration share.
type Job struct {
	cfg   Config
	rules catalog.Rules
	book  *plan.Config
	tree  *tree.Job

	mu      sync.Mutex
	formats map[string]format // by Content-Type
	cohorts map[string]*cohort
}

// NewJob prepares the reading of a job's pages.
func NewJob(cfg Config) (*Job, error) {
	if cfg.Scrape == nil {
		return nil, errors.New("cannot read pages without a scrape configuration")
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.BrokenHistograms == nil {
		cfg.BrokenHistograms = &atomic.Int64{}
	}
	for _, r := range cfg.Scrape.MetricRelabelConfigs {
		if err := r.Validate(cfg.Scrape.MetricNameValidationScheme); err != nil {
			return nil, fmt.Errorf("cannot use `metric_relabel_configs` of job %q: %w", cfg.Scrape.JobName, err)
		}
	}
	report := reportNames(cfg.ExtraMetrics || cfg.Scrape.ExtraScrapeMetricsEnabled())
	return &Job{
		cfg: cfg,
		rules: catalog.NewRules(catalog.Config{
			Scrape: cfg.Scrape, External: cfg.External, Version: cfg.Version, TrimSuffixes: cfg.TrimSuffixes, Report: report,
			KeepIdentity: cfg.KeepIdentity,
		}),
		book: &plan.Config{Round: tree.RoundPoints, NoStaleMarkers: cfg.NoStaleMarkers, Sharing: plan.ManySharing},
		tree: &tree.Job{
			Name: cfg.Scrape.JobName, Reuse: cfg.Reuse, Changes: cfg.Changes, Unread: cfg.Unread, Later: cfg.Later, JobAndInstance: cfg.JobAndInstance, KeepIdentity: cfg.KeepIdentity,
			Part: tree.PartPoints, Round: tree.RoundPoints, Idle: tree.IdlePoints, BrokenHistograms: cfg.BrokenHistograms, Logger: cfg.Logger,
		},
		formats: map[string]format{},
		cohorts: map[string]*cohort{},
	}, nil
}

// Stats is what a job holds.
type Stats struct {
	Cohorts int // sets of targets that share a catalog
	Plans   int // distinct pages
	Lines   int // distinct lines
	Points  int // distinct data points
	Targets int
	// Bytes estimates what lines and plans take.
	Bytes int64
}

// Stats counts what the job holds.
func (j *Job) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	var s Stats
	for _, c := range j.cohorts {
		c.stats(&s)
	}
	s.Cohorts = len(j.cohorts)
	return s
}

// ReportSeries is the number of series in which each scrape reports about itself.
func (j *Job) ReportSeries() int { return len(j.rules.Report) }

// A Report is what the caller knows about a scrape.
type Report struct {
	Duration time.Duration
	// BodyBytes is the length of the decoded body, -1 when it exceeded its limit.
	BodyBytes int64
	// Err is why the scrape failed, nil if it did not.
	Err error
}
