// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/metric"
)

// side is where an attribute is: at the point, or at its resource.
type side uint8

const (
	ofPoint side = iota
	ofResource
	sides
)

// labelAt is one attribute of a series.
type labelAt struct {
	key  string
	side side
}

// labelLimit bounds the values of an attribute, wherever it is or on one side only.
type labelLimit struct {
	name   string // in the configuration
	key    string
	on     [sides]bool
	values bound // of which 0 allows none

	measured metric.MeasurementOption // the attributes of what is measured of it
}

// newLabelLimit reads `KEY`, `resource:KEY` or `attribute:KEY`.
func newLabelLimit(name string) labelLimit {
	kind, key, _ := strings.Cut(name, ":")
	switch kind {
	case byResource:
		return labelLimit{name: name, key: key, on: [sides]bool{ofResource: true}}
	case byAttribute:
		return labelLimit{name: name, key: key, on: [sides]bool{ofPoint: true}}
	default:
		return labelLimit{name: name, key: name, on: [sides]bool{true, true}}
	}
}

// of returns the attributes of a series on one side.
func (x *sighting) of(s side) pcommon.Map {
	if s == ofResource {
		return x.owner.resource
	}
	return x.attributes
}

// limited appends the values of labels with a limit that a series has in a group.
func (x *sighting) limited(l *limit, of *terms, group uint64) {
	for i := range l.labels {
		label := &l.labels[i]
		for s, on := range label.on {
			if !on {
				continue
			}
			value, ok := x.of(side(s)).Get(label.key)
			if !ok || slices.Contains(x.collapsed, labelAt{label.key, side(s)}) {
				continue
			}
			key := mix(label.values.key, group)
			x.values = append(x.values, labelValue{
				limit: l, label: i, side: side(s), fp: settled(mix(key, x.hash.value(value))),
				place: place{limit: l, terms: of, key: key},
			})
		}
	}
}

// beside is how many values that are not there yet come before one with the same limit: a series may have several.
func (l *limiter) beside(values []labelValue, i int) (n int) {
	for j := range i {
		v := &values[j]
		if v.place.key == values[i].place.key && v.fp != values[i].fp && !l.values.has(v.fp) &&
			!slices.ContainsFunc(values[:j], func(o labelValue) bool { return o.fp == v.fp }) {
			n++
		}
	}
	return n
}

// collapsedIdentity is that of the point at hand with the values of its collapsed labels replaced: of the scope, the metric, and
// the whole.
func (b *batch) collapsedIdentity() (keys outputKeys, fp uint64) {
	keys = outputKeys{b.at.scope, b.at.metric}
	if slices.ContainsFunc(b.collapsed, func(l labelAt) bool { return l.side == ofResource }) {
		resource := b.hash.without(b.owner.resource, b.collapsed, ofResource)
		if b.at.seed != 0 {
			resource = mix(resource, b.at.seed)
		}
		keys.scope = b.hash.scope(resource, b.at.sm.Scope())
		keys.metric = b.hash.metric(keys.scope, b.at.m)
	}
	return keys, settled(mix(keys.metric, b.hash.without(b.attributes, b.collapsed, ofPoint)))
}

// replace puts the mark of a collapsed label in the place of its value.
func replace(attributes pcommon.Map, collapsed []labelAt, on side) {
	for _, l := range collapsed {
		if l.side == on {
			attributes.PutStr(l.key, collapsedValue)
		}
	}
}
