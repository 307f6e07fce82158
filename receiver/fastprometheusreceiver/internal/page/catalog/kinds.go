// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import "hash/maphash"

const (
	// pioneers is how many targets of a kind are its first. All but the very first have lines with slots though nobody else has them yet.
	pioneers = 3
	// mostKinds bounds the kinds of pages for which pioneers are counted.
	mostKinds = 1 << 10
)

// kinds are those of the pages that were looked through for values of their targets' own: a page is of the kind of what it is about.
type kinds struct {
	pioneers map[uint64]uint8
	orders   map[ordered]uint64  // of values, hashed: those that the first page had
	varying  map[string]struct{} // labels that pages of a kind have other values under, or in another order
}

// ordered is the values of a label on pages of a kind.
type ordered struct {
	kind  uint64
	label string
}

func newKinds() kinds {
	return kinds{pioneers: map[uint64]uint8{}, orders: map[ordered]uint64{}, varying: map[string]struct{}{}}
}

// noteOrders notes which labels have other values on pages of a kind, or in another order. What all pages have in one order needs no slots.
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

// varies tells whether pages of a kind have other values under a label, or in another order.
func (k *kinds) varies(label string) bool {
	_, ok := k.varying[label]
	return ok
}

// isEarly tells whether a page is one of the first of a kind.
func (k *kinds) isEarly(kind uint64) bool {
	n, ok := k.pioneers[kind]
	if n >= pioneers || !ok && len(k.pioneers) == mostKinds {
		return false
	}
	k.pioneers[kind] = n + 1
	return true
}

// isSecond tells whether a page is one of the first of a kind, and not the very first: by that alone there is no telling what is its target's own. All
// others may say the same, and would share its lines if it left them as they are. The target is noted as the first, to join others later.
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

// IsFollowed tells, once, whether a target's page was the first of a kind of which another has shown since that it tells of what is its own.
func (k *kinds) IsFollowed(t *Identity) bool {
	if k.pioneers[t.first] <= 1 {
		return false
	}
	t.first = 0
	return true
}

// IsFirst tells whether a target's page was the first of a kind when it was looked through.
func (t *Identity) IsFirst() bool { return t.first != 0 }

// AreStrangers tells whether page after page comes that is about the same as the ones before and has no line in common with them.
func (k *kinds) AreStrangers(lines []*Line) bool {
	kind := aboutOf(lines) ^ strangeSalt
	return !k.isEarly(kind) && k.pioneers[kind] == pioneers
}

// What pioneers are counted for, besides slots.
const (
	severalSalt = 0x9fb21c651e98df25
	strangeSalt = 0xd6e8feb86659fd93
)

// aboutOf is what a page is about: its names.
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
