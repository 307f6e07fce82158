// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// Width is the number of buckets, including those between spans.
func Width(spans []histogram.Span) (n int) {
	for i, s := range spans {
		if n += int(s.Length); i > 0 {
			n += int(max(s.Offset, 0))
		}
	}
	return n
}

// Totals returns the count and the sum.
func (v NativeValue) Totals() (count, sum float64) {
	if v.Integers != nil {
		return float64(v.Integers.Count), v.Integers.Sum
	}
	return v.Floats.Count, v.Floats.Sum
}

// Stale reports whether it is a stale marker.
func (v NativeValue) Stale() bool {
	_, sum := v.Totals()
	return IsStale(sum)
}

// Coarsest returns the largest schema whose buckets grow by at least factor.
func Coarsest(factor float64) int32 {
	if factor <= 1 {
		return histogram.ExponentialSchemaMax
	}
	schema := math.Floor(-math.Log2(math.Log2(factor)))
	return int32(min(max(schema, float64(histogram.ExponentialSchemaMin)), float64(histogram.ExponentialSchemaMax)))
}

// Limit merges buckets until there are at most as many as native_histogram_bucket_limit says and none is narrower than
// native_histogram_min_bucket_factor allows.
func (v NativeValue) Limit(most int, schema int32) error {
	if schema < histogram.ExponentialSchemaMax {
		if v.Integers != nil && histogram.IsExponentialSchemaReserved(v.Integers.Schema) && v.Integers.Schema > schema {
			if err := v.Integers.ReduceResolution(schema); err != nil {
				return err
			}
		}
		if v.Floats != nil && histogram.IsExponentialSchemaReserved(v.Floats.Schema) && v.Floats.Schema > schema {
			if err := v.Floats.ReduceResolution(schema); err != nil {
				return err
			}
		}
	}
	for most > 0 && v.buckets() > most {
		var err error
		switch s := v.schema(); {
		case !histogram.IsExponentialSchema(s), s <= histogram.ExponentialSchemaMin:
			return catalog.ErrBucketLimit
		case v.Integers != nil:
			err = v.Integers.ReduceResolution(s - 1)
		default:
			err = v.Floats.ReduceResolution(s - 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Counts reports whether its numbers, fractions aside, are counts: none is negative or NaN.
func (v NativeValue) Counts() bool {
	if h := v.Integers; h != nil {
		return areDeltas(h.PositiveBuckets) && areDeltas(h.NegativeBuckets)
	}
	h := v.Floats
	return isCount(h.Count) && isCount(h.ZeroCount) && areCounts(h.PositiveBuckets) && areCounts(h.NegativeBuckets)
}

// areDeltas does the same for buckets given as differences.
func areDeltas(deltas []int64) bool {
	bucket := int64(0)
	for _, d := range deltas {
		if bucket += d; bucket < 0 {
			return false
		}
	}
	return true
}

func isCount(f float64) bool { return f >= 0 && f < 1<<64 }

func areCounts(all []float64) bool {
	for _, f := range all {
		if !isCount(f) {
			return false
		}
	}
	return true
}

func (v NativeValue) schema() int32 {
	if v.Integers != nil {
		return v.Integers.Schema
	}
	return v.Floats.Schema
}

func (v NativeValue) buckets() int {
	if v.Integers != nil {
		return len(v.Integers.PositiveBuckets) + len(v.Integers.NegativeBuckets)
	}
	return len(v.Floats.PositiveBuckets) + len(v.Floats.NegativeBuckets)
}

// Bytes returns how many bytes a native histogram takes, here and in metrics, where buckets between spans have counts,
// too.
func (v NativeValue) Bytes() int64 {
	n := int64(nativeBytes)
	for _, spans := range v.spans() {
		n += spanBytes*int64(len(spans)) + countBytes*int64(Width(spans))
	}
	return n + bucketBytes*int64(v.buckets())
}

func (v NativeValue) spans() [2][]histogram.Span {
	if v.Integers != nil {
		return [2][]histogram.Span{v.Integers.PositiveSpans, v.Integers.NegativeSpans}
	}
	return [2][]histogram.Span{v.Floats.PositiveSpans, v.Floats.NegativeSpans}
}

// What native histograms take, in bytes.
const (
	// nativeBytes is what a native histogram takes, spanBytes and bucketBytes what its parts take. In metrics, each
	// bucket takes countBytes, including those between spans.
	nativeBytes = 512
	spanBytes   = 16
	bucketBytes = 8
	countBytes  = 8
)

// A NativeValue is a native histogram, of integers or of floats.
type NativeValue struct {
	Integers *histogram.Histogram
	Floats   *histogram.FloatHistogram
}

// Representation returns which kind of native histogram it is.
func (v NativeValue) Representation() catalog.Native {
	if v.Integers != nil && v.Integers.Schema == histogram.CustomBucketsSchema || v.Floats != nil && v.Floats.Schema == histogram.CustomBucketsSchema {
		return catalog.Custom
	}
	return catalog.Exponential
}
