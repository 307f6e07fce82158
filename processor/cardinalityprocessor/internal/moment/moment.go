// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package moment has the time of a limiter, in epochs.
package moment

import (
	"math"
)

// A Moment is a time in epochs, with a fraction of 32 bits.
//
// What is known about a series is updated by the first batch that has it in an epoch. If an epoch began for all series
// at once, that batch would take twice as long as others. So it begins earlier for each series, by a fraction given by
// its fingerprint, and every batch has its part of the work.
type Moment uint64

// In returns the moment when a part of an epoch is over.
func In(epoch uint32, part, parts int) Moment {
	return Moment(epoch)<<32 + Moment(part)<<32/Moment(parts)
}

// Epoch is the epoch that all series are in, or were.
func (m Moment) Epoch() uint32 { return uint32(m >> 32) }

// EpochOf is the epoch that a series is in: Epoch, or the next.
func (m Moment) EpochOf(fp uint64) uint32 { return uint32((uint64(m) + fp&math.MaxUint32) >> 32) }

// SeenSince returns the epoch in which a series is recorded as seen, if each series is to be reported once since the moment
// began: its own epoch, or the next one while it is still in the epoch of that moment. So the table distinguishes series that
// came since then from those that did not. It is 0 if nothing has begun.
//
// In the last epoch of a window, series that are reported in their next epoch anyway are not recorded ahead: they would be
// missing in the next window.
func (m Moment) SeenSince(began Moment, fp uint64) uint32 {
	epoch := m.EpochOf(fp)
	if began == 0 || epoch != began.EpochOf(fp) || (m.Epoch()+1)%IdleEpochs == 0 && Comes(fp, epoch+1) {
		return epoch
	}
	return epoch + 1
}

// Ahead is how many epochs ahead a series may be recorded as seen: one because its own epoch began early, and one by SeenSince.
const Ahead = 2

// Comes reports whether a series is reported in an epoch of its own in any case: once in an idle timeout.
func Comes(fp uint64, epoch uint32) bool { return (epoch+uint32(fp%IdleEpochs))%IdleEpochs == 0 }

// IdleEpochs is the number of epochs in an idle timeout.
const IdleEpochs = 16

// Silence is the number of epochs since something was seen. The next epoch may have begun for it: then it is 0.
func Silence(epoch, seen uint32) uint32 { return uint32(max(0, int32(epoch-seen))) }
