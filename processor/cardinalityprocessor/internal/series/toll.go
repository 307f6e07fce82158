// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// toll is a rate of points that applies to a series in a group.
type toll struct {
	limit *policy.Limit
	pace  policy.Pace
	group *Group
}

// Pay takes a point from all rates that apply to its series, or from none.
func (s *Set) Pay(now int64) Verdict {
	for i, t := range s.Tolls {
		if !t.pace.TakeShared(&t.group.points, now) {
			for _, paid := range s.Tolls[:i] {
				paid.pace.GiveBack(&paid.group.points)
			}
			return Verdict{Limit: t.limit, Reason: policy.ReasonPointsRate}
		}
	}
	return Verdict{}
}

// Paid is what points of a batch have taken, to be refunded if the batch is not accepted.
type Paid struct {
	Set    *Set
	Points int64
}

// Refund gives back what points have taken that did not pass after all.
func (p Paid) Refund() {
	for _, t := range p.Set.Tolls {
		t.group.points.Add(-p.Points * int64(t.pace.Each))
	}
}
