// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// OwnValues returns which values are the target's own once a page has many new lines: of each label the one that many lines have or,
// where `several`, all that tell of a thing of which there are several.
func (c *Catalog) OwnValues(t *Identity, lines []*Line, several bool) []string {
	series := c.counting.count(c, t, lines)
	defer c.counting.clear()
	var often []counted
	var about []labelPair
	for _, p := range c.counting.seen {
		if OwnPart*p.times > series && c.canBeOwn(p.labelPair) {
			often = append(often, p)
		}
		if p.times >= manyAbout && c.canBeOwn(p.labelPair) {
			about = append(about, p.labelPair)
		}
	}
	c.noteOrders(aboutOf(lines), about)
	if several {
		return c.severalOwn(often, about)
	}
	slices.SortFunc(often, func(a, b counted) int {
		return cmp.Or(strings.Compare(a.name, b.name), b.times-a.times, strings.Compare(a.value, b.value))
	})
	often = slices.CompactFunc(often, func(a, b counted) bool { return a.name == b.name })
	own := slices.Clone(t.Own)
	for _, pair := range often {
		slot := c.slot(pair.name, 0)
		if slot < 0 {
			continue
		}
		for len(own) <= slot {
			own = append(own, "")
		}
		own[slot] = pair.value
	}
	return slices.Clip(own)
}

// noteOrders notes which labels have other values on pages of a kind, or in another order. What all pages have in one order needs no slots.
func (c *Catalog) noteOrders(kind uint64, about []labelPair) {
	orders := map[string]uint64{}
	for _, pair := range about {
		orders[pair.name] = (orders[pair.name] ^ maphash.String(seed, pair.value)) * 0x9e3779b97f4a7c15
	}
	for name, order := range orders {
		if _, varies := c.varying[name]; varies || len(c.varying) == MostOwn {
			continue
		}
		key := ordered{kind, name}
		first, noted := c.orders[key]
		switch {
		case !noted && len(c.orders) < mostKinds:
			c.orders[key] = order
		case first != order:
			c.varying[name] = struct{}{}
		default:
		}
	}
}

// severalOwn returns the values of a target that has several of a label, each in the slot that it has by the order of the page.
func (c *Catalog) severalOwn(often []counted, about []labelPair) []string {
	values := map[string]int{} // of each label
	for _, pair := range about {
		values[pair.name]++
	}
	var own []string
	taken := map[string]int{}
	for _, pair := range about {
		if _, varies := c.varying[pair.name]; !varies || values[pair.name] == 1 && !slices.ContainsFunc(often, func(p counted) bool { return p.labelPair == pair }) {
			continue
		}
		if slot := c.slot(pair.name, taken[pair.name]); slot >= 0 {
			taken[pair.name]++
			for len(own) <= slot {
				own = append(own, "")
			}
			own[slot] = pair.value
		}
	}
	return slices.Clip(own)
}

// HasSeveral tells whether the target has values in several slots of a label.
func (c *Catalog) HasSeveral(t *Identity) bool {
	for slot, value := range t.Own {
		if value != "" && c.slots[c.slotNames[slot]][0] != slot {
			return true
		}
	}
	return false
}

// Shares tells whether most lines of a page that have the target's own values were there before the page, or whether the target
// may be among the first of its kind. Lines with higher numbers than `since` came with the page.
func (c *Catalog) Shares(t *Identity, lines []*Line, own []string, several bool, since uint32) bool {
	was := t.Own
	t.Own = own
	have, found := 0, 0
	for _, l := range lines {
		if l.Kind != SeriesLine {
			continue
		}
		e, ok := c.reread.line(l, was)
		if !ok {
			continue
		}
		if template := c.template(t, e); template != nil {
			have++
			if l := c.slotted(t, template, l.Setting); l != nil && l.ID <= since {
				found++
			}
		}
	}
	t.Own = was
	if 4*found >= have {
		return true
	}
	salt := uint64(0)
	if several {
		salt = severalSalt
	}
	return c.isEarly(aboutOf(lines) ^ salt)
}

// AreStrangers tells whether page after page comes that is about the same as the ones before and has no line in common with them.
func (c *Catalog) AreStrangers(lines []*Line) bool {
	kind := aboutOf(lines) ^ strangeSalt
	return !c.isEarly(kind) && c.kinds[kind] == pioneers
}

// What pioneers are counted for, besides slots.
const (
	severalSalt = 0x9fb21c651e98df25
	strangeSalt = 0xd6e8feb86659fd93
)

// isEarly tells whether a page is one of the first of a kind.
func (c *Catalog) isEarly(kind uint64) bool {
	n, ok := c.kinds[kind]
	if n >= pioneers || !ok && len(c.kinds) == mostKinds {
		return false
	}
	c.kinds[kind] = n + 1
	return true
}

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

type labelPair struct{ name, value string }

// counted is how many times a page has a label with a value.
type counted struct {
	labelPair

	times int
}

// counting counts the labels of a page. Where every page has many new lines it is done often, and mostly in vain.
type counting struct {
	at   map[labelPair]int
	seen []counted // in the order of the page
}

// fewCounted is for how many labels memory is kept.
const fewCounted = 1 << 10

// count counts the labels of a page's series, and the series.
func (n *counting) count(c *Catalog, t *Identity, lines []*Line) (series int) {
	if n.at == nil {
		n.at = map[labelPair]int{}
	}
	for _, l := range lines {
		if l.Kind != SeriesLine {
			continue
		}
		series++
		if e, ok := c.reread.line(l, t.Own); ok && e.Labels() <= mostShapedLabels {
			for i := range e.Labels() {
				name, value := e.Label(i)
				if i, ok := n.at[labelPair{string(name), string(value)}]; ok {
					n.seen[i].times++
				} else if len(n.seen) < mostCounted {
					pair := labelPair{string(name), string(value)}
					n.at[pair] = len(n.seen)
					n.seen = append(n.seen, counted{pair, 1})
				}
			}
		}
	}
	return series
}

// clear forgets what was counted.
func (n *counting) clear() {
	if len(n.seen) > fewCounted {
		*n = counting{}
		return
	}
	clear(n.at)
	clear(n.seen)
	n.seen = n.seen[:0]
}

// canBeOwn tells whether a label is no more than an attribute, whatever its value is.
func (c *Catalog) canBeOwn(l labelPair) bool {
	return l.value != "" && len(l.value) <= LongestOwn && strings.IndexByte(l.value, '\\') < 0 && strings.IndexByte(l.name, '\\') < 0 && !c.Rules.IsTooLong(l.value) &&
		!isApart(l.name) && !c.Rules.fixes(l.name) && !strings.HasPrefix(l.name, model.ExportedLabelPrefix) &&
		!slices.ContainsFunc(c.labels, func(own labels.Label) bool { return own.Name == l.name })
}
