// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package histogram

import (
	"math"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// spans builds the sparse form of buckets, which must be added in order.
type spans struct {
	spans   []promwrite.Span
	deltas  []int64
	next    int64 // the index after the last bucket
	last    int64 // its count
	invalid bool  // an index or a count does not fit
}

// maxGap is up to how many empty buckets are cheaper to list than to skip with a new span.
const maxGap = 2

func (s *spans) add(index int64, count uint64) {
	if count == 0 {
		return
	}
	if count > math.MaxInt64 || index < math.MinInt32 || index > math.MaxInt32 {
		s.invalid = true
		return
	}
	if len(s.spans) == 0 {
		s.spans = append(s.spans, promwrite.Span{Offset: int32(index)})
	} else if gap := index - s.next; gap > maxGap {
		if gap > math.MaxInt32 {
			s.invalid = true
			return
		}
		s.spans = append(s.spans, promwrite.Span{Offset: int32(gap)})
	} else {
		for range gap {
			s.push(0)
		}
	}
	s.push(int64(count))
	s.next = index + 1
}

func (s *spans) push(count int64) {
	s.spans[len(s.spans)-1].Length++
	s.deltas = append(s.deltas, count-s.last)
	s.last = count
}
