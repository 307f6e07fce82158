// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"sync/atomic"

	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
)

// backlogShare is the share of the memory that metrics waiting in a pipeline may take.
var backlogShare = memlimit.Share{Part: 4, Least: 8 << 20, Most: 4 << 30}

// What a scrape that waits in the pipeline takes, in bytes: its goroutine, a point with the usual number of attributes,
// another attribute, and the value of a point that is yet to be made.
const (
	scrapeWeight    = 16 << 10
	pointWeight     = 512
	usualWidth      = 8
	attributeWeight = 64
	pendingWeight   = 16
)

// A backlog is the memory held by metrics that a slow pipeline has not taken yet. It counts bytes, since two hundred
// small pages are little and two large ones are much.
type backlog struct {
	most int64
	held atomic.Int64
}

// weigh returns how much memory a result holds.
func weigh(result page.Result, points int) int64 {
	point := int64(pointWeight + attributeWeight*max(0, result.Width()-usualWidth))
	return scrapeWeight + point*int64(points) + pendingWeight*int64(result.Pending())
}

// enter reports whether there is room. A first one always fits, however large.
func (b *backlog) enter(weight int64) bool {
	if held := b.held.Add(weight); held <= b.most || held == weight {
		return true
	}
	b.held.Add(-weight)
	return false
}

func (b *backlog) leave(weight int64) { b.held.Add(-weight) }

// isFull reports whether to skip a scrape because there would be no room for its metrics. The last quarter is reserved
// for targets that were skipped the last time.
func (b *backlog) isFull(leftOut bool) bool {
	most := b.most
	if !leftOut {
		most -= most / 4
	}
	return b.held.Load() >= most
}
