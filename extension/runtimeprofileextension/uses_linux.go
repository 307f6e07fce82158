// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import "time"

const (
	// soon is the maximum time between two releases of which the second shows which pages are in use: a page that is
	// used once a minute is not.
	soon = 15 * time.Second
	// inUse is the number of consecutive releases at which a page must be back to be in use. The first of them must be
	// soon after the one before.
	inUse = 2
	// leaves is the number of releases at which a page in use is left then, before it is released once more to see
	// whether it comes back.
	leaves = 8
)

// uses records which pages are in use. Releasing these would only bring them back at once, at the cost of a fault each,
// some thousands in all.
type uses struct {
	released time.Time // when the last release began
	soon     bool
	at       int
	// For each page, the number of consecutive releases at which it was back. Once it is in use, inUse plus the number
	// of further releases at which it is left.
	pages []uint8
}

// begin starts a release.
func (u *uses) begin() {
	now := time.Now()
	u.soon = !u.released.IsZero() && now.Sub(u.released) < soon
	u.released, u.at = now, 0
}

// next reports whether to leave the next page, which is resident or not.
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
		*n = inUse - 1 // back once more, and it is left again
	case *n > 0 || u.soon:
		if *n++; *n == inUse {
			*n += leaves
			return true
		}
	}
	return false
}
