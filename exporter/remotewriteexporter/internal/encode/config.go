// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// Config determines how points become series. Start from DefaultConfig.
type Config struct {
	// Names says how names are translated.
	Names names.Config
	// Cache determines the labels of series, and how many are remembered.
	Cache cache.Config
	// Rules are applied to the labels of each series last, as those of Prometheus' write_relabel_configs are.
	Rules []relabel.Config

	// TargetInfoInterval is how often the target_info of a resource is sent, by its points' time, and MetadataInterval how often metadata
	// is in 1.0; in 2.0 each series has its own.
	TargetInfoInterval time.Duration
	MetadataInterval   time.Duration
	// Exemplars sends exemplars; RepeatExemplars also those that a series already had in its last point.
	Exemplars       bool
	RepeatExemplars bool
	// StartTimestamps sends start timestamps of counters, histograms and summaries, which only 2.0 can carry.
	StartTimestamps bool

	// MaxDelta limits the series for which sums are held.
	MaxDelta int

	// Shards is the number of independent columns. SetShards changes it.
	Shards int
	// MaxTenants limits the tenants; points of further ones are dropped and counted.
	MaxTenants int
	// CheckTenant returns an error for an invalid tenant name, whose points are dropped and counted. nil accepts all.
	CheckTenant func(tenant string) error

	// MaxSamples, MaxRawBytes and MaxCompressedBytes limit a request.
	MaxSamples         int
	MaxRawBytes        int
	MaxCompressedBytes int
}

// DefaultConfig has the naming rules of contrib and request sizes that compress well.
func DefaultConfig() Config {
	return Config{
		Names:              names.Config{Strategy: otlptranslator.UnderscoreEscapingWithSuffixes},
		Cache:              cache.Config{ScopeLabels: cache.ScopeLabelsAuto, TargetInfo: true, Metadata: true, MaxSeries: 1_000_000, IdleGenerations: 5},
		TargetInfoInterval: time.Minute,
		MetadataInterval:   time.Minute,
		Exemplars:          true,
		StartTimestamps:    true,
		MaxDelta:           100_000,
		Shards:             1,
		MaxTenants:         1000,
		MaxSamples:         50_000,
		MaxRawBytes:        8 << 20,
		MaxCompressedBytes: 4 << 20,
	}
}

func (cfg *Config) validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int
	}{
		{"shards", cfg.Shards},
		{"max series", cfg.Cache.MaxSeries},
		{"max tenants", cfg.MaxTenants},
		{"idle generations", cfg.Cache.IdleGenerations},
		{"max samples", cfg.MaxSamples},
		{"max raw bytes", cfg.MaxRawBytes},
		{"max compressed bytes", cfg.MaxCompressedBytes},
	} {
		if f.value <= 0 {
			errs = append(errs, fmt.Errorf("%s must be positive, got %d", f.name, f.value))
		}
	}
	if cfg.Shards > math.MaxUint16 {
		errs = append(errs, fmt.Errorf("shards must be at most %d, got %d", math.MaxUint16, cfg.Shards))
	}
	if cfg.Cache.Delta == cache.DeltaCumulative && cfg.MaxDelta <= 0 {
		errs = append(errs, fmt.Errorf("max delta must be positive, got %d", cfg.MaxDelta))
	}
	return errors.Join(errs...)
}
