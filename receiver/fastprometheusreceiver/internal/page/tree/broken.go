// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// broken counts the histograms that were left out of metrics.
type broken struct {
	count int64
	first string // the metric of the first one
}

func (b *broken) add(metric string) {
	if b.count++; b.count == 1 {
		b.first = metric
	}
}

// report records how many histograms of a page, or of a part of it, were left out. A warning about a target is repeated
// once a whole page was free of them.
func (b *broken) report(o *Owner, isLast bool) {
	if b.count > 0 {
		o.Tree.BrokenHistograms.Add(b.count)
		if o.broken == noneBroken {
			o.Tree.Logger.Warn("Dropping histograms: their buckets fall, exceed the count or are not numbers",
				zap.String("job", o.Job), zap.String("instance", o.Host), zap.String("metric", b.first))
		}
		o.broken = brokenPage
	}
	if !isLast {
		return
	}
	switch o.broken {
	case brokenPage:
		o.broken = brokenBefore
	case brokenBefore:
		o.broken = noneBroken
		o.Tree.Logger.Info("No more histograms are dropped", zap.String("job", o.Job), zap.String("instance", o.Host))
	default:
	}
}

// A brokenState reports whether a target's last pages had broken histograms.
type brokenState uint8

const (
	noneBroken   brokenState = iota // none
	brokenPage                      // some, on this page
	brokenBefore                    // some, on the last page
)

// isConsistent reports whether the buckets of a histogram are consistent: counts do not decrease, and none exceeds the total.
func (c *cursor) isConsistent(p plan.PlacedPoint, isCustom bool) bool {
	if isCustom {
		n, ok := c.Natives[p.At]
		if !ok || n.Stale() {
			return true
		}
		count, sum := n.Totals()
		return count != 0 || sum == 0 // a sum without a count means that there was no count
	}
	g := c.group(p.At)
	if c.isStaleGroup(g) {
		return true
	}
	last := 0.0
	for _, part := range g.Parts {
		b := c.Values[part]
		if !(b >= last) { // also false for NaN
			return false
		}
		last = b
	}
	return c.Values[g.Count] >= last
}
