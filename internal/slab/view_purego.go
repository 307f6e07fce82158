// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build purego

package slab

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Readable reports whether pdata's memory can be read directly. If not, nothing else in this file may be used.
func Readable() bool { return false }

// Attribute is one of a map's.
type Attribute struct{}

// Number is a point with one number.
type Number struct{}

// Metric is a metric.
type Metric struct{}

// Metrics returns nothing.
func Metrics(pmetric.MetricSlice) []*Metric { return nil }

// Texts are not known.
func (*Metric) Texts() (name, unit, description string) { return "", "", "" }

// Metadata is not known.
func (*Metric) Metadata() []Attribute { return nil }

// Sums are not known.
func (*Metric) Sums() (monotonic bool, temporality int32) { return false, 0 }

// Numbers are not known.
func (*Metric) Numbers() (points []*Number, ok bool) { return nil, false }

// Attributes returns nothing.
func Attributes(pcommon.Map) []Attribute { return nil }

// Numbers returns nothing.
func Numbers(pmetric.NumberDataPointSlice) []*Number { return nil }

// Key is not known.
func (*Attribute) Key() (key string, ok bool) { return "", false }

// Str is not known.
func (*Attribute) Str() (value string, ok bool) { return "", false }

// Spot is where a value is.
type Spot struct{}

// Spot is not known.
func (*Attribute) Spot() Spot { return Spot{} }

// Str is not known.
func (Spot) Str() string { return "" }

// Number is not known.
func (Spot) Number() uint64 { return 0 }

// Same reports whether two strings are equal.
func Same(a, b string) bool { return a == b }

// Alike is not known.
func Alike(_, _ []Attribute) bool { return false }

// Scalar is not known.
func (*Attribute) Scalar() (bits uint64, kind Scalar) { return 0, NoScalar }

// Value is not known.
func (*Number) Value() (bits uint64, kind Scalar, ok bool) { return 0, NoScalar, false }

// Double is not known.
func (*Number) Double() (bits uint64, ok bool) { return 0, false }

// Refill does nothing.
func (*Number) Refill(float64, uint64, uint64) {}

// Float is not known.
func (*Number) Float() (bits, at, start uint64, ok bool) { return 0, 0, 0, false }

// IsPlain is not known.
func (*Number) IsPlain() bool { return false }

// IsEmpty is not known.
func (*Number) IsEmpty() bool { return false }

// Times are not known.
func (*Number) Times() (at, start uint64) { return 0, 0 }

// Flags are not known.
func (*Number) Flags() uint32 { return 0 }

// Exemplars are not known.
func (*Number) Exemplars() int { return 0 }

// Attributes are not known.
func (*Number) Attributes() []Attribute { return nil }
