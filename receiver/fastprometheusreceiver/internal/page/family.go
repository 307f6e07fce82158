// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"hash/maphash"
	"strings"

	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A base is what metadata makes of a metric's name.
type base struct {
	name      string // of the metric
	source    string // the name its metadata is found under
	promType  model.MetricType
	help      string
	unit      string
	kind      pmetric.MetricType
	monotonic bool
	custom    bool // a native histogram with custom buckets

	out, outUnit string
	family       *family // the first that it has: nearly always the only one
	epoch        uint32
}

// hash is one of what tells bases apart.
func (b *base) hash() uint64 {
	h := maphash.String(seed, b.name)
	for _, s := range [...]string{string(b.promType), b.help, b.unit} {
		h = (h ^ maphash.String(seed, s)) * 0x9e3779b97f4a7c15
	}
	return h
}

// equals tells whether two bases are the same, whatever families they have.
func (b *base) equals(other *base) bool {
	one, two := *b, *other
	one.family, two.family = nil, nil
	one.epoch, two.epoch = 0, 0
	return one == two
}

// metadata is what is known of a family.
type metadata struct {
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

// stem returns a name without the first suffix it has of those that name the parts of a family, and the suffix.
func stem(name string) (string, string) {
	for _, s := range [...]string{bucketSuffix, countSuffix, sumSuffix, totalSuffix, infoSuffix, createdSuffix} {
		if trimmed, ok := strings.CutSuffix(name, s); ok && trimmed != "" {
			return trimmed, s
		}
	}
	return name, ""
}

// A native says which representation of a histogram a sample has.
type native uint8

const (
	classic native = iota
	exponential
	custom
)

// reportFamilies are the families of the series a scrape reports about itself.
var reportFamilies = map[string]metadata{
	"up":                      {model.MetricTypeGauge, "The scraping was successful", ""},
	"scrape_duration_seconds": {model.MetricTypeGauge, "Duration of the scrape", "seconds"},
	samplesScraped:            {model.MetricTypeGauge, "The number of samples the target exposed", ""},
	seriesAdded:               {model.MetricTypeGauge, "The approximate number of new series in this scrape", ""},
	"scrape_samples_post_metric_relabeling": {
		model.MetricTypeGauge, "The number of samples remaining after metric relabeling was applied", "",
	},
}

// describe finds the metadata of a metric and the name it is known by.
func (p *pass) describe(n *name) (base, metadata) {
	if md, ok := reportFamilies[n.final]; ok {
		return base{name: n.final, source: n.final}, md
	}
	if md, ok := p.metadata(n.final); ok {
		return base{name: n.final, source: n.final}, md
	}
	trimmed, suffix := stem(n.final)
	if md, ok := p.metadata(trimmed); ok {
		return base{name: familyName(n.final, trimmed, suffix, md.typ), source: trimmed}, md
	}
	if n.exposed != n.final { // renamed: what was said of the old name still holds
		if md, ok := p.metadata(n.exposed); ok {
			return base{name: n.final, source: n.final}, md
		}
		old, suffix := stem(n.exposed)
		if trimmed, ok := strings.CutSuffix(n.final, suffix); ok && trimmed != "" {
			if md, ok := p.metadata(old); ok {
				return base{name: familyName(n.final, trimmed, suffix, md.typ), source: trimmed}, md
			}
		}
	}
	return base{name: n.final, source: n.final}, metadata{typ: model.MetricTypeUnknown}
}

// familyName names the metric of a sample whose metadata is that of its stem: a counter keeps its suffix.
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

// base resolves a name, once in a page: a family is what its first sample makes it.
func (p *pass) base(n *name, as native) *base {
	slot := 0
	if as != classic {
		slot = 1
	}
	if n.epoch != p.epoch {
		n.epoch, n.base = p.epoch, [2]*base{}
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

func (p *pass) resolve(n *name, as native) *base {
	isNative := as != classic
	if b, ok := p.families[familyKey{n.final, isNative}]; ok {
		return b
	}
	family := n.final
	if _, ok := p.metadata(family); !ok {
		trimmed, suffix := stem(family)
		if md, ok := p.metadata(trimmed); ok && suffix == createdSuffix && md.typ == model.MetricTypeCounter {
			trimmed += totalSuffix
		}
		family = trimmed
	}
	if b, ok := p.families[familyKey{family, isNative}]; ok && b.includes(n.final) {
		return b
	}
	b, md := p.describe(n)
	b.promType, b.help, b.unit = md.typ, md.help, md.unit
	if isNative {
		b.promType = model.MetricTypeHistogram
	}
	b.custom = as == custom
	b.kind, b.monotonic = kindOf(b.promType, as == exponential)
	b.out, b.outUnit = b.name, translator.UnitWordToUCUM(b.unit)
	if p.job.cfg.TrimSuffixes {
		b.out = translator.TrimPromSuffixes(b.name, b.kind, b.unit)
	}
	hash := b.hash()
	kept := p.bases.find(hash, b.equals)
	if kept == nil {
		kept = new(base)
		*kept = b
		p.bases.insert(kept, hash)
		p.size += baseBytes
	}
	p.families[familyKey{b.name, isNative}] = kept
	return kept
}

// includes tells whether a metric's samples belong to the family.
func (b *base) includes(metric string) bool {
	trimmed, _ := stem(metric)
	switch b.kind {
	case pmetric.MetricTypeSum:
		return trimmed == b.source
	case pmetric.MetricTypeGauge:
		return metric == b.name
	default:
		return trimmed == b.name
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
	default: // a gauge histogram comes out as plain gauges
		return pmetric.MetricTypeEmpty, false
	}
}

// role tells which part of a point a sample of the family is.
func (b *base) role(metric string, as native) role {
	created := metric == b.source+createdSuffix
	switch {
	case as != classic:
		return nativeRole
	case b.kind == pmetric.MetricTypeHistogram || b.kind == pmetric.MetricTypeSummary:
		switch {
		case strings.HasSuffix(metric, sumSuffix):
			return sumRole
		case strings.HasSuffix(metric, countSuffix):
			return countRole
		case created:
			return createdRole
		default:
			return bucketRole
		}
	case b.kind == pmetric.MetricTypeSum && created:
		return createdRole
	default:
		return valueRole
	}
}
