// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"crypto/rand"
	"os"
	"path/filepath"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// The reserve is a file that occupies space for use when the disk is full: files are deleted as a whole, and before
// that the last needed values must be written elsewhere.
const (
	reserveName = "reserve"
	reserveSize = 32 << 10
)

// fillReserve writes the reserve, if there is enough space. The caller holds mu.
func (s *Store) fillReserve() {
	name := filepath.Join(s.dir, reserveName)
	if info, err := os.Stat(name); err == nil && info.Size() == reserveSize {
		return
	}
	content := make([]byte, reserveSize) // not compressible
	_, _ = rand.Read(content)
	if os.WriteFile(name, content, 0o600) != nil {
		_ = os.Remove(name) // half of it would not help
	}
}

// rescue copies all needed values to a new file, in the space of the reserve, and deletes all other files: if the
// values are few enough, and this frees more. It is called when nothing can be written, and reports whether writing is
// possible again. The caller holds mu.
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
	s.unlogged = nil // deleted with the files
	if s.write(ops) != nil {
		s.unlogged = unlogged
		return false
	}
	before := s.size
	s.reap()
	return s.size < before
}

// copies returns writes of the needed values of a file, or of all files. The caller holds mu.
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
