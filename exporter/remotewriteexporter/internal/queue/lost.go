// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

// A blockCounter is a storage that knows how many blocks it should have.
type blockCounter interface {
	// IsDamaged reports whether some of it could not be read.
	IsDamaged() bool
	// Promised is the number of blocks there were, at least, when it was last written. It returns false if that is not
	// known.
	Promised() (blocks int, ok bool)
}

// recovered is the result of a recovery.
type recovered struct {
	sound   int
	corrupt []*entry
}

// countLost counts damaged blocks for each destination that waits for them, and returns how many more are lost. If more
// are damaged than are missing, some were already delivered, and the damage took the record of that: which ones is not
// known.
func (q *Queue) countLost(r *recovered, l blockCounter) (more int) {
	promised := r.sound + len(r.corrupt)
	if l != nil && l.IsDamaged() {
		if n, ok := l.Promised(); ok {
			promised = n
		}
	}
	missing := max(0, promised-r.sound)
	if len(r.corrupt) > missing {
		return missing
	}
	for _, e := range r.corrupt {
		for i := range q.destinations {
			if q.isFor(e, i) {
				q.cfg.Dropped(i, ReasonCorrupt, e.known().Header)
			}
		}
	}
	return missing - len(r.corrupt)
}
