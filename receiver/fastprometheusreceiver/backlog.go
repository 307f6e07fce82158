// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"sync/atomic"

	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
)

// backlogShare is how much of the memory there is metrics may take that wait in a pipeline.
var backlogShare = memlimit.Share{Part: 4, Least: 16 << 20, Most: 4 << 30}

// What a scrape takes that waits in the pipeline, in bytes: its goroutine, a point with what attributes points have on
// average, and the value of one that is yet to be made.
const (
	scrapeWeight  = 16 << 10
	pointWeight   = 512
	pendingWeight = 16
)

// A backlog is the metrics that a pipeline is slow to take, by the memory they hold: two hundred small pages are nothing,
// two large ones are much.
type backlog struct {
	most int64
	held atomic.Int64
}

// weigh returns how much memory a result holds.
func weigh(result page.Result, points int) int64 {
	return scrapeWeight + pointWeight*int64(points) + pendingWeight*int64(result.Pending())
}

// enter reports whether there is room. There always is for one, however large.
func (b *backlog) enter(weight int64) bool {
	if held := b.held.Add(weight); held <= b.most || held == weight {
		return true
	}
	b.held.Add(-weight)
	return false
}

func (b *backlog) leave(weight int64) { b.held.Add(-weight) }

// isFull tells whether to leave a scrape out, since there would be no room for its metrics. Those that were left out the
// last time come first: the last quarter is theirs.
func (b *backlog) isFull(leftOut bool) bool {
	most := b.most
	if !leftOut {
		most -= most / 4
	}
	return b.held.Load() >= most
}
