// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/frame"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// alikeBits is for how many runs there are places: 64 KiB of them. A request of a thousand nodes with fifty labels of a kind has some
// hundreds that differ.
const alikeBits = 11

// alike is what is to be known of a run to find those after it whose messages differ in the same way.
type alike struct {
	length, value int    // of a message, and where its number is
	place         uint32 // of the first resource
	who           uint64 // of the first point, what tells it from the next; 0 if it is of the same series
	bits          uint64 // of the first number
}

// keys are by what later runs look for one, best first; 0 is none. Best is a run of the same points of the same targets, or of the same
// numbers of them: so much of its messages is the same. If messages of the same points have another length, as where a label is there
// besides, they are further away with each. Of others of the same targets, times and labels of these are the same.
func (a *alike) keys() [3]uint64 {
	targets := store.Mix(uint64(a.length), uint64(a.place))
	if a.who == 0 {
		return [...]uint64{store.Mix(targets, a.bits) | 1, 0, targets | 1}
	}
	return [...]uint64{store.Mix(store.Mix(targets, a.who), 1) | 1, store.Mix(store.Mix(a.who, uint64(a.place)), 2) | 1, targets | 1}
}

// alikePlace is the last run of a key in the request of an epoch: where the number is in its first stretch, and how long these are.
type alikePlace struct {
	key    uint64
	epoch  uint32
	at     uint32
	length uint32
}

// note adds a run, and says which of those before is alike.
func (h *hints) note(r frame.Run, a alike) {
	if h.alikes == nil {
		h.alikes = make([]alikePlace, 1<<alikeBits)
	}
	at := r.At + a.value
	for _, key := range a.keys() {
		if key == 0 {
			continue
		}
		p := &h.alikes[key>>(64-alikeBits)]
		if r.Like == 0 && p.key == key && p.epoch == h.epoch && at-int(p.at) < h.reach {
			r.Like, r.Drift = at-int(p.at), a.length-int(p.length)
		}
		*p = alikePlace{key: key, epoch: h.epoch, at: uint32(at), length: uint32(a.length)}
	}
	h.Known.Runs = append(h.Known.Runs, r)
}
