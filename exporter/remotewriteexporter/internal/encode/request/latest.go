// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/frame"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// runTableBits is the size of the table of runs: 64 KiB. A request of a thousand nodes with fifty labels of a kind has
// some hundreds of different ones.
const runTableBits = 11

// runTraits is what later runs need to find a run whose messages differ in the same way.
type runTraits struct {
	length, value int    // length of a message, and offset of its number
	place         uint32 // of the first resource
	point         uint64 // identifies the first point among others; 0 if all are of the same series
	bits          uint64 // of the first number
}

// keys are the keys under which later runs look for this one, best first; 0 is none. Best is a run of the same points
// of the same targets, or of the same numbers: so much of its messages is equal. If messages of the same points have
// another length, because of a further label, the distance grows with each. Other runs of the same targets have the
// same timestamps and target labels.
func (a *runTraits) keys() [3]uint64 {
	targets := store.Mix(uint64(a.length), uint64(a.place))
	if a.point == 0 {
		return [...]uint64{store.Mix(targets, a.bits) | 1, 0, targets | 1}
	}
	return [...]uint64{store.Mix(store.Mix(targets, a.point), 1) | 1, store.Mix(store.Mix(a.point, uint64(a.place)), 2) | 1, targets | 1}
}

// latestRun is the last run of a key in the request of an epoch: the offset of the number in its first stretch, and
// the length of its stretches.
type latestRun struct {
	key    uint64
	epoch  uint32
	at     uint32
	length uint32
}

// addRun records a run, and sets which earlier one it is like.
func (h *hints) addRun(r frame.Run, a runTraits) {
	if h.latest == nil {
		h.latest = make([]latestRun, 1<<runTableBits)
	}
	at := r.At + a.value
	for _, key := range a.keys() {
		if key == 0 {
			continue
		}
		p := &h.latest[key>>(64-runTableBits)]
		if r.Like == 0 && p.key == key && p.epoch == h.epoch && at-int(p.at) < h.reach {
			r.Like, r.Drift = at-int(p.at), a.length-int(p.length)
		}
		*p = latestRun{key: key, epoch: h.epoch, at: uint32(at), length: uint32(a.length)}
	}
	h.Known.Runs = append(h.Known.Runs, r)
}
