// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache recognises resources, metrics and points, and knows their series.
//
// A series is stored without its resource: a thousand similar targets share their entries, and each target adds only its own
// few labels. Entries are in slabs and refer to each other by number. They keep copies of what they need, never the originals.
//
// The Config limits the size; an Expiry forgets what was idle, and the caller must make sure that nobody uses entries meanwhile.
// Otherwise the cache may be used from any goroutine.
package cache

import (
	"hash/maphash"
	"math"
	"sync"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/rules"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// Cache has the known resources, metrics and points, and their series.
type Cache struct {
	cfg      Config
	names    *names.Translator
	rules    *rules.Rules // nil if there are none
	losses   *loss.Counter
	Symbols  *store.Symbols
	Seed     maphash.Seed
	HashMask uint64 // all ones, except in tests of collisions
	Ages     ages

	// mu guards lookups and additions; entries themselves do not change.
	mu         sync.Mutex
	room       room
	Points     *store.Slab[Point]
	Series     *store.Slab[Series]
	Layouts    *store.Slab[Layout]
	Forms      *store.Slab[Form]
	Parts      *store.Slab[[]*Series]
	sets       sets
	recentKeys recentKeys
	ruling     []names.Label // scratch
	hashed     []byte        // scratch
	out        [2]outcome    // stand for series that rules leave nothing of
	familyIDs  uint64
	resourceID uint32
	Sweeps     Mark
	Removals   uint64 // sweeps that removed points
}

// New makes a cache. names and rules determine the labels of series; losses counts what cannot be a series.
func New(cfg Config, names *names.Translator, rules *rules.Rules, losses *loss.Counter) *Cache {
	c := &Cache{
		cfg:      cfg,
		names:    names,
		rules:    rules,
		losses:   losses,
		Symbols:  store.NewSymbols(),
		Seed:     maphash.MakeSeed(),
		HashMask: math.MaxUint64,
		Points:   store.NewSlab[Point](1),
		Series:   store.NewSlab[Series](1),
		Layouts:  store.NewSlab[Layout](1),
		Forms:    store.NewSlab[Form](1),
		Parts:    store.NewSlab[[]*Series](1),
		sets:     newSets(),
	}
	c.room = room{most: cfg.MaxSeries, memory: memory{of: c, most: cfg.MaxBytes, grow: cfg.MaxGrowth}}
	c.room.memory.swept()
	c.Ages.begin()
	for i := range c.out {
		c.out[i].parts = c.Parts.Add()
	}
	return c
}

// WantsExpiry reports whether an expiry is due before the generation ends: texts of entries without room pile up in the
// symbols, or many points have ended. It returns true to one caller only.
func (c *Cache) WantsExpiry() bool {
	return c.room.overflow.Load() > int64(c.cfg.MaxSeries)/4 || c.Ages.wantSweep() || c.room.memory.wantsSweep()
}

// IsCrowded reports whether entries without room take so much memory that nothing more should come before what is there
// is flushed, and an expiry can free it.
func (c *Cache) IsCrowded() bool { return c.room.memory.isCrowded() }

// Cut records that what was added so far will be flushed.
func (c *Cache) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room.memory.cut = c.room.memory.taken()
}

// HasGrown reports whether what is new since the last Cut takes so much memory that it should be flushed.
func (c *Cache) HasGrown() bool { return c.room.memory.hasGrown() }

// Size returns the number of places that points take, and the number of resources.
func (c *Cache) Size() (points, resources int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.room.points, c.room.resources
}
