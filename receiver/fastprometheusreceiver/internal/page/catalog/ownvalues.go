// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

const (
	// OwnPart is the part of a page's series, one in so many, that have a value if it is the target's own.
	OwnPart = 4
	// manyAbout is how many series tell of a thing that is worth slots, where a label has several.
	manyAbout = 8
	// FewFresh is how many new lines of a page are not worth a look.
	FewFresh = 16
)

// OwnValues finds out what pages say of their targets alone, and gives it slots. It belongs to the catalog's lock.
type OwnValues struct {
	slots
	kinds

	catalog  *Catalog
	template template
	counting counting
	renaming renaming
	replaced replaced
}

func newOwnValues(c *Catalog) OwnValues {
	return OwnValues{catalog: c, slots: slots{byLabel: map[string][]int{}}, kinds: newKinds()}
}

// Of returns which values are the target's own once a page has many new lines: of each label the one that many lines have or,
// where `several`, all that tell of a thing of which there are several.
func (o *OwnValues) Of(t *Identity, lines []*Line, several bool) []string {
	series := o.counting.count(&o.catalog.reread, t, lines)
	defer o.counting.clear()
	var often []counted
	var about []labelPair
	for _, p := range o.counting.seen {
		if OwnPart*p.times > series && o.canBe(p.labelPair) {
			often = append(often, p)
		}
		if p.times >= manyAbout && o.canBe(p.labelPair) {
			about = append(about, p.labelPair)
		}
	}
	o.noteOrders(aboutOf(lines), about)
	if several {
		return o.several(often, about)
	}
	slices.SortStableFunc(often, func(a, b counted) int {
		return cmp.Or(strings.Compare(a.name, b.name), b.times-a.times, strings.Compare(a.value, b.value))
	})
	often = slices.CompactFunc(often, func(a, b counted) bool { return a.name == b.name })
	own := slices.Clone(t.Own)
	for _, pair := range often {
		slot := o.nth(pair.name, 0)
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

// several returns the values of a target that has several of a label, each in the slot that it has by the order of the page.
func (o *OwnValues) several(often []counted, about []labelPair) []string {
	values := map[string]int{} // of each label
	for _, pair := range about {
		values[pair.name]++
	}
	var own []string
	taken := map[string]int{}
	for _, pair := range about {
		if !o.varies(pair.name) || values[pair.name] == 1 && !slices.ContainsFunc(often, func(p counted) bool { return p.labelPair == pair }) {
			continue
		}
		if slot := o.nth(pair.name, taken[pair.name]); slot >= 0 {
			taken[pair.name]++
			for len(own) <= slot {
				own = append(own, "")
			}
			own[slot] = pair.value
		}
	}
	return slices.Clip(own)
}

// Shares tells whether most lines of a page that have the target's own values were there before the page, or whether the target
// may be among the first of its kind. Lines with higher numbers than `since` came with the page.
func (o *OwnValues) Shares(t *Identity, lines []*Line, own []string, several bool, since uint32) bool {
	was := t.Own
	t.Own = own
	have, found, old := 0, 0, 0
	for _, l := range lines {
		if l.Kind != SeriesLine {
			continue
		}
		e, ok := o.catalog.reread.line(l, was)
		if !ok {
			continue
		}
		if template := o.template.write(&o.slots, t, e); template != nil {
			if have++; l.ID <= since {
				old++ // others have said the same
			}
			if l := o.catalog.slotted(t, template, l.Setting); l != nil && l.ID <= since {
				found++
			}
		}
	}
	t.Own = was
	if 4*found >= have {
		return true
	}
	if several {
		return o.isEarly(aboutOf(lines) ^ severalSalt)
	}
	return 4*old <= have && o.isSecond(t, aboutOf(lines))
}

// canBe tells whether a label is no more than an attribute, whatever its value is.
func (o *OwnValues) canBe(l labelPair) bool {
	return l.value != "" && len(l.value) <= LongestOwn && strings.IndexByte(l.value, '\\') < 0 && strings.IndexByte(l.name, '\\') < 0 && !o.catalog.Rules.IsTooLong(l.value) &&
		!isApart(l.name) && !o.catalog.Rules.fixes(l.name) && !strings.HasPrefix(l.name, model.ExportedLabelPrefix) &&
		!slices.ContainsFunc(o.catalog.labels, func(own labels.Label) bool { return own.Name == l.name })
}
