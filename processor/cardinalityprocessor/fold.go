// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// folded is what the last values of an aggregate's feeders come to: those of gauges, and of sums that go up and down.
type folded struct {
	sum, min, max, last numeric
	at                  pcommon.Timestamp // of last
	n                   int64
}

func (f *folded) add(v numeric, at pcommon.Timestamp) {
	if f.n++; f.n == 1 {
		*f = folded{sum: v, min: v, max: v, last: v, at: at, n: 1}
		return
	}
	f.sum.addNumber(&v) // a sum that would be infinite stays what it was
	if v.below(&f.min) {
		f.min = v
	}
	if f.max.below(&v) {
		f.max = v
	}
	if at > f.at || at == f.at && f.last.below(&v) { // of two of the same time always the same one
		f.last, f.at = v, at
	}
}

// result is what an operation makes of it.
func (f *folded) result(of operation) numeric {
	switch of {
	case operationMin:
		return f.min
	case operationMax:
		return f.max
	case operationLast:
		return f.last
	case operationAvg:
		return numeric{float: f.sum.number() / float64(f.n), isFloat: true}
	default:
		return f.sum
	}
}
