// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"slices"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
)

// decoders are those not in use. A decoder keeps the memory of the largest page it has read, so only as many are kept
// as pages are read at a time; many more scrapes may wait for their turn. Those with the most memory are kept: the next
// large pages would have to allocate it again. They are guarded by the lock of the slots.
type decoders struct {
	keep int
	idle []*fetch.Decoder // used last in, first out: the last one's memory is in the CPU's caches
}

func (d *decoders) take() *fetch.Decoder {
	n := len(d.idle)
	if n == 0 {
		return new(fetch.Decoder)
	}
	out := d.idle[n-1]
	d.idle[n-1] = nil
	d.idle = d.idle[:n-1]
	return out
}

func (d *decoders) give(back *fetch.Decoder) {
	if back == nil {
		return
	}
	if len(d.idle) == d.keep {
		least := 0
		for i, other := range d.idle {
			if other.Held() < d.idle[least].Held() {
				least = i
			}
		}
		if d.idle[least].Held() >= back.Held() {
			return
		}
		d.idle = slices.Delete(d.idle, least, least+1)
	}
	d.idle = append(d.idle, back)
}
