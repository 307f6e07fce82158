// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// place is the position of a value.
type place struct {
	of   *segment
	at   int64
	size uint32
}

// forget removes a value from the index. The caller holds mu.
func (s *Store) forget(key string) {
	p, ok := s.index[key]
	if !ok {
		return
	}
	delete(s.index, key)
	p.of.values--
	p.of.live -= int64(p.size)
	s.live -= int64(p.size)
	if s.isCounted(key) {
		s.counted--
	}
}

// keep records the position of a value. The caller holds mu.
func (s *Store) keep(key string, p place) {
	s.forget(key)
	s.index[key] = p
	p.of.values++
	p.of.live += int64(p.size)
	s.live += int64(p.size)
	if s.isCounted(key) {
		s.counted++
	}
}

func (s *Store) isCounted(key string) bool {
	return s.opts.Counted != "" && strings.HasPrefix(key, s.opts.Counted)
}

// countAfter is how many counted values there will be after ops. The caller holds mu.
func (s *Store) countAfter(ops []*storage.Operation) int {
	n := s.counted
	for i, op := range ops {
		if !s.isCounted(op.Key) {
			continue
		}
		_, is := s.index[op.Key]
		if will := op.Type == storage.Set; is == will || isNamed(ops[i+1:], op.Key) {
			continue
		}
		if is {
			n--
		} else {
			n++
		}
	}
	return n
}

func isNamed(ops []*storage.Operation, key string) bool {
	return slices.ContainsFunc(ops, func(op *storage.Operation) bool { return op.Key == key })
}
