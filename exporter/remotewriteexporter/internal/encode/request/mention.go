// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import "github.com/zeebo/xxh3"

// fewMentions is the first size of the table of exemplars' texts, manyMentions the size up to which it is kept: 256
// KiB.
const (
	fewMentions  = 1 << 8
	manyMentions = 1 << 14
)

// mentions are the texts of exemplars in the current request that are no symbols of series. Most are trace IDs, which
// come once: so they are not copied, but stay where they are in the request.
type mentions struct {
	places []mention // hash table; a power of two, at least half of it free
	used   int       // in the epoch
	epoch  uint32
}

type mention struct {
	epoch    uint32
	at, size uint32 // in the request's symbols
	ref      uint32
}

// begin forgets the texts of the request before.
func (m *mentions) begin(epoch uint32) {
	if epoch == 1 || m.used > manyMentions/2 { // after a start all exemplars are new; and epochs may begin again
		m.places = nil
	}
	m.used, m.epoch = 0, epoch
}

// find returns the entry of a text among symbols, or a free one.
func (m *mentions) find(text, symbols []byte) *mention {
	for i := xxh3.Hash(text); ; i++ {
		x := &m.places[i&uint64(len(m.places)-1)]
		if x.epoch != m.epoch || string(symbols[x.at:x.at+x.size]) == string(text) {
			return x
		}
	}
}

// grow makes room for one more.
func (m *mentions) grow(symbols []byte) {
	if 2*m.used < len(m.places) {
		return
	}
	old := m.places
	m.places = make([]mention, max(2*len(old), fewMentions))
	for _, x := range old {
		if x.epoch == m.epoch {
			*m.find(symbols[x.at:x.at+x.size], symbols) = x
		}
	}
}
