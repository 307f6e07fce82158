// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"crypto/rand"
	"os"
	"path/filepath"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// The reserve is a file that takes room, so that there is some on a disk that is full: a file goes as a whole, and the last values that
// are of use in it have to be written elsewhere first.
const (
	reserveName = "reserve"
	reserveSize = 32 << 10
)

// fillReserve takes the room, if there is that much. The caller holds mu.
func (s *Store) fillReserve() {
	name := filepath.Join(s.dir, reserveName)
	if info, err := os.Stat(name); err == nil && info.Size() == reserveSize {
		return
	}
	content := make([]byte, reserveSize) // that cannot be compressed
	_, _ = rand.Read(content)
	if os.WriteFile(name, content, 0o600) != nil {
		_ = os.Remove(name) // half of it would be of no use
	}
}

// rescue copies what is of use to a new file, in the room of the reserve, and lets all others go: if it is so little, and what they
// have is more. It is called when nothing can be written, and tells whether something can be now. The caller holds mu.
func (s *Store) rescue() bool {
	if s.live > reserveSize/2 {
		return false
	}
	size := int64(0)
	for key, p := range s.index {
		size += int64(len(key)) + int64(p.size)
	}
	if size > reserveSize/2 || s.size < 2*(size+reserveSize) {
		return false
	}
	ops, err := s.copies(nil)
	if err != nil {
		return false
	}
	_ = os.Remove(filepath.Join(s.dir, reserveName))
	defer s.fillReserve()
	if s.active().size > 0 && s.roll() != nil {
		return false
	}
	unlogged := s.unlogged
	s.unlogged = nil // it goes with the files
	if s.write(ops) != nil {
		s.unlogged = unlogged
		return false
	}
	before := s.size
	s.reap()
	return s.size < before
}

// copies writes anew what is of use in a file, or in all. The caller holds mu.
func (s *Store) copies(of *segment) ([]*storage.Operation, error) {
	var ops []*storage.Operation
	for key, p := range s.index {
		if of != nil && p.of != of {
			continue
		}
		value, err := s.read(p)
		if err != nil {
			return nil, err
		}
		ops = append(ops, storage.SetOperation(key, value))
	}
	return ops, nil
}
