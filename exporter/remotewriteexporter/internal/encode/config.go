// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// Format is how a request is written.
type Format = block.Format

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
	// Strategy decides how names are translated.
	Strategy otlptranslator.TranslationStrategyOption
	// StrictLabels collapses runs of underscores in label names and puts `key` before a leading one.
	StrictLabels bool
	// KeyedLabels puts `key` before a leading underscore, and keeps runs of them: what Prometheus does with OTLP by default.
	KeyedLabels bool
	// ScrapedNames keeps the names of scraped metrics as they are where they are valid: a scrape already
	// yields Prometheus names, to which suffixes would do harm.
	ScrapedNames bool
	// Namespace is put before each metric name.
	Namespace string
	// ExternalLabels are added to each series that has no label of that name.
	ExternalLabels map[string]string
	// TypeAndUnitLabels adds the type and the unit of a metric as labels, as a feature of Prometheus does.
	TypeAndUnitLabels bool
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
		Strategy:           otlptranslator.UnderscoreEscapingWithSuffixes,
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
	switch cfg.Strategy {
	case otlptranslator.UnderscoreEscapingWithSuffixes, otlptranslator.UnderscoreEscapingWithoutSuffixes,
		otlptranslator.NoUTF8EscapingWithSuffixes, otlptranslator.NoTranslation:
	default:
		errs = append(errs, fmt.Errorf("unknown translation strategy %q", cfg.Strategy))
	}
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

func (cfg *Config) labelNamer() otlptranslator.LabelNamer {
	return otlptranslator.LabelNamer{
		UTF8Allowed:                 !cfg.Strategy.ShouldEscape(),
		UnderscoreLabelSanitization: cfg.StrictLabels || cfg.KeyedLabels,
		PreserveMultipleUnderscores: !cfg.StrictLabels,
	}
}

// CheckExternalLabels says what is wrong with their names.
func (cfg *Config) CheckExternalLabels() error {
	_, err := cfg.externalLabels()
	return err
}

// externalLabels are those of a value, translated and sorted by name.
func (cfg *Config) externalLabels() ([]label, error) {
	namer := cfg.labelNamer()
	var list []label
	for name, value := range cfg.ExternalLabels {
		clean, err := namer.Build(name)
		if err != nil {
			return nil, fmt.Errorf("cannot use external label %q: %w", name, err)
		}
		if value != "" {
			list = append(list, label{clean, value})
		}
	}
	slices.SortFunc(list, byName)
	for i := 1; i < len(list); i++ {
		if list[i].name == list[i-1].name {
			return nil, fmt.Errorf("cannot use external label %q: two names become it", list[i].name)
		}
	}
	return list, nil
}
