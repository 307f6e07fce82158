// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"sync/atomic"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// limits are what requests stay within because more was too much: of all of them, or of a tenant's.
type limits struct {
	sizes  ceiling
	timely atomic.Int64 // points that may travel together and be in time; 0 while any number was
	passed taken
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
	d.all.fits(b, sent)
	if d.tenanted(b) {
		d.limitOn(b).fits(b, sent)
	}
}

func (l *limits) fits(b, sent block.Block) {
	l.passed.delivered(b.RawSize)
	l.sizes.delivered(b.RawSize, len(sent.Body()))
}

// forget notes that it was not for their size that requests with data such as a block's were refused.
func (d *Destination) forget(b block.Block) {
	d.all.sizes.forget()
	if d.tenanted(b) {
		d.limitOn(b).sizes.forget()
	}
}

// tooLarge notes that a request was. If others' are taken that are as large, it is the tenant who may not send as much.
func (d *Destination) tooLarge(b, sent block.Block) {
	if d.tenanted(b) {
		d.limitOn(b).sizes.refused(b.RawSize, len(sent.Body()))
		if d.all.passed.covers(b.RawSize) {
			return
		}
	}
	d.all.sizes.refused(b.RawSize, len(sent.Body()))
}
