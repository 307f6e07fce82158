// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// mostBlocks is more blocks than can ever be queued. A key with a greater number is damaged; numbers that continue from
// a damaged one below it never get that far.
const mostBlocks = 1 << 60

// A lister is a storage that can list its keys without reading values.
type lister interface{ Keys() []string }

// A listing is the numbers of the blocks in a storage, and of marks of blocks, from their keys: what there is to read,
// however far apart.
type listing struct {
	blocks, marks []uint64 // sorted
	odd           []string // keys with these prefixes, but without a valid number
}

// list asks a storage for its keys. The listing is nil if the storage cannot tell.
func list(ctx context.Context, client storage.Client) (*listing, error) {
	switch c := client.(type) {
	case lister:
		return listingOf(c.Keys()), nil
	case storage.Walker:
		var keys []string
		err := c.Walk(ctx, func(k string, _ []byte) ([]*storage.Operation, error) {
			keys = append(keys, k)
			return nil, nil
		})
		if err != nil {
			return nil, fmt.Errorf("cannot list the keys of the stored queue: %w", err)
		}
		return listingOf(keys), nil
	}
	return nil, nil
}

func listingOf(keys []string) *listing {
	l := &listing{}
	for _, k := range keys {
		if seq, ok := parseKey(BlockPrefix, k); ok {
			l.blocks = append(l.blocks, seq)
		} else if seq, ok := parseKey(donePrefix, k); ok {
			l.marks = append(l.marks, seq)
		} else if strings.HasPrefix(k, BlockPrefix) || strings.HasPrefix(k, donePrefix) {
			l.odd = append(l.odd, k)
		}
	}
	slices.Sort(l.blocks)
	slices.Sort(l.marks)
	return l
}

// span returns the number of the first block, and that after the last.
func (l *listing) span() (first, next uint64) {
	if len(l.blocks) == 0 {
		return 0, 0
	}
	return l.blocks[0], l.blocks[len(l.blocks)-1] + 1
}

// within returns the numbers of blocks and marks within a span.
func (l *listing) within(first, next uint64) []uint64 {
	all := slices.Concat(between(l.blocks, first, next), between(l.marks, first, next))
	slices.Sort(all)
	return slices.Compact(all)
}

// outside returns the keys of all others.
func (l *listing) outside(first, next uint64) []string {
	keys := slices.Clone(l.odd)
	for prefix, numbers := range map[string][]uint64{BlockPrefix: l.blocks, donePrefix: l.marks} {
		for _, seq := range numbers {
			if seq < first || seq >= next {
				keys = append(keys, key(prefix, seq))
			}
		}
	}
	return keys
}

// between returns those of sorted numbers that are within a span.
func between(numbers []uint64, first, next uint64) []uint64 {
	from, _ := slices.BinarySearch(numbers, first)
	to, _ := slices.BinarySearch(numbers, next)
	return numbers[from:to]
}
