// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// limits are what requests stay within because more was too much: of all of them, or of a tenant's.
type limits struct {
	sizes  ceiling
	timely atomic.Int64 // points that may travel together and be in time; 0 while any number was
}

func (l *limits) points() int { return int(l.timely.Load()) }

// learnTime remembers how many points were too many to be taken in time, or were not. Who was slow may become fast again.
func (l *limits) learnTime(points int, late bool) {
	switch was := l.points(); {
	case late && (was == 0 || points/2 < was):
		l.timely.Store(int64(max(points/2, 1)))
	case !late && was > 0 && points > was/2:
		l.timely.CompareAndSwap(int64(was), int64(was+was/8+1))
	}
}

// largest is the largest request that a destination took lately, before compression.
type largest struct {
	mu  sync.Mutex
	raw int
	at  time.Time
}

// largestHolds is how long a request tells what the destination takes.
const largestHolds = 10 * time.Minute

func (l *largest) delivered(raw int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); raw >= l.raw || now.Sub(l.at) > largestHolds {
		l.raw, l.at = raw, now
	}
}

// covers tells whether so much was taken lately.
func (l *largest) covers(raw int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return raw <= l.raw && time.Since(l.at) <= largestHolds
}

// limitOn is what requests with data such as a block's stay within, besides what is for all where tenants are told apart: what one is
// answered slows down no other.
func (d *Destination) limitOn(b block.Block) *limits {
	if !d.tenanted(b) {
		return &d.all
	}
	return d.served.limitsOf(b.Tenant)
}

// largest is the size that a request with data such as a block's should stay within; 0 where there is none.
func (d *Destination) largest(b block.Block) (raw, wire int) {
	raw, wire = d.all.sizes.limits()
	if !d.tenanted(b) {
		return raw, wire
	}
	if ownRaw, ownWire := d.limitOn(b).sizes.limits(); raw == 0 || ownRaw > 0 && ownRaw < raw {
		return ownRaw, ownWire
	}
	return raw, wire
}

// fits notes that a request was not too large.
func (d *Destination) fits(b, sent block.Block) {
	d.all.sizes.delivered(b.RawSize, len(sent.Body()))
	if d.tenanted(b) {
		d.passed.delivered(b.RawSize)
		d.limitOn(b).sizes.delivered(b.RawSize, len(sent.Body()))
	}
}

// tooLarge notes that a request was. If others' are taken that are as large, it is the tenant who may not send as much.
func (d *Destination) tooLarge(b, sent block.Block) {
	if d.tenanted(b) {
		d.limitOn(b).sizes.refused(b.RawSize, len(sent.Body()))
		if d.passed.covers(b.RawSize) {
			return
		}
	}
	d.all.sizes.refused(b.RawSize, len(sent.Body()))
}
