// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"strings"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// KindsOf returns the kind of a metric, for its name and for its metadata. It returns false if there is none.
func KindsOf(kind pmetric.MetricType, monotonic bool, typeHint string) (otlptranslator.MetricType, promwrite.MetricType, bool) {
	switch kind {
	case pmetric.MetricTypeGauge:
		if typeHint == "unknown" {
			return otlptranslator.MetricTypeGauge, promwrite.Unknown, true
		}
		return otlptranslator.MetricTypeGauge, promwrite.Gauge, true
	case pmetric.MetricTypeSum:
		if monotonic {
			return otlptranslator.MetricTypeMonotonicCounter, promwrite.Counter, true
		}
		switch typeHint {
		case "info":
			return otlptranslator.MetricTypeNonMonotonicCounter, promwrite.Info, true
		case "stateset":
			return otlptranslator.MetricTypeNonMonotonicCounter, promwrite.Stateset, true
		default:
			return otlptranslator.MetricTypeNonMonotonicCounter, promwrite.Gauge, true
		}
	case pmetric.MetricTypeHistogram:
		return otlptranslator.MetricTypeHistogram, promwrite.ClassicHistogram, true
	case pmetric.MetricTypeExponentialHistogram:
		return otlptranslator.MetricTypeExponentialHistogram, promwrite.ClassicHistogram, true
	case pmetric.MetricTypeSummary:
		return otlptranslator.MetricTypeSummary, promwrite.Summary, true
	default:
		return otlptranslator.MetricTypeUnknown, promwrite.Unknown, false
	}
}

// Metric returns the name of a metric; empty if none can be made.
func (t *Translator) Metric(name, unit string, kind otlptranslator.MetricType) string {
	made, err := t.metrics.Build(otlptranslator.Metric{Name: name, Unit: unit, Type: kind})
	if err != nil {
		return ""
	}
	return made
}

// Scraped returns the name of a scraped metric: that on its page, if configured so.
func (t *Translator) Scraped(name, unit string, kind otlptranslator.MetricType, mtype promwrite.MetricType) string {
	if !t.cfg.ScrapedNames || t.cfg.Namespace != "" || !isLegacyName(name) {
		return t.Metric(name, unit, kind)
	}
	const suffix = "_info" // receivers know an info metric by its family, which lacks the suffix
	if mtype == promwrite.Info && !strings.HasSuffix(name, suffix) {
		return name + suffix
	}
	return name
}

// TargetInfo is the name of the series with the attributes of resources.
func (t *Translator) TargetInfo() string {
	name := otlptranslator.TargetInfoMetricName
	if t.cfg.Namespace != "" {
		name = t.cfg.Namespace + "_" + name
		if t.cfg.Strategy.ShouldEscape() {
			name = legacyName(name)
		}
	}
	return name
}

// Unit translates a unit.
func (t *Translator) Unit(unit string) string { return t.units.Build(unit) }

// TypeAndUnit returns labels for a metric's type and unit, if known and configured.
func (t *Translator) TypeAndUnit(mtype promwrite.MetricType, unit string) (list []Label) {
	if !t.cfg.TypeAndUnitLabels {
		return nil
	}
	if mtype != promwrite.Unknown {
		list = append(list, Label{typeLabel, mtype.String()})
	}
	if unit != "" {
		list = append(list, Label{unitLabel, unit})
	}
	return list
}

func isLegacyName(s string) bool {
	return s != "" && legacyName(s) == s && (s[0] < '0' || s[0] > '9')
}

// legacyName replaces characters that Prometheus did not always allow in a name.
func legacyName(name string) string {
	return strings.Map(func(r rune) rune {
		if validNameRune(r) {
			return r
		}
		return '_'
	}, name)
}

func validNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == ':'
}
