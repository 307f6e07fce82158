// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"sync/atomic"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// limits are what requests must not exceed because more was refused: for all of them, or for one tenant's.
type limits struct {
	sizes  ceiling
	timely atomic.Int64 // points that may be sent together to be in time; 0 if there is no limit
	passed taken
	pages  taken // notes what web pages refuse
}

func (l *limits) points() int { return int(l.timely.Load()) }

// learnTime learns how many points can be accepted in time. A slow destination may become fast again.
func (l *limits) learnTime(points int, late bool) {
	switch was := l.points(); {
	case late && (was == 0 || points/2 < was):
		l.timely.Store(int64(max(points/2, 1)))
	case !late && was > 0 && points > was/2:
		l.timely.CompareAndSwap(int64(was), int64(was+was/8+1))
	}
}

// limitOn returns the limits of requests with a block's tenant, in addition to those for all: one tenant's refusals
// must not slow down others.
func (d *Destination) limitOn(b block.Block) *limits {
	if !d.tenanted(b) {
		return &d.all
	}
	return d.served.limitsOf(b.Tenant)
}

// largest is the size that a request with a block's tenant should not exceed; 0 if there is no limit.
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

// fits records that a request was not too large.
func (d *Destination) fits(b, sent block.Block) {
	d.all.fits(b, sent)
	if d.tenanted(b) {
		d.limitOn(b).fits(b, sent)
	}
}

func (l *limits) fits(b, sent block.Block) {
	l.passed.delivered(b.RawSize)
	l.pages.delivered(b.RawSize)
	l.sizes.delivered(b.RawSize, len(sent.Body()))
}

// forget records that requests with a block's tenant were not refused for their size.
func (d *Destination) forget(b block.Block) {
	d.all.sizes.forget()
	if d.tenanted(b) {
		d.limitOn(b).sizes.forget()
	}
}

// tooLarge records that a request was too large. If others of that size are accepted, the limit is the tenant's.
func (d *Destination) tooLarge(b, sent block.Block) {
	if d.tenanted(b) {
		d.limitOn(b).sizes.refused(b.RawSize, len(sent.Body()))
		if d.all.passed.covers(b.RawSize) {
			return
		}
	}
	d.all.sizes.refused(b.RawSize, len(sent.Body()))
}
