// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "math"

// Sizes of entries in bytes, without texts.
const (
	pointSize    = 24 + 12 // with its share of the index
	seriesSize   = 24 + 12
	idSize       = 4
	formSize     = 256 // with keys and labels
	layoutSize   = 256
	resourceSize = 320
)

// crowding is how much more than it may take the memory of a cache grows before a sweep: one part in this many.
const crowding = 4

// memory is the limit of the memory that entries take, those without room included until they are swept.
type memory struct {
	of   *Cache
	most int64 // 0 is any
	next int64 // how much there may be before the next sweep
	grow int64 // how much may come before a cut; 0 is any
	cut  int64 // how much there was at the last cut
}

// taken is about how much memory entries take. The table must be locked.
func (m *memory) taken() int64 {
	c := m.of
	return c.Symbols.Bytes() + int64(c.Points.Used()*pointSize+c.Series.Used()*seriesSize+c.sets.ids*idSize+
		c.Forms.Used()*formSize+c.Layouts.Used()*layoutSize+c.room.resources*resourceSize)
}

// isFull reports whether there is no memory for a further entry. The table must be locked.
func (m *memory) isFull() bool { return m.most > 0 && m.taken() >= m.most }

// isCrowded reports whether there is much more than there may be.
func (m *memory) isCrowded() bool { return m.exceeds(m.most + m.most/crowding) }

// hasGrown reports whether as much has come since the last cut as may.
func (m *memory) hasGrown() bool {
	if m.grow == 0 {
		return false
	}
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	return m.taken()-m.cut > m.grow
}

// wantsSweep reports whether as much came since the last sweep that another pays. It returns true to one caller only.
func (m *memory) wantsSweep() bool {
	if m.most == 0 {
		return false
	}
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	if m.taken() <= m.next {
		return false
	}
	m.next = math.MaxInt64
	return true
}

func (m *memory) exceeds(limit int64) bool {
	if m.most == 0 {
		return false
	}
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	return m.taken() > limit
}

// swept records a sweep. What is not flushed yet survives one, and may be more than there may be.
func (m *memory) swept() {
	if m.most > 0 {
		m.next = max(m.taken(), m.most) + m.most/crowding
	}
	m.cut = min(m.cut, m.taken())
}
