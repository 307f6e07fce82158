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
	// OwnPart is the part of a page's series that must have a value for it to be the target's own: at least one in this
	// many.
	OwnPart = 4
	// manyAbout is how many series must be about a thing for it to get slots, where a label has several.
	manyAbout = 8
	// FewFresh is the number of new lines up to which a page is not searched.
	FewFresh = 16
)

// OwnValues finds the values that only one target's page has, and gives them slots. It is guarded by the catalog's
// lock.
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

// Of returns which values are the target's own once a page has many new lines: for each label, the value that many
// lines have or, if several, all values of things of which there are several.
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

// several returns the values of a target that has several for one label, each in the slot given by the order of the
// page.
func (o *OwnValues) several(often []counted, about []labelPair) []string {
	values := map[string]int{} // count by label
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

// Shares reports whether most lines of a page that have the target's own values were known before the page, or whether
// the target may be one of the first of its kind. Lines with IDs above since came with the page.
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
				old++ // other targets have the same line
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

// canBe reports whether a label is only an attribute, whatever its value is.
func (o *OwnValues) canBe(l labelPair) bool {
	return l.value != "" && len(l.value) <= LongestOwn && strings.IndexByte(l.value, '\\') < 0 && strings.IndexByte(l.name, '\\') < 0 && !o.catalog.Rules.IsTooLong(l.value) &&
		!isApart(l.name) && !o.catalog.Rules.fixes(l.name) && !strings.HasPrefix(l.name, model.ExportedLabelPrefix) &&
		!slices.ContainsFunc(o.catalog.labels, func(own labels.Label) bool { return own.Name == l.name })
}
