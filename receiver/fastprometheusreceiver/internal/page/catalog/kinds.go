// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import "hash/maphash"

const (
	// pioneers is how many targets of a kind count as its first. All of them except the very first get lines with slots
	// although nobody shares these yet.
	pioneers = 3
	// mostKinds limits the kinds of pages for which pioneers are counted.
	mostKinds = 1 << 10
)

// kinds are the kinds of the pages that were searched for own values, each identified by the metric names on the page.
type kinds struct {
	pioneers map[uint64]uint8
	orders   map[ordered]uint64  // hashes of the values on the first page of a kind
	varying  map[string]struct{} // labels whose values, or their order, differ between pages of a kind
}

// ordered identifies the values of a label on pages of a kind.
type ordered struct {
	kind  uint64
	label string
}

func newKinds() kinds {
	return kinds{pioneers: map[uint64]uint8{}, orders: map[ordered]uint64{}, varying: map[string]struct{}{}}
}

// noteOrders records which labels differ between pages of a kind, in their values or the order of these. What all pages
// have in the same order needs no slots.
func (k *kinds) noteOrders(kind uint64, about []labelPair) {
	orders := map[string]uint64{}
	for _, pair := range about {
		orders[pair.name] = (orders[pair.name] ^ maphash.String(seed, pair.value)) * 0x9e3779b97f4a7c15
	}
	for name, order := range orders {
		if k.varies(name) || len(k.varying) == MostOwn {
			continue
		}
		key := ordered{kind, name}
		first, noted := k.orders[key]
		switch {
		case !noted && len(k.orders) < mostKinds:
			k.orders[key] = order
		case first != order:
			k.varying[name] = struct{}{}
		default:
		}
	}
}

// varies reports whether a label's values, or their order, differ between pages of a kind.
func (k *kinds) varies(label string) bool {
	_, ok := k.varying[label]
	return ok
}

// isEarly reports whether a page is one of the first of a kind.
func (k *kinds) isEarly(kind uint64) bool {
	n, ok := k.pioneers[kind]
	if n >= pioneers || !ok && len(k.pioneers) == mostKinds {
		return false
	}
	k.pioneers[kind] = n + 1
	return true
}

// isSecond reports whether a page is one of the first of a kind, but not the very first: from that alone, nobody can
// tell which values are its target's own. All other pages may be the same, and share its lines as they are. The target
// is recorded as the first, to join the others later.
func (k *kinds) isSecond(t *Identity, kind uint64) bool {
	if !k.isEarly(kind) {
		return false
	}
	if k.pioneers[kind] == 1 {
		t.first = kind
		return false
	}
	return true
}

// IsFollowed reports, once, that a target's page was the first of a kind, and another page has since shown which values
// are its target's own.
func (k *kinds) IsFollowed(t *Identity) bool {
	if k.pioneers[t.first] <= 1 {
		return false
	}
	t.first = 0
	return true
}

// IsFirst reports whether a target's page was the first of a kind when it was searched.
func (t *Identity) IsFirst() bool { return t.first != 0 }

// AreStrangers reports whether page after page is about the same metrics as the ones before but has no line in common
// with them.
func (k *kinds) AreStrangers(lines []*Line) bool {
	kind := aboutOf(lines) ^ strangeSalt
	return !k.isEarly(kind) && k.pioneers[kind] == pioneers
}

// What pioneers are counted for, in addition to slots.
const (
	severalSalt = 0x9fb21c651e98df25
	strangeSalt = 0xd6e8feb86659fd93
)

// aboutOf identifies the kind of a page by its metric names.
func aboutOf(lines []*Line) (kind uint64) {
	var last *Name
	for _, l := range lines {
		if l.Kind == SeriesLine && l.Name != last {
			last = l.Name
			kind = (kind ^ maphash.String(seed, last.exposed)) * 0x9e3779b97f4a7c15
		}
	}
	return kind
}
