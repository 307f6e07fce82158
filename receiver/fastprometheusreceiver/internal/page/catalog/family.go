// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"hash/maphash"
	"strings"

	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A base is the family of a metric's name, as metadata decides it.
type base struct {
	Name      string // of the metric
	source    string // the name under which its metadata was found
	PromType  model.MetricType
	Help      string
	unit      string
	Kind      pmetric.MetricType
	Monotonic bool
	Custom    bool // a native histogram with custom buckets

	Out, OutUnit string
	family       *Family // the first one with this base: nearly always the only one
	epoch        uint32
}

// hash covers all that tells bases apart.
func (b *base) hash() uint64 {
	h := maphash.String(seed, b.Name)
	for _, s := range [...]string{string(b.PromType), b.Help, b.unit} {
		h = (h ^ maphash.String(seed, s)) * 0x9e3779b97f4a7c15
	}
	return h
}

// equals reports whether two bases are the same, apart from their families.
func (b *base) equals(other *base) bool {
	one, two := *b, *other
	one.family, two.family = nil, nil
	one.epoch, two.epoch = 0, 0
	return one == two
}

const unknownType = model.MetricTypeUnknown

// Metadata is what a page says about a family.
type Metadata struct {
	typ        model.MetricType
	help, unit string
}

const (
	bucketSuffix  = "_bucket"
	countSuffix   = "_count"
	sumSuffix     = "_sum"
	totalSuffix   = "_total"
	infoSuffix    = "_info"
	createdSuffix = "_created"

	scopePrefix = translator.ScopeLabelPrefix
)

// stem splits a name before the suffix, if any, that names a part of a family.
func stem(name string) (string, string) {
	for _, s := range [...]string{bucketSuffix, countSuffix, sumSuffix, totalSuffix, infoSuffix, createdSuffix} {
		if trimmed, ok := strings.CutSuffix(name, s); ok && trimmed != "" {
			return trimmed, s
		}
	}
	return name, ""
}

// A Native says which kind of native histogram a sample is, if any.
type Native uint8

// The kinds of histograms.
const (
	Classic Native = iota
	Exponential
	Custom
)

// Names of the report's series.
const (
	SamplesScraped = "scrape_samples_scraped"
	SeriesAdded    = "scrape_series_added"
)

// reportFamilies are the families of the series a scrape reports about itself.
var reportFamilies = map[string]Metadata{
	"up":                      {model.MetricTypeGauge, "The scraping was successful", ""},
	"scrape_duration_seconds": {model.MetricTypeGauge, "Duration of the scrape", "seconds"},
	SamplesScraped:            {model.MetricTypeGauge, "The number of samples the target exposed", ""},
	SeriesAdded:               {model.MetricTypeGauge, "The approximate number of new series in this scrape", ""},
	"scrape_samples_post_metric_relabeling": {
		model.MetricTypeGauge, "The number of samples remaining after metric relabeling was applied", "",
	},
}

// PageMetadata is what a page has said about its metrics so far, and before that what earlier pages said.
type PageMetadata struct {
	catalog  *Catalog
	Epoch    uint32 // of names that are resolved
	Said     map[string]Metadata
	known    func(family string) (Metadata, bool)
	resolved map[familyKey]*base
}

// Begin starts a page, with the epoch that marks resolved names.
func (p *PageMetadata) Begin(c *Catalog, epoch uint32, known func(family string) (Metadata, bool)) {
	p.catalog, p.Epoch, p.known = c, epoch, known
	p.Said, p.resolved = Cleared(p.Said), Cleared(p.resolved)
}

// mostCleared limits the maps that are used again: a map does not shrink.
const mostCleared = 1 << 12

// Cleared returns an empty map: m itself, unless that is too large.
func Cleared[K comparable, V any](m map[K]V) map[K]V {
	if m == nil || len(m) > mostCleared {
		return map[K]V{}
	}
	clear(m)
	return m
}

// of returns what is known about a family at this point of the page.
func (p *PageMetadata) of(family string) (Metadata, bool) {
	if md, ok := p.Said[family]; ok {
		return md, true
	}
	return p.known(family)
}

// Apply records what a line of metadata says.
func (p *PageMetadata) Apply(l *Line) {
	m := p.catalog.metas[l]
	md, ok := p.of(l.Name.Final)
	if !ok {
		md.typ = unknownType
	}
	switch m.Kind {
	case TypeLine:
		md.typ = m.Type
	case HelpLine:
		md.help = m.Text
	default:
		md.unit = m.Text
	}
	p.Said[l.Name.Final] = md
}

// describe returns the base of a metric's name and its metadata.
func (p *PageMetadata) describe(n *Name) (base, Metadata) {
	if md, ok := reportFamilies[n.Final]; ok {
		return base{Name: n.Final, source: n.Final}, md
	}
	if md, ok := p.of(n.Final); ok {
		return base{Name: n.Final, source: n.Final}, md
	}
	trimmed, suffix := stem(n.Final)
	if md, ok := p.of(trimmed); ok {
		return base{Name: familyName(n.Final, trimmed, suffix, md.typ), source: trimmed}, md
	}
	if n.exposed != n.Final { // renamed: metadata of the old name still applies
		if md, ok := p.of(n.exposed); ok {
			return base{Name: n.Final, source: n.Final}, md
		}
		old, suffix := stem(n.exposed)
		if trimmed, ok := strings.CutSuffix(n.Final, suffix); ok && trimmed != "" {
			if md, ok := p.of(old); ok {
				return base{Name: familyName(n.Final, trimmed, suffix, md.typ), source: trimmed}, md
			}
		}
	}
	return base{Name: n.Final, source: n.Final}, Metadata{typ: model.MetricTypeUnknown}
}

// familyName returns the metric name of a sample whose metadata is that of its stem: a counter keeps its suffix.
func familyName(full, trimmed, suffix string, t model.MetricType) string {
	switch {
	case t != model.MetricTypeCounter:
		return trimmed
	case suffix == createdSuffix:
		return trimmed + totalSuffix
	default:
		return full
	}
}

// Base resolves a name, once a page: the first sample of a family decides its kind.
func (p *PageMetadata) Base(n *Name, as Native) *base {
	slot := 0
	if as != Classic {
		slot = 1
	}
	if n.Epoch != p.Epoch {
		n.Epoch, n.base = p.Epoch, [2]*base{}
	}
	if n.base[slot] == nil {
		n.base[slot] = p.resolve(n, as)
	}
	return n.base[slot]
}

type familyKey struct {
	name   string
	native bool
}

// Was returns what earlier pages made of a name that may belong to a part of a histogram or a summary; nil if it is no
// such name.
func (p *PageMetadata) Was(n *Name) *base {
	if _, suffix := stem(n.Final); suffix != bucketSuffix && suffix != countSuffix && suffix != sumSuffix {
		return nil
	}
	before := PageMetadata{catalog: p.catalog, known: p.known, resolved: map[familyKey]*base{}}
	return before.resolve(n, Classic)
}

func (p *PageMetadata) resolve(n *Name, as Native) *base {
	isNative := as != Classic
	if b, ok := p.resolved[familyKey{n.Final, isNative}]; ok {
		return b
	}
	family := n.Final
	if _, ok := p.of(family); !ok {
		trimmed, suffix := stem(family)
		if md, ok := p.of(trimmed); ok && suffix == createdSuffix && md.typ == model.MetricTypeCounter {
			trimmed += totalSuffix
		}
		family = trimmed
	}
	if b, ok := p.resolved[familyKey{family, isNative}]; ok && b.includes(n.Final) {
		return b
	}
	b, md := p.describe(n)
	b.PromType, b.Help, b.unit = md.typ, md.help, md.unit
	if isNative {
		b.PromType = model.MetricTypeHistogram
	}
	b.Custom = as == Custom
	b.Kind, b.Monotonic = kindOf(b.PromType, as == Exponential)
	b.Out, b.OutUnit = b.Name, translator.UnitWordToUCUM(b.unit)
	if p.catalog.Rules.TrimSuffixes {
		b.Out = translator.TrimPromSuffixes(b.Name, b.Kind, b.unit)
	}
	kept := p.catalog.metrics.base(b)
	p.resolved[familyKey{b.Name, isNative}] = kept
	return kept
}

// includes reports whether a metric's samples belong to the family.
func (b *base) includes(metric string) bool {
	trimmed, _ := stem(metric)
	switch b.Kind {
	case pmetric.MetricTypeSum:
		return trimmed == b.source
	case pmetric.MetricTypeGauge:
		return metric == b.Name
	default:
		return trimmed == b.Name
	}
}

func kindOf(t model.MetricType, exponential bool) (kind pmetric.MetricType, monotonic bool) {
	switch t {
	case model.MetricTypeCounter:
		return pmetric.MetricTypeSum, true
	case model.MetricTypeInfo, model.MetricTypeStateset:
		return pmetric.MetricTypeSum, false
	case model.MetricTypeGauge, model.MetricTypeUnknown:
		return pmetric.MetricTypeGauge, false
	case model.MetricTypeSummary:
		return pmetric.MetricTypeSummary, true
	case model.MetricTypeHistogram:
		if exponential {
			return pmetric.MetricTypeExponentialHistogram, true
		}
		return pmetric.MetricTypeHistogram, true
	default: // a gauge histogram becomes plain gauges
		return pmetric.MetricTypeEmpty, false
	}
}

// role returns which part of a point a sample of the family is. The name of a summary may end in a suffix for counts:
// its quantiles, which have that name, are told apart by their label.
func (b *base) role(metric string, as Native, isQuantile bool) role {
	created := metric == b.source+createdSuffix
	switch {
	case as != Classic:
		return NativeRole
	case b.Kind == pmetric.MetricTypeHistogram || b.Kind == pmetric.MetricTypeSummary:
		switch {
		case isQuantile && metric == b.source && b.Kind == pmetric.MetricTypeSummary:
			return BucketRole
		case strings.HasSuffix(metric, sumSuffix):
			return SumRole
		case strings.HasSuffix(metric, countSuffix):
			return CountRole
		case created:
			return CreatedRole
		default:
			return BucketRole
		}
	case b.Kind == pmetric.MetricTypeSum && created:
		return CreatedRole
	default:
		return ValueRole
	}
}

// TypeOfPoints is the type of the family's metrics: a family of unknown type is a gauge.
func (b *base) TypeOfPoints() pmetric.MetricType {
	switch b.Kind {
	case pmetric.MetricTypeSum, pmetric.MetricTypeHistogram, pmetric.MetricTypeSummary, pmetric.MetricTypeExponentialHistogram:
		return b.Kind
	default:
		return pmetric.MetricTypeGauge
	}
}
