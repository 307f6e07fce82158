// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package intern

import (
	"hash/maphash"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// MaxLength is that of strings that are looked at. Longer ones are rarely the same.
	MaxLength = 128

	shards   = 16
	doorBits = 12      // of a shard: which strings were seen once
	overhead = 48      // of an entry, beside its bytes
	maxKeys  = 1 << 10 // that are known
	trial    = 10_000  // values after which a key is judged
	worth    = 10      // percent of them that must have been known
)

// Table holds strings.
type Table struct {
	maxBytes int // of a generation of a shard
	seed     maphash.Seed
	shards   [shards]shard

	mu      sync.Mutex // of those who change keys
	keys    atomic.Pointer[map[string]*Key]
	exclude map[string]bool
}

// Key is an attribute's key.
type Key struct {
	// Name is the key, in the memory of the table.
	Name string

	off         bool // by configuration
	looks, hits atomic.Int32
}

// shard has a lock of its own.
type shard struct {
	mu          sync.Mutex
	now, before map[string]string
	bytes       [2]int
	door        []uint32 // tags of what was seen once
	hits, takes int64
	_           [40]byte
}

// New makes a table of at most maxBytes for strings. Values of excluded keys are left alone.
func New(maxBytes int, exclude []string) *Table {
	t := &Table{maxBytes: max(maxBytes/2/shards, 4*MaxLength), seed: maphash.MakeSeed(), exclude: map[string]bool{}}
	for _, key := range exclude {
		t.exclude[key] = true
	}
	t.keys.Store(&map[string]*Key{})
	for i := range t.shards {
		t.shards[i].now, t.shards[i].door = map[string]string{}, make([]uint32, 1<<doorBits)
	}
	return t
}

// Key finds a key, nil when there are too many.
func (t *Table) Key(name string) *Key {
	if k := (*t.keys.Load())[name]; k != nil {
		return k
	}
	return t.addKey(name)
}

func (t *Table) addKey(name string) *Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := *t.keys.Load()
	if k := old[name]; k != nil || len(old) == maxKeys || len(name) > MaxLength {
		return k
	}
	keys := make(map[string]*Key, len(old)+1)
	maps.Copy(keys, old)
	k := &Key{Name: strings.Clone(name), off: t.exclude[name]}
	keys[k.Name] = k
	t.keys.Store(&keys)
	return k
}

// Value returns the string to use for the value of a key, which is the value itself if it is not known.
func (t *Table) Value(k *Key, value string) string {
	if k == nil || k.off {
		return value
	}
	looks := k.looks.Load()
	if looks >= trial && k.hits.Load() < trial*worth/100 {
		return value
	}
	found, hit := t.Text(value)
	if looks < trial {
		k.looks.Add(1)
		if hit {
			k.hits.Add(1)
		}
	}
	return found
}

// Text returns the string to use for s, and whether it was known.
func (t *Table) Text(s string) (found string, hit bool) {
	if s == "" || len(s) > MaxLength {
		return s, false
	}
	hash := maphash.String(t.seed, s)
	sh := &t.shards[hash%shards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if found, hit = sh.now[s]; hit {
		sh.hits++
		return found, true
	}
	if found, hit = sh.before[s]; hit {
		sh.hits++
		t.take(sh, found)
		return found, true
	}
	if tag := &sh.door[hash>>8%(1<<doorBits)]; *tag != uint32(hash>>32) {
		*tag = uint32(hash >> 32)
		return s, false
	}
	found = strings.Clone(s)
	t.take(sh, found)
	return found, false
}

func (t *Table) take(sh *shard, s string) {
	cost := len(s) + overhead
	if sh.bytes[0]+cost > t.maxBytes {
		sh.turn()
	}
	sh.bytes[0] += cost
	sh.takes++
	sh.now[s] = s
}

func (sh *shard) turn() {
	sh.now, sh.before = map[string]string{}, sh.now
	sh.bytes = [2]int{0, sh.bytes[0]}
}

// Turn begins a new generation, and gives every key another chance.
func (t *Table) Turn() {
	for i := range t.shards {
		sh := &t.shards[i]
		sh.mu.Lock()
		sh.turn()
		clear(sh.door)
		sh.mu.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keys.Store(&map[string]*Key{})
}

// Counts says what a table did and holds.
type Counts struct {
	Hits, Takes int64
	Bytes       int
	Keys, Off   int // keys, and those of them that are left alone
}

// Counts adds up.
func (t *Table) Counts() (c Counts) {
	for i := range t.shards {
		sh := &t.shards[i]
		sh.mu.Lock()
		c.Hits, c.Takes, c.Bytes = c.Hits+sh.hits, c.Takes+sh.takes, c.Bytes+sh.bytes[0]+sh.bytes[1]
		sh.mu.Unlock()
	}
	for _, k := range *t.keys.Load() {
		c.Keys++
		if k.off || k.looks.Load() >= trial && k.hits.Load() < trial*worth/100 {
			c.Off++
		}
	}
	return c
}
