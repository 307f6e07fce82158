// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

// A ledger is a storage that knows how many blocks it should have.
type ledger interface {
	// IsDamaged tells whether some of it could not be read.
	IsDamaged() bool
	// Promised is how many there were, or fewer, when it was last written to. It is false if nobody can tell.
	Promised() (blocks int, ok bool)
}

// recovered is what was found.
type recovered struct {
	sound   int
	corrupt []*entry
}

// countLost counts blocks that are damaged for each destination that waits for them, and tells how many more are lost. If more are
// damaged than are missing some were done with, and damage took what said so: which, nobody knows.
func (q *Queue) countLost(r *recovered, l ledger) (more int) {
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
