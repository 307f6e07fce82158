// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

// exponential is the part of a value that only exponential histograms have.
type exponential struct {
	zero               uint64
	scale              int32
	zeroThreshold      float64
	positive, negative buckets
}

// buckets returns the buckets of an exponential histogram for reading. They are empty for other shapes.
func (v *Value) buckets() *exponential {
	if v.exponential == nil {
		return &exponential{}
	}
	return v.exponential
}

// add adds o, which it changes.
func (e *exponential) add(o *exponential) {
	e.align(o)
	for e.positive.width(&o.positive) > MaxBuckets || e.negative.width(&o.negative) > MaxBuckets {
		e.downscale(1)
		o.downscale(1)
	}
	e.level(o)
	e.zero += o.zero
	e.positive.add(&o.positive)
	e.negative.add(&o.negative)
}

// sub subtracts o, and reports whether e has all of its counts.
func (e *exponential) sub(o exponential) bool {
	e.align(&o)
	e.level(&o)
	grown := e.zero >= o.zero
	e.zero -= o.zero
	grown = e.positive.sub(&o.positive) && grown
	return e.negative.sub(&o.negative) && grown
}

// align brings both to the lower one of their scales.
func (e *exponential) align(o *exponential) {
	if e.empty() {
		e.scale = o.scale
	}
	if o.empty() {
		o.scale = e.scale
	}
	e.downscale(int64(e.scale) - int64(o.scale))
	o.downscale(int64(o.scale) - int64(e.scale))
}

func (e *exponential) empty() bool { return len(e.positive.Counts) == 0 && len(e.negative.Counts) == 0 }

// fit removes empty buckets at the ends and lowers the scale until no more than MaxBuckets are left.
func (e *exponential) fit(arena *Arena) {
	e.positive.trim(arena)
	e.negative.trim(arena)
	for len(e.positive.Counts) > MaxBuckets || len(e.negative.Counts) > MaxBuckets {
		e.downscale(1)
	}
	e.widen(e.zeroThreshold)
}

func (e *exponential) downscale(by int64) {
	if by <= 0 {
		return
	}
	e.scale -= int32(by)
	e.positive.downscale(by)
	e.negative.downscale(by)
}
