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

// IdleEpochs is how many epochs an idle timeout has.
const IdleEpochs = 16

// Silence is the number of epochs since something was seen. The next epoch may have begun for it: then it is 0.
func Silence(epoch, seen uint32) uint32 { return uint32(max(0, int32(epoch-seen))) }
