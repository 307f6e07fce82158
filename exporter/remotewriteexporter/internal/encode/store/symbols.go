// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
)

// Symbols gives each string a number, which is valid as long as the string is used. Number 0 is the empty string.
type Symbols struct {
	mu    sync.Mutex
	seed  maphash.Seed
	index Index
	text  []string // by id; an element is written once until release frees its id
	free  []uint32
	// The values of points, which may be as many as points, and come and go as often, are in pieces of memory.
	packed []bool          // by id: the text is in one
	piece  strings.Builder // the last
	pieces int             // bytes of all

	bytes atomic.Int64 // that the symbols take
}

const (
	// symbolPiece is how many bytes a piece has.
	symbolPiece = 1 << 13
	// longSymbol is the length from which on a text has memory of its own.
	longSymbol = 1 << 8
	// symbolSize is about what a symbol takes besides its text.
	symbolSize = 32
)

// NewSymbols makes symbols with the empty text only.
func NewSymbols() *Symbols {
	return &Symbols{seed: maphash.MakeSeed(), text: []string{""}, packed: []bool{false}}
}

// Intern is Keep for texts that are sent. Receivers refuse a whole request for one byte that is not UTF-8, so such
// bytes are replaced.
func (t *Symbols) Intern(s string) uint32 {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return t.Keep(s)
}

// Keep stores a copy of s, which may be part of something much larger.
func (t *Symbols) Keep(s string) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.add(s, false)
}

// TextOf returns a copy of a text, which keeps no piece in memory.
func (t *Symbols) TextOf(id uint32) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.packed[id] {
		return strings.Clone(t.text[id])
	}
	return t.text[id]
}

// Pack stores the values of m, and their ids in dst, which has room for them.
func (t *Symbols) Pack(dst []uint32, m pcommon.Map) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := 0
	for _, v := range m.All() {
		dst[i] = t.add(attribute.Text(v), true)
		i++
	}
}

func (t *Symbols) add(s string, isPacked bool) uint32 {
	if s == "" {
		return 0
	}
	hash := Fold(maphash.String(t.seed, s))
	for id := range t.index.Of(hash) {
		if t.text[id] == s {
			return id
		}
	}
	if isPacked = isPacked && len(s) < longSymbol; isPacked {
		s = t.copy(s)
	} else {
		s = strings.Clone(s)
	}
	var id uint32
	if n := len(t.free); n > 0 {
		id, t.free = t.free[n-1], t.free[:n-1]
		t.text[id], t.packed[id] = s, isPacked
	} else {
		id = uint32(len(t.text))
		t.text, t.packed = append(t.text, s), append(t.packed, isPacked)
	}
	t.index.Insert(hash, id)
	t.bytes.Add(int64(len(s)) + symbolSize)
	return id
}

// copy copies a text into a piece of memory.
func (t *Symbols) copy(s string) string {
	if t.piece.Cap()-t.piece.Len() < len(s) {
		t.piece.Reset()
		t.piece.Grow(symbolPiece)
		t.pieces += symbolPiece
	}
	at := t.piece.Len()
	t.piece.WriteString(s)
	return t.piece.String()[at:]
}

// Lookup finds a text. It returns false if that is no symbol.
func (t *Symbols) Lookup(s []byte) (uint32, bool) {
	if len(s) == 0 {
		return 0, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.index.Of(Fold(maphash.Bytes(t.seed, s))) {
		if t.text[id] == string(s) {
			return id, true
		}
	}
	return 0, false
}

// Snapshot returns the texts of all ids so far. It may be read while others intern.
func (t *Symbols) Snapshot() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text
}

// Size is the number of symbols, including the empty text.
func (t *Symbols) Size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.index.Len() + 1
}

// Bytes is about how much memory the symbols take.
func (t *Symbols) Bytes() int64 { return t.bytes.Load() }

// Release frees the ids that are not marked. Nobody may hold one of them, or a snapshot.
func (t *Symbols) Release(marked []bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.index.Sweep(func(id uint32) bool { return marked[id] })
	left := 0 // bytes in pieces
	for id := 1; id < len(marked); id++ {
		switch s := t.text[id]; {
		case s == "":
		case !marked[id]:
			t.bytes.Add(-int64(len(s)) - symbolSize)
			t.text[id], t.packed[id] = "", false
			t.free = append(t.free, uint32(id))
		case t.packed[id]:
			left += len(s)
		default:
		}
	}
	if t.pieces > 2*left+2*symbolPiece {
		t.repack()
	}
}

// repack copies the remaining texts together: each text keeps all of its piece in memory.
func (t *Symbols) repack() {
	t.piece.Reset()
	t.pieces = 0
	for id, isPacked := range t.packed {
		if isPacked {
			t.text[id] = t.copy(t.text[id])
		}
	}
}
