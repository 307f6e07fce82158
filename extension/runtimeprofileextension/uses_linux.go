// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import "time"

const (
	// soon is how long after a release another one tells which pages are in use: what was used once in a minute is not.
	soon = 15 * time.Second
	// inUse is at how many releases in a row a page has to be there again to be in use, the first of them soon after the one before.
	inUse = 2
	// leaves is at how many releases it is left then, before it is looked whether it comes back once more.
	leaves = 8
)

// uses tells which pages are in use. To release these is to have them back at once, at the cost of a fault each, some thousands in all.
type uses struct {
	released time.Time // when it was last begun
	soon     bool
	at       int
	// For each page, at how many releases in a row it was there again; and once it is in use, inUse and at how many more it is left.
	pages []uint8
}

// begin begins a release.
func (u *uses) begin() {
	now := time.Now()
	u.soon = !u.released.IsZero() && now.Sub(u.released) < soon
	u.released, u.at = now, 0
}

// next reports whether the next page, which is there or not, is to be left.
func (u *uses) next(there bool) bool {
	if u.at == len(u.pages) {
		u.pages = append(u.pages, 0)
	}
	n := &u.pages[u.at]
	u.at++
	switch {
	case !there:
		*n = 0
	case *n > inUse:
		if *n--; *n > inUse {
			return true
		}
		*n = inUse - 1 // once more, and it is left again
	case *n > 0 || u.soon:
		if *n++; *n == inUse {
			*n += leaves
			return true
		}
	}
	return false
}
