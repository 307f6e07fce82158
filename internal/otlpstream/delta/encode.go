// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Encoder encodes the payloads of one stream.
type Encoder struct {
	history

	seed    maphash.Seed
	byHead  map[key]int
	byText  map[uint64]*shape
	free    []int
	uses    []use // by row
	newest  int   // ends of a list of rows by last use; -1 if none
	oldest  int
	now     uint64 // counts resources
	fickle  [256]record
	scratch columns
	text    []byte
	holes   []hole
}

// key is used to look up a resource; the result must still be compared.
type key struct {
	head uint64
	size int // of the text
}

// use links a row into the list by last use: the rows used before and after it.
type use struct {
	at            uint64
	key           key
	before, after int
}

// record records whether a resource has another text each time.
type record struct {
	head         uint64
	misses, skip uint8
}

// NewEncoder returns an encoder for a stream whose other end keeps a history of at most limit bytes.
func NewEncoder(limit int) *Encoder {
	return &Encoder{
		history: history{limit: limit}, seed: maphash.MakeSeed(),
		byHead: map[key]int{}, byText: map[uint64]*shape{}, newest: -1, oldest: -1,
	}
}

// Append appends a payload, which is a list of resources with a tag of one byte before each. If the payload is no such
// list, it does nothing and returns false.
func (e *Encoder) Append(dst, payload []byte) ([]byte, bool) {
	for rest := payload; len(rest) > 0; {
		content, n := protowire.ConsumeBytes(rest[1:])
		if rest[0] != payload[0] || n < 0 || n != protowire.SizeBytes(len(content)) {
			return dst, false // a length that is longer than necessary could not be restored
		}
		rest = rest[1+n:]
	}
	for rest := payload; len(rest) > 0; {
		content, n := protowire.ConsumeBytes(rest[1:])
		dst = e.resource(dst, content)
		rest = rest[1+n:]
	}
	return dst, true
}

var seed = maphash.MakeSeed()

// HashResource returns a hash, never 0, of the first resource of a payload.
func HashResource(payload []byte) uint64 {
	if len(payload) == 0 {
		return 1
	}
	content, _ := protowire.ConsumeBytes(payload[1:])
	head, _, _ := split(content)
	return maphash.Bytes(seed, head) | 1<<63
}

func (e *Encoder) resource(dst, content []byte) []byte {
	e.now++
	head, text, last := split(content)
	k := key{maphash.Bytes(e.seed, head), len(text)}
	n, known := e.byHead[k]
	if known {
		r := e.rows[n]
		if bytes.Equal(r.head, head) && last == r.shape.last && e.scratch.gather(r.shape, text) &&
			e.scratch.clocks.alike == r.clocks.alike && e.scratch.starts.alike == r.starts.alike {
			return e.step(dst, n, r)
		}
		dst = e.drop(dst, n)
	}
	if !e.promises(k.head) {
		return plain(dst, content)
	}
	return e.add(dst, k, head, text, content, last)
}

func appendKind(dst []byte, row, kind int) []byte {
	return binary.AppendUvarint(dst, uint64(row)<<kindBits|uint64(kind))
}

func plain(dst, content []byte) []byte {
	return append(binary.AppendUvarint(appendKind(dst, 0, kindPlain), uint64(len(content))), content...)
}

// step appends how the numbers of a row have changed, and updates them.
func (e *Encoder) step(dst []byte, n int, r *row) []byte {
	e.recordOf(e.uses[n].key.head).misses = 0
	e.touch(n)
	r.shape.donor = n
	dst = appendKind(dst, n, kindStep)
	return e.moves(dst, r, &r.columns, &e.scratch)
}

// moves appends how the numbers of a row differ from those before, and gives the row the new ones.
func (*Encoder) moves(dst []byte, r *row, before, now *columns) []byte {
	dst = appendTicks(dst, &before.clocks, &now.clocks)
	dst = appendTicks(dst, &before.starts, &now.starts)
	copy(r.clocks.times, now.clocks.times)
	copy(r.starts.times, now.starts.times)
	at := len(dst)
	dst = append(dst, make([]byte, bitmap(len(now.values)))...)
	kinds := r.shape.values
	for i, v := range now.values {
		was := before.values[i]
		if v == was {
			continue
		}
		dst[at+i/8] |= 1 << (i % 8)
		if kinds[i] == integer {
			dst = binary.AppendUvarint(dst, zigzag(int64(v-was)))
		} else {
			dst, r.scales[i] = appendMove(dst, r.scales[i], was, v)
		}
		r.values[i] = v
	}
	return dst
}

// bitmap returns the size in bytes of n bits.
func bitmap(n int) int { return (n + 7) / 8 }

// appendTicks appends how a column of times has changed. Mostly all have changed by the same amount.
func appendTicks(dst []byte, before, now *ticks) []byte {
	n := len(now.times)
	if now.alike {
		n = min(n, 1)
	}
	switch n {
	case 0:
		return dst
	case 1:
		return binary.AppendUvarint(dst, zigzag(int64(now.times[0]-before.of(0))))
	}
	at := len(dst)
	dst = append(dst, make([]byte, bitmap(n))...)
	last := uint64(0)
	for k, v := range now.times {
		moved := v - before.of(k)
		if moved == last {
			continue
		}
		dst[at+k/8] |= 1 << (k % 8)
		dst = binary.AppendUvarint(dst, zigzag(int64(moved-last)))
		last = moved
	}
	return dst
}

// add appends a resource that is new, and keeps it if there is room.
func (e *Encoder) add(dst []byte, k key, head, text, content []byte, last bool) []byte {
	var ok bool
	if e.holes, ok = holesOf(e.holes[:0], text); !ok || len(e.holes) == 0 {
		return plain(dst, content)
	}
	e.text = append(e.text[:0], text...)
	e.scratch.read(e.holes, text)
	for _, h := range e.holes {
		clear(e.text[h.at : h.at+8])
	}
	hash := maphash.Bytes(e.seed, e.text)
	s := e.byText[hash]
	if s != nil && (s.last != last || !bytes.Equal(s.text, e.text)) {
		s = nil
	}
	cost := costOfRow(head, &e.scratch)
	for ok = false; !ok; {
		joins := s != nil && s.donor >= 0
		if !joins {
			s = nil
			cost += overhead + len(text) + 8*len(e.holes)
		}
		if dst, ok = e.room(dst, cost); !ok {
			return plain(dst, content)
		}
		ok = s == nil || s.donor >= 0 // making room may have removed the donor
	}
	n := len(e.rows)
	if len(e.free) > 0 {
		n = e.free[len(e.free)-1]
		e.free = e.free[:len(e.free)-1]
	}
	r := &row{head: bytes.Clone(head)}
	r.clocks, r.starts, r.values = e.scratch.clocks.kept(), e.scratch.starts.kept(), slices.Clone(e.scratch.values)
	if s == nil {
		r.shape = newShape(bytes.Clone(e.text), slices.Clone(e.holes))
		r.shape.hash, r.shape.last = hash, last
		e.byText[hash] = r.shape
		r.scales = r.shape.first(r.values)
		dst = appendKind(dst, n, kindLearn)
		dst = append(binary.AppendUvarint(dst, uint64(len(content))), content...)
	} else {
		donor := e.rows[s.donor]
		r.shape = s
		r.scales = slices.Clone(donor.scales)
		dst = binary.AppendUvarint(appendKind(dst, n, kindJoin), uint64(s.donor))
		dst = append(dst, flags(r))
		dst = append(binary.AppendUvarint(dst, uint64(len(head))), head...)
		dst = e.moves(dst, r, &donor.columns, &e.scratch)
	}
	e.put(n, r)
	r.shape.donor = n
	e.byHead[k] = n
	e.begin(n, k)
	return dst
}

const (
	clocksAlike = 1 << iota
	startsAlike
)

func flags(r *row) (b byte) {
	if r.clocks.alike {
		b |= clocksAlike
	}
	if r.starts.alike {
		b |= startsAlike
	}
	return b
}

// drop appends that a row is forgotten, and forgets it.
func (e *Encoder) drop(dst []byte, n int) []byte {
	s := e.rows[n].shape
	e.forget(n)
	if s.donor == n {
		s.donor = -1
	}
	if s.rows == 0 && e.byText[s.hash] == s {
		delete(e.byText, s.hash)
	}
	delete(e.byHead, e.uses[n].key)
	e.unlink(n)
	e.free = append(e.free, n)
	return appendKind(dst, n, kindForget)
}

// room forgets rows that are no longer used, as far as a new row needs their room. Resources that come in a cycle too
// long to fit must not push out the rows there are: otherwise none would be known when it comes again.
func (e *Encoder) room(dst []byte, cost int) ([]byte, bool) {
	const rounds = 4
	if cost > e.limit/2 {
		return dst, false
	}
	for e.used+cost > e.limit {
		n := e.oldest
		if n < 0 || e.now-e.uses[n].at <= rounds*uint64(len(e.rows)) {
			return dst, false
		}
		dst = e.drop(dst, n)
	}
	return dst, true
}

// promises reports whether an unknown resource is worth keeping, and records that it was unknown. Some resources come
// with another text each time: they are then examined only once in a while.
func (e *Encoder) promises(head uint64) bool {
	const patience, longest = 8, 64
	r := e.recordOf(head)
	if r.skip > 0 {
		r.skip--
		return false
	}
	if r.misses < patience {
		r.misses++
		return true
	}
	r.skip = longest
	return true
}

// recordOf returns the record of a resource, which may have to be taken from another resource.
func (e *Encoder) recordOf(head uint64) *record {
	r := &e.fickle[head%uint64(len(e.fickle))]
	if r.head != head {
		*r = record{head: head}
	}
	return r
}

// begin records the first use of a row.
func (e *Encoder) begin(n int, k key) {
	if n == len(e.uses) {
		e.uses = append(e.uses, use{})
	}
	e.uses[n] = use{key: k}
	e.link(n)
}

func (e *Encoder) touch(n int) {
	e.unlink(n)
	e.link(n)
}

func (e *Encoder) link(n int) {
	u := &e.uses[n]
	u.at, u.before, u.after = e.now, e.newest, -1
	if e.newest >= 0 {
		e.uses[e.newest].after = n
	} else {
		e.oldest = n
	}
	e.newest = n
}

func (e *Encoder) unlink(n int) {
	u := e.uses[n]
	if u.before >= 0 {
		e.uses[u.before].after = u.after
	} else {
		e.oldest = u.after
	}
	if u.after >= 0 {
		e.uses[u.after].before = u.before
	} else {
		e.newest = u.before
	}
}
