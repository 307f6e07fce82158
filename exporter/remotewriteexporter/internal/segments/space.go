// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"errors"
	"os"
)

const (
	// usual is the size of a file, unless one record is larger.
	usual = 8 << 20
	// few is how many bytes of values are always worth copying to delete their file.
	few = 64 << 10
)

// reap deletes the oldest files that have no needed values. The caller holds mu.
func (s *Store) reap() {
	for len(s.segments) > 1 && s.segments[0].values == 0 {
		if err := os.Remove(s.name(s.segments[0].number)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return // it is tried again next time
		}
		s.size -= s.segments[0].size
		s.segments = s.segments[1:]
	}
}

// freeUnrecorded frees the space of files that reap would delete, when there is none to record which values go with them. They
// are emptied and renamed, and stay until a record has the number of values without theirs. The caller holds mu.
func (s *Store) freeUnrecorded() {
	for len(s.segments) > 1 && s.segments[0].values == 0 {
		name := s.name(s.segments[0].number)
		if os.Rename(name, name+unrecordedSuffix) != nil {
			return
		}
		_ = os.Truncate(name+unrecordedSuffix, 0)
		s.unrecorded = append(s.unrecorded, name+unrecordedSuffix)
		s.size -= s.segments[0].size
		s.segments = s.segments[1:]
	}
}

// removeUnrecorded deletes those names. The caller holds mu.
func (s *Store) removeUnrecorded() {
	for _, name := range s.unrecorded {
		_ = os.Remove(name)
	}
	s.unrecorded = nil
}

// compact copies the needed values of the oldest file to the end of the log, if they are few, or if the log is more
// than twice as large as all needed values. The caller holds mu.
func (s *Store) compact() {
	if len(s.segments) == 1 && s.active().size > usual/8 && s.live < few {
		if s.roll() != nil {
			return
		}
	}
	oldest := s.segments[0]
	if len(s.segments) == 1 || s.live >= few && (2*oldest.live > oldest.size || s.size < 2*s.live+4*usual) {
		return
	}
	ops, err := s.copies(oldest)
	if err != nil {
		return
	}
	if s.write(ops) == nil {
		s.reap()
	}
}
