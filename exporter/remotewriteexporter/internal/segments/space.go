// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"errors"
	"os"
)

const (
	// usual is how large a file becomes, unless one record is larger.
	usual = 8 << 20
	// few is how many bytes of values are copied whatever their file has.
	few = 64 << 10
)

// reap deletes the oldest files while nothing in them is of use. The caller holds mu.
func (s *Store) reap() {
	for len(s.segments) > 1 && s.segments[0].values == 0 {
		if err := os.Remove(s.name(s.segments[0].number)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return // the next time, perhaps
		}
		s.size -= s.segments[0].size
		s.segments = s.segments[1:]
	}
}

// letGo frees the room of files that reap would delete, where there is none to say what is gone with them. Their names are changed, and
// stay until a record says how many values there are without theirs. The caller holds mu.
func (s *Store) letGo() {
	for len(s.segments) > 1 && s.segments[0].values == 0 {
		name := s.name(s.segments[0].number)
		if os.Rename(name, name+untold) != nil {
			return
		}
		_ = os.Truncate(name+untold, 0)
		s.untold = append(s.untold, name+untold)
		s.size -= s.segments[0].size
		s.segments = s.segments[1:]
	}
}

// forgetUntold deletes their names. The caller holds mu.
func (s *Store) forgetUntold() {
	for _, name := range s.untold {
		_ = os.Remove(name)
	}
	s.untold = nil
}

// compact copies what is of use in the oldest file to the end of the log, if that is little, or if the log is more than twice as
// large as what is of use in it. The caller holds mu.
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
