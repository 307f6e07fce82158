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

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// ScopeLabels says which series bear the name, version and attributes of their scope as labels.
type ScopeLabels uint8

// The choices.
const (
	ScopeLabelsOff  ScopeLabels = iota
	ScopeLabelsOn               // all series
	ScopeLabelsAuto             // all but scraped ones, whose scope only ever names the receiver
)

// Delta says what becomes of points that count since the last point.
type Delta uint8

// The choices.
const (
	DeltaDrop       Delta = iota // left out and counted
	DeltaCumulative              // summed up, with state bounded by Config.MaxDelta
)

// Config says how points become series. Start from DefaultConfig.
type Config struct {
	// Names says how names are translated.
	Names names.Config
	// ScopeLabels adds the scope as labels.
	ScopeLabels ScopeLabels
	// PromoteResourceAttributes are globs of the resource attributes that become labels of each series,
	// ExcludeResourceAttributes exceptions to them. ResourceWins decides a clash with a point's attribute.
	PromoteResourceAttributes []string
	ExcludeResourceAttributes []string
	ResourceWins              bool
	// Rules are applied to the labels of each series last, as those of Prometheus' write_relabel_configs are.
	Rules []relabel.Config

	// TargetInfo adds a target_info series for each resource, once per TargetInfoInterval of its points' time.
	TargetInfo         bool
	TargetInfoInterval time.Duration
	// Metadata sends type, help and unit: with each series of 2.0; in 1.0 once per MetadataInterval of points' time.
	Metadata         bool
	MetadataInterval time.Duration
	// Exemplars sends exemplars, and RepeatExemplars those again that a series had in its last point.
	Exemplars       bool
	RepeatExemplars bool
	// StartTimestamps sends start timestamps of counters, histograms and summaries, which only 2.0 can carry.
	StartTimestamps bool
	// CustomBuckets turns histograms with explicit bounds into native ones, which only 2.0 can carry.
	// KeepClassic sends the classic series too.
	CustomBuckets bool
	KeepClassic   bool
	// Delta says what becomes of delta points; MaxDelta bounds the series whose sums are held.
	Delta    Delta
	MaxDelta int

	// Shards is the number of independent columns. SetShards changes it.
	Shards int
	// MaxSeries bounds the points recognised, and the resources. Beyond it points are still sent, but each
	// is translated anew, until Expire finds idle ones to forget.
	MaxSeries int
	// MaxTenants bounds tenants; points of further ones are dropped and counted.
	MaxTenants int
	// CheckTenant says what is wrong with a tenant's name; points of such are dropped and counted. nil takes all.
	CheckTenant func(tenant string) error
	// IdleGenerations is how many calls of Expire an entry survives without being seen.
	IdleGenerations int

	// MaxSamples, MaxRawBytes and MaxCompressedBytes bound a request.
	MaxSamples         int
	MaxRawBytes        int
	MaxCompressedBytes int
}

// DefaultConfig has contrib's rules of naming and the request sizes that compress well.
func DefaultConfig() Config {
	return Config{
		Names:              names.Config{Strategy: otlptranslator.UnderscoreEscapingWithSuffixes},
		ScopeLabels:        ScopeLabelsAuto,
		TargetInfo:         true,
		TargetInfoInterval: time.Minute,
		Metadata:           true,
		MetadataInterval:   time.Minute,
		Exemplars:          true,
		StartTimestamps:    true,
		MaxDelta:           100_000,
		Shards:             1,
		MaxSeries:          1_000_000,
		MaxTenants:         1000,
		IdleGenerations:    5,
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
		{"max series", cfg.MaxSeries},
		{"max tenants", cfg.MaxTenants},
		{"idle generations", cfg.IdleGenerations},
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
	if cfg.Delta == DeltaCumulative && cfg.MaxDelta <= 0 {
		errs = append(errs, fmt.Errorf("max delta must be positive, got %d", cfg.MaxDelta))
	}
	return errors.Join(errs...)
}
