// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

// table finds entries by hash. It takes up a few bytes for each, beside what they keep themselves: their hash, and
// the next of their bucket.
type table[T any] struct {
	link    func(*T) (next **T, hash uint32)
	buckets []*T // a power of two of them
	used    int
}

// first begins the bucket of a hash, in which entries of others are too.
func (t *table[T]) first(hash uint32) *T {
	if len(t.buckets) == 0 {
		return nil
	}
	return t.buckets[t.bucket(hash)]
}

func (t *table[T]) bucket(hash uint32) uint32 { return hash & uint32(len(t.buckets)-1) }

func (t *table[T]) insert(entry *T) {
	if t.used >= 3*len(t.buckets) {
		t.resize(max(8, 2*len(t.buckets)))
	}
	t.used++
	t.put(entry)
}

func (t *table[T]) put(entry *T) {
	next, hash := t.link(entry)
	head := &t.buckets[t.bucket(hash)]
	*next, *head = *head, entry
}

func (t *table[T]) resize(n int) {
	old := t.buckets
	t.buckets = make([]*T, n)
	for _, entry := range old {
		for entry != nil {
			next, _ := t.link(entry)
			after := *next
			t.put(entry)
			entry = after
		}
	}
}

// sweep removes what is not to be kept, and the buckets that leaves too many.
func (t *table[T]) sweep(keep func(*T) bool) {
	for i := range t.buckets {
		at := &t.buckets[i]
		for *at != nil {
			next, _ := t.link(*at)
			if keep(*at) {
				at = next
			} else {
				*at = *next
				t.used--
			}
		}
	}
	n := len(t.buckets)
	for n > 8 && t.used < n/2 {
		n /= 2
	}
	if n < len(t.buckets) {
		t.resize(n)
	}
}

func (t *table[T]) each(do func(*T)) {
	for _, entry := range t.buckets {
		for entry != nil {
			do(entry)
			next, _ := t.link(entry)
			entry = *next
		}
	}
}
