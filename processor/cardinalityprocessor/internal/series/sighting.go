// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// Of returns the attributes of a series on one side.
func (x *Sighting) Of(s ident.Side) pcommon.Map {
	if s == ident.OfResource {
		return x.Owner.Resource
	}
	return x.Attributes
}

// limited appends the values of labels with a limit that a series has in a group.
func (x *Sighting) limited(l *policy.Limit, of *policy.Terms, group uint64) {
	for i := range l.Labels {
		label := &l.Labels[i]
		for s, on := range label.On {
			if !on {
				continue
			}
			value, ok := x.Of(ident.Side(s)).Get(label.Key)
			if !ok || slices.Contains(x.Collapsed, ident.LabelAt{Key: label.Key, Side: ident.Side(s)}) {
				continue
			}
			key := ident.Mix(label.Values.Key, group)
			x.Values = append(x.Values, labelValue{
				limit: l, label: i, side: ident.Side(s), fp: ident.Settled(ident.Mix(key, x.Hash.Value(value))),
				place: Place{Limit: l, Terms: of, Key: key},
			})
		}
	}
}

// beside is how many values before one are new and have the same limit: a series may have several.
func (l *Limiter) beside(values []labelValue, i int) (n int) {
	for j := range i {
		v := &values[j]
		if v.place.Key == values[i].place.Key && v.fp != values[i].fp && !l.Values.Has(v.fp) &&
			!slices.ContainsFunc(values[:j], func(o labelValue) bool { return o.fp == v.fp }) {
			n++
		}
	}
	return n
}

// Witness records which limits match a point that is decided about without them.
func (x *Sighting) Witness() {
	for _, l := range x.Limits {
		if l.Match.MatchPoint(&x.Owner, x.Attributes) {
			l.Alive.Match(x.Now)
		}
	}
}
