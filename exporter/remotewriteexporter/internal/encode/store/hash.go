// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package store

// Mix combines the hash of a whole with that of a part.
func Mix(h, part uint64) uint64 {
	h = (h ^ part) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// Fold returns the better half of a hash.
func Fold(h uint64) uint32 { return uint32(h >> 32) }
