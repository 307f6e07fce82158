// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// folded combines the last values of an aggregate's feeders: of gauges, and of sums that are not monotonic.
type folded struct {
	sum, min, max, last amount.Numeric
	at                  pcommon.Timestamp // time of last
	n                   int64
}

func (f *folded) add(v amount.Numeric, at pcommon.Timestamp) {
	if f.n++; f.n == 1 {
		*f = folded{sum: v, min: v, max: v, last: v, at: at, n: 1}
		return
	}
	f.sum.AddNumber(&v) // a sum that would become infinite stays as it was
	if v.Below(&f.min) {
		f.min = v
	}
	if f.max.Below(&v) {
		f.max = v
	}
	if at > f.at || at == f.at && f.last.Below(&v) { // of two with the same time, always choose the same one
		f.last, f.at = v, at
	}
}

// result returns the outcome for an operation.
func (f *folded) result(of policy.Operation) amount.Numeric {
	switch of {
	case policy.OperationMin:
		return f.min
	case policy.OperationMax:
		return f.max
	case policy.OperationLast:
		return f.last
	case policy.OperationAvg:
		return amount.Numeric{Float: f.sum.Number() / float64(f.n), IsFloat: true}
	default:
		return f.sum
	}
}
