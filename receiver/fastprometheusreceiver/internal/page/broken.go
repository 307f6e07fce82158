// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"go.uber.org/zap"
)

// broken histograms were left out of metrics.
type broken struct {
	count int64
	first string // the name of the first one's metric
}

func (b *broken) add(metric string) {
	if b.count++; b.count == 1 {
		b.first = metric
	}
}

// report notes how many histograms of a page, or of a part of it, were left out. What a target has said before is said again when
// a whole page was without.
func (b *broken) report(t *Target, isLast bool) {
	cfg := &t.cohort.job.cfg
	if b.count > 0 {
		cfg.BrokenHistograms.Add(b.count)
		if t.broken == soundPages {
			cfg.Logger.Warn("Histograms are left out: their buckets fall, exceed the count or are no numbers",
				zap.String("job", t.job), zap.String("instance", t.host), zap.String("metric", b.first))
		}
		t.broken = brokenPage
	}
	if !isLast {
		return
	}
	switch t.broken {
	case brokenPage:
		t.broken = brokenBefore
	case brokenBefore:
		t.broken = soundPages
		cfg.Logger.Info("Histograms are no longer left out", zap.String("job", t.job), zap.String("instance", t.host))
	default:
	}
}

// A brokenState is what a target's pages have had of broken histograms.
type brokenState uint8

const (
	soundPages   brokenState = iota // none
	brokenPage                      // some, on this page
	brokenBefore                    // some, on the last page
)

// sound tells whether the buckets of a histogram can be told apart: numbers that do not fall, none above the count.
func (c *cursor) sound(p placedPoint, isCustom bool) bool {
	if isCustom {
		n, ok := c.natives[p.at]
		if !ok || n.stale() {
			return true
		}
		count, sum := n.totals()
		return count != 0 || sum == 0 // a sum without a count says that there was none
	}
	g := c.group(p.at)
	if g.isStale(c.view) {
		return true
	}
	last := 0.0
	for i := range g.parts {
		b := c.values[g.parts[i].at]
		if !(b >= last) { // nor is NaN
			return false
		}
		last = b
	}
	return c.values[g.count] >= last
}
