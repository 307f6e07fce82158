// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package names makes the names and labels of series from those of OTLP, by its Config.
//
// It has no memory of earlier series. A Translator may be used from any goroutine; the caller owns what it returns.
package names

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/otlptranslator"
)

// Config says how names are translated.
type Config struct {
	// Strategy decides what is escaped, and whether there are suffixes.
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
}

func (cfg *Config) labelNamer() otlptranslator.LabelNamer {
	return otlptranslator.LabelNamer{
		UTF8Allowed:                 !cfg.Strategy.ShouldEscape(),
		UnderscoreLabelSanitization: cfg.StrictLabels || cfg.KeyedLabels,
		PreserveMultipleUnderscores: !cfg.StrictLabels,
	}
}

func (cfg *Config) checkStrategy() error {
	switch cfg.Strategy {
	case otlptranslator.UnderscoreEscapingWithSuffixes, otlptranslator.UnderscoreEscapingWithoutSuffixes,
		otlptranslator.NoUTF8EscapingWithSuffixes, otlptranslator.NoTranslation:
		return nil
	default:
		return fmt.Errorf("unknown translation strategy %q", cfg.Strategy)
	}
}

// CheckExternalLabels returns an error if a name of theirs cannot be used.
func (cfg *Config) CheckExternalLabels() error {
	_, err := cfg.externalLabels()
	return err
}

// externalLabels returns the external labels that have a value, with translated names, sorted.
func (cfg *Config) externalLabels() ([]Label, error) {
	namer := cfg.labelNamer()
	var list []Label
	for name, value := range cfg.ExternalLabels {
		clean, err := namer.Build(name)
		if err != nil {
			return nil, fmt.Errorf("cannot use external label %q: %w", name, err)
		}
		if value != "" {
			list = append(list, Label{clean, value})
		}
	}
	slices.SortFunc(list, ByName)
	for i := 1; i < len(list); i++ {
		if list[i].Name == list[i-1].Name {
			return nil, fmt.Errorf("cannot use external label %q: two names become it", list[i].Name)
		}
	}
	return list, nil
}

// Translator makes names and labels according to a configuration.
type Translator struct {
	cfg      Config
	metrics  otlptranslator.MetricNamer
	labels   otlptranslator.LabelNamer
	units    otlptranslator.UnitNamer
	External []Label // sorted by name
}

// New checks a configuration, and returns its translator.
func New(cfg Config) (*Translator, error) {
	external, err := cfg.externalLabels()
	if err := errors.Join(cfg.checkStrategy(), err); err != nil {
		return nil, err
	}
	return &Translator{
		cfg:      cfg,
		metrics:  otlptranslator.NewMetricNamer(cfg.Namespace, cfg.Strategy),
		labels:   cfg.labelNamer(),
		units:    otlptranslator.UnitNamer{UTF8Allowed: !cfg.Strategy.ShouldEscape()},
		External: external,
	}, nil
}

// Label returns the translated name of a label.
func (t *Translator) Label(name string) (string, error) { return t.labels.Build(name) }
