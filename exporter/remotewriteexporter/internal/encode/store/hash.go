// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package store

// Mix folds the hash of a part into that of a whole.
func Mix(h, part uint64) uint64 {
	h = (h ^ part) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// Fold takes the better half of a hash.
func Fold(h uint64) uint32 { return uint32(h >> 32) }
