// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/confkeys"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/allocator"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/api"
)

// Config is the configuration of the receiver. The keys up to initial_scrape_offset are those of the Collector's
// prometheus receiver and mean the same; the rest are this receiver's own.
type Config struct {
	// Prometheus is a Prometheus configuration: global, scrape_configs, scrape_config_files.
	Prometheus Prometheus `mapstructure:"config"`

	// TrimMetricSuffixes removes unit and type suffixes from metric names. Default false.
	TrimMetricSuffixes bool `mapstructure:"trim_metric_suffixes"`

	// TargetAllocator gets more jobs and their targets from a target allocator. Default: none.
	TargetAllocator configoptional.Optional[allocator.Config] `mapstructure:"target_allocator"`

	// APIServer serves the part of Prometheus's API that is about scraping. Default: not enabled.
	APIServer api.Config `mapstructure:"api_server"`

	// ScrapeOnShutdown scrapes every target once more when the receiver stops, whatever the interval. Default false.
	ScrapeOnShutdown bool `mapstructure:"scrape_on_shutdown"`

	// DiscoveryReloadOnStartup applies discovered targets without delay when the receiver starts. This receiver
	// always does; the key is accepted so that configurations with it load.
	DiscoveryReloadOnStartup bool `mapstructure:"discovery_reload_on_startup"`

	// InitialScrapeOffset delays the first scrape of each target, on top of its offset in the interval. Default 0.
	InitialScrapeOffset time.Duration `mapstructure:"initial_scrape_offset"`

	// Sharding divides the targets among several collectors. Default: this one has all targets.
	Sharding Sharding `mapstructure:"sharding"`

	// SeriesLimit limits the series a target may have over time. New ones beyond it are dropped and counted; known
	// ones continue. Default 0, no limit.
	SeriesLimit int `mapstructure:"series_limit"`

	// StaleMarkers emits a point without a value when a series or its target vanishes. Default true.
	StaleMarkers bool `mapstructure:"stale_markers"`

	// JobAndInstance gives each resource the attributes job and instance, with the values of service.name and
	// service.instance.id. Default false.
	JobAndInstance bool `mapstructure:"job_and_instance"`

	// KeepJobAndInstance sets service.name and service.instance.id to job and instance, as Prometheus does, even if the target_info of a page has
	// other values, which become service_name and service_instance_id. Series without job or instance, because of the page or of rules, stay without.
	// Default false: the page's values win, and series without get the target's.
	KeepJobAndInstance bool `mapstructure:"keep_job_and_instance"`

	// Reuse says whether the memory of metrics is used again once the pipeline has returned: auto (if all components of
	// the pipeline are known not to keep them), always (also if some do not say), never. Default auto.
	Reuse string `mapstructure:"reuse"`

	// LocalIdentity requests uncompressed bodies from targets on this host, which saves both sides the compression.
	// Default true.
	LocalIdentity bool `mapstructure:"local_identity"`

	// AlignScrapes scrapes all targets at multiples of their interval, all at once, instead of spreading them over it.
	// Default false.
	AlignScrapes bool `mapstructure:"align_scrapes"`

	// MaxConcurrentScrapes limits the scrapes in flight. Further ones wait. Default 0, no limit.
	MaxConcurrentScrapes int `mapstructure:"max_concurrent_scrapes"`

	// MaxBodySize limits an uncompressed body, in bytes, for jobs without a body_size_limit. A larger one fails its
	// scrape. Default 0: a quarter of the available memory, from 32 MiB to 256 MiB.
	MaxBodySize int64 `mapstructure:"max_body_size"`

	// MaxPageMemory limits the estimated memory of a page's series, in bytes: while it is read,
	// and what is remembered of it. A page that would take more fails its scrape. Default 0: half of the available memory, from
	// 16 MiB to 2 GiB.
	MaxPageMemory int64 `mapstructure:"max_page_memory"`

	// ReloadInterval is how often scrape_config_files are checked for changes. Default 10s; 0 means never.
	ReloadInterval time.Duration `mapstructure:"reload_interval"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Sharding divides targets among members by rendezvous hashing of their labels and URLs. All members need the same
// configuration except for Index.
type Sharding struct {
	// Members is how many collectors share the targets. Default 0: no sharing.
	Members int `mapstructure:"members"`
	// Index is which of them this one is, counted from 0. Default 0.
	Index int `mapstructure:"index"`
	// Replication is how many members scrape each target. Default 1.
	Replication int `mapstructure:"replication"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// The values of Reuse.
const (
	reuseAuto   = "auto"
	reuseAlways = "always"
	reuseNever  = "never"
)

// Unmarshal reports unknown keys with suggestions.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confkeys.Unmarshal(conf, c) }

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	if !c.Prometheus.hasJobs() && !c.TargetAllocator.HasValue() {
		errs = append(errs, errors.New("`config` must have `scrape_configs` or `scrape_config_files`, or there must be a `target_allocator`"))
	}
	if c.TargetAllocator.HasValue() && c.Sharding.Members > 1 {
		errs = append(errs, errors.New("`sharding` must not be used with `target_allocator`, which divides targets already"))
	}
	if s := c.Sharding; s.Members < 0 || s.Index < 0 || s.Index > 0 && s.Index >= s.Members {
		errs = append(errs, fmt.Errorf("`sharding.index` must be from 0 to `sharding.members` - 1, got %d of %d", s.Index, s.Members))
	}
	if s := c.Sharding; s.Replication < 0 || s.Replication > max(s.Members, 1) {
		errs = append(errs, fmt.Errorf("`sharding.replication` must be from 1 to `sharding.members`, got %d of %d", s.Replication, s.Members))
	}
	if !slices.Contains([]string{reuseAuto, reuseAlways, reuseNever}, c.Reuse) {
		errs = append(errs, fmt.Errorf("`reuse` must be auto, always or never, got %q", c.Reuse))
	}
	for _, n := range []struct {
		key   string
		value int64
	}{
		{"series_limit", int64(c.SeriesLimit)},
		{"max_body_size", c.MaxBodySize},
		{"max_page_memory", c.MaxPageMemory},
		{"max_concurrent_scrapes", int64(c.MaxConcurrentScrapes)},
		{"initial_scrape_offset", int64(c.InitialScrapeOffset)},
		{"reload_interval", int64(c.ReloadInterval)},
	} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("`%s` must not be negative, got %d", n.key, n.value))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) read() (reading, error) {
	return c.Prometheus.read(c.MaxBodySize)
}

// sum returns the checksum of the files as they are now.
func (c *Config) sum() uint64 {
	if c.Prometheus.loaded == nil {
		return 0
	}
	sum, _ := c.Prometheus.sumFiles() // an error is reported when they are read
	return sum
}
