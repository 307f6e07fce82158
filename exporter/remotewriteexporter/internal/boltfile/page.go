// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package boltfile

import (
	"encoding/binary"
	"hash/fnv"
)

// A file is a tree of pages, all numbers in the order of the machine that wrote it.
//
//	page     id 8, kind 2, count 2, further pages 4, then count elements, then keys and values
//	branch   offset 4, size of the key 4, page 8
//	leaf     flags 4, offset 4, size of the key 4, size of the value 4
//	bucket   root page 8, sequence 8; a value of a leaf. With root 0 its only page follows.
//	meta     magic 4, version 4, size of a page 4, flags 4, root bucket 16, free list 8, pages 8, transaction 8, checksum 8
//
// Offsets count from the element that has them. The first two pages are metas; the later transaction holds.
const (
	headSize    = 16
	elementSize = 16
	bucketSize  = 16
	metaSize    = 64

	kindBranch = 1
	kindLeaf   = 2

	leafIsBucket = 1

	magic   = 0xED0CDAED
	version = 2

	// deepest is how many levels a tree may have: far more than any file has.
	deepest               = 32
	leastPage, largestExp = 1 << 10, 15
)

var order = binary.NativeEndian

// element is an element of a leaf.
type element struct {
	key      string
	value    place
	isBucket bool
}

// root returns the page with the tree's root; false if neither meta page is valid. If one of them is invalid, it may be
// the later one, and the tree is that of the transaction before.
func (f *File) root() (page uint64, ok bool) {
	var last uint64
	sound := 0
	defer func() {
		if sound == 1 {
			f.damaged++
		}
	}()
	meta := func(at int64) {
		b := f.bytes(at+headSize, metaSize, f.size)
		if b == nil || order.Uint32(b) != magic || order.Uint32(b[4:]) != version {
			return
		}
		sum := fnv.New64a()
		_, _ = sum.Write(b[:56])
		size := int64(order.Uint32(b[8:]))
		if sum.Sum64() != order.Uint64(b[56:]) || size < leastPage || size > leastPage<<largestExp {
			return
		}
		sound++
		if transaction := order.Uint64(b[48:]); !ok || transaction > last {
			page, last, ok = order.Uint64(b[16:]), transaction, true
			f.page, f.pages = size, order.Uint64(b[40:])
		}
	}
	if meta(0); ok {
		meta(f.page)
		return page, ok
	}
	for exp := 0; exp <= largestExp && !ok; exp++ { // the first is damaged, so the position of the second is not known
		meta(leastPage << exp)
	}
	return page, ok
}

// bytes returns n bytes at an offset, nil if they do not end before end or the end of the file.
func (f *File) bytes(at, n, end int64) []byte {
	if at < 0 || n < 0 || at > end || n > end-at || end > f.size {
		return nil
	}
	b := make([]byte, n)
	if _, err := f.file.ReadAt(b, at); err != nil {
		return nil
	}
	return b
}

// walk visits the elements of a page and of those below it.
func (f *File) walk(id uint64, depth int, visit func(element)) {
	if id >= uint64(f.size/f.page) || id >= f.pages || depth > deepest || f.seen[id] {
		f.damaged++
		return
	}
	f.seen[id] = true
	at := int64(id) * f.page
	head := f.bytes(at, headSize, f.size)
	if head == nil || order.Uint64(head) != id {
		f.damaged++
		return
	}
	if further := uint64(order.Uint32(head[12:])); further >= f.pages-id {
		f.damaged++
	} else {
		for i := range further {
			if f.seen[id+1+i] {
				f.damaged++
			}
			f.seen[id+1+i] = true
		}
	}
	f.walkPage(at, min(at+(int64(order.Uint32(head[12:]))+1)*f.page, f.size), depth, visit)
}

// walkBucket visits the elements of a bucket.
func (f *File) walkBucket(value place, visit func(element)) {
	defer func(last, least string) { f.last, f.least = last, least }(f.last, f.least)
	f.last, f.least = "", ""
	end := value.at + int64(value.size)
	b := f.bytes(value.at, bucketSize, end)
	switch {
	case b == nil:
		f.damaged++
	case order.Uint64(b) == 0:
		f.walkPage(value.at+bucketSize, end, 0, visit)
	default:
		f.walk(order.Uint64(b), 0, visit)
	}
}

// walkPage visits the elements of the page between two offsets.
func (f *File) walkPage(at, end int64, depth int, visit func(element)) {
	head := f.bytes(at, headSize, end)
	if head == nil {
		f.damaged++
		return
	}
	kind, count := order.Uint16(head[8:]), int64(order.Uint16(head[10:]))
	list := f.bytes(at+headSize, count*elementSize, end)
	if list == nil || kind != kindBranch && kind != kindLeaf {
		f.damaged++
		return
	}
	for i := range count {
		e, from := list[i*elementSize:], at+headSize+i*elementSize
		if kind == kindBranch {
			key := f.bytes(from+int64(order.Uint32(e)), int64(order.Uint32(e[4:])), end)
			if key == nil || i > 0 && string(key) <= f.last || string(key) < f.least {
				f.damaged++
			} else {
				f.least = string(key)
			}
			f.walk(order.Uint64(e[8:]), depth+1, visit)
			continue
		}
		keyAt, keySize := from+int64(order.Uint32(e[4:])), int64(order.Uint32(e[8:]))
		value := place{keyAt + keySize, order.Uint32(e[12:])}
		key := f.bytes(keyAt, keySize, end)
		if key == nil || int64(value.size) > end-value.at {
			f.damaged++
			continue
		}
		if string(key) <= f.last || string(key) < f.least { // keys are sorted: this one, or the last, is damaged
			f.damaged++
		} else {
			f.last = string(key)
		}
		visit(element{string(key), value, order.Uint32(e)&leafIsBucket != 0})
	}
}
