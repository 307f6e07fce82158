// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/frame"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// alikeBits is the size of the table of runs: 64 KiB. A request of a thousand nodes with fifty labels of a kind has
// some hundreds of different ones.
const alikeBits = 11

// alike is what later runs need to find a run whose messages differ in the same way.
type alike struct {
	length, value int    // length of a message, and offset of its number
	place         uint32 // of the first resource
	who           uint64 // identifies the first point among others; 0 if all are of the same series
	bits          uint64 // of the first number
}

// keys are the keys under which later runs look for this one, best first; 0 is none. Best is a run of the same points
// of the same targets, or of the same numbers: so much of its messages is equal. If messages of the same points have
// another length, because of a further label, the distance grows with each. Other runs of the same targets have the
// same timestamps and target labels.
func (a *alike) keys() [3]uint64 {
	targets := store.Mix(uint64(a.length), uint64(a.place))
	if a.who == 0 {
		return [...]uint64{store.Mix(targets, a.bits) | 1, 0, targets | 1}
	}
	return [...]uint64{store.Mix(store.Mix(targets, a.who), 1) | 1, store.Mix(store.Mix(a.who, uint64(a.place)), 2) | 1, targets | 1}
}

// alikePlace is the last run of a key in the request of an epoch: the offset of the number in its first stretch, and
// the length of its stretches.
type alikePlace struct {
	key    uint64
	epoch  uint32
	at     uint32
	length uint32
}

// note records a run, and sets which earlier one it is like.
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
