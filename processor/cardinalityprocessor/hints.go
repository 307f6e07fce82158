// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// hints are what metrics came to that a receiver fills again and again, in the order in which a batch goes through them. They
// are left with the memory, as package handback has it: the receiver drops them when it changes which points there are, or
// their attributes. Nothing depends on that alone. A hint is used for the point at the address that it was made for, with
// as many attributes, and for the name and unit that it was made of; from the first that differs on, hints are made anew.
//
// Resources are not among them: targets that are alike share memory.
type hints struct {
	metrics []metricHint
	points  []pointHint
}

type metricHint struct {
	name, unit     string
	ofName, ofUnit uint64
}

type pointHint struct {
	at     pcommon.Map // its attributes: where they are, not what they are
	length int
	hash   uint64
}

// maxHints is how many points hints are kept of, 40 bytes each. Larger pages come in parts, without hints.
const maxHints = 1 << 16

// hinted goes through hints.
type hinted struct {
	*hints // nil without any

	metric, point int // the next
}

// metricHash is hasher.metric.
func (x *hinted) metricHash(h *hasher, scope uint64, m pmetric.Metric) uint64 {
	if x.hints == nil {
		return h.metric(scope, m)
	}
	name, unit := m.Name(), m.Unit()
	if x.metric < len(x.metrics) {
		if k := &x.metrics[x.metric]; k.name == name && k.unit == unit {
			x.metric++
			return mix(mix(scope, k.ofName), mix(k.ofUnit, kindOf(m)))
		}
		clear(x.metrics[x.metric:])
		x.metrics = x.metrics[:x.metric]
	}
	k := metricHint{name: name, unit: unit, ofName: h.text(name), ofUnit: h.text(unit)}
	if len(x.metrics) < maxHints {
		x.metrics = append(x.metrics, k)
		x.metric++
	}
	return mix(mix(scope, k.ofName), mix(k.ofUnit, kindOf(m)))
}

// attributes is hasher.attributes.
func (x *hinted) attributes(r *recall, h *hasher, of pcommon.Map) uint64 {
	if x.hints == nil {
		return r.attributes(h, of)
	}
	if x.point < len(x.points) {
		if p := &x.points[x.point]; p.at == of && p.length == of.Len() {
			x.point++
			return p.hash
		}
		clear(x.points[x.point:])
		x.points = x.points[:x.point]
	}
	sum := r.attributes(h, of)
	if len(x.points) < maxHints {
		x.points = append(x.points, pointHint{at: of, length: of.Len(), hash: sum})
		x.point++
	}
	return sum
}
