// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"strings"
	"sync"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// symbols gives each string a number that stays its own while anything uses it. Number 0 is the empty string.
type symbols struct {
	mu   sync.Mutex
	ids  map[string]uint32
	text []string // by id; an element is written once until release frees its id
	free []uint32
}

func newSymbols() *symbols {
	return &symbols{ids: map[string]uint32{"": 0}, text: []string{""}}
}

// intern is keep for what may be sent. Receivers refuse a whole request for one byte that is not UTF-8, so such
// bytes are replaced.
func (t *symbols) intern(s string) uint32 {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return t.keep(s)
}

// keep keeps a copy of s, which may be part of something much larger.
func (t *symbols) keep(s string) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.add(s)
}

// pack keeps the values of m in dst, which has room for them.
func (t *symbols) pack(dst ids, m pcommon.Map) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := 0
	for _, v := range m.All() {
		dst[i] = t.add(PlainText(v))
		i++
	}
}

func (t *symbols) add(s string) uint32 {
	if id, ok := t.ids[s]; ok {
		return id
	}
	s = strings.Clone(s)
	var id uint32
	if n := len(t.free); n > 0 {
		id, t.free = t.free[n-1], t.free[:n-1]
		t.text[id] = s
	} else {
		id = uint32(len(t.text))
		t.text = append(t.text, s)
	}
	t.ids[s] = id
	return id
}

func (t *symbols) lookup(s []byte) (uint32, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok := t.ids[string(s)]
	return id, ok
}

// snapshot is the text of every id given out so far. It may be read while others intern.
func (t *symbols) snapshot() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text
}

func (t *symbols) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ids)
}

// release frees the ids that are not marked. Nobody may hold one of them, or a snapshot.
func (t *symbols) release(marked []bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := 1; id < len(marked); id++ {
		if s := t.text[id]; !marked[id] && s != "" {
			delete(t.ids, s)
			t.text[id] = ""
			t.free = append(t.free, uint32(id))
		}
	}
}
