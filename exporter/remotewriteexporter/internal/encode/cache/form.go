// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/histogram"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// maxForms is how many forms a family remembers for sharing.
const maxForms = 16

// Form is what the points of a metric with the same keys and bounds have in common. Labels that equal an attribute are
// taken from each point's values; a point with other labels has a form of its own.
type Form struct {
	Family  *Family
	Keys    *keys
	Bounds  []float64 // of its buckets or quantiles
	single  bool      // the first layout is that of Point.One
	shared  bool      // other forms may use its layouts
	layouts []uint32  // of each series of a point; empty if a key cannot be a label
	marked  Mark
}

// form returns the form of a new point, which it makes if needed. The table must be locked.
func (c *Cache) form(t *Tenant, f *Family, m pcommon.Map, bounds []float64) uint32 {
	plain := true
	for _, v := range m.All() {
		text := attribute.Text(v)
		plain = plain && utf8.ValidString(text)
	}
	var like *keys
	for _, n := range f.forms {
		if s := c.Forms.One(n); s.Keys.same(m) {
			if plain && histogram.SameBounds(s.Bounds, bounds) {
				return n
			}
			like = s.Keys
		}
	}
	n := c.Forms.Add()
	s := c.Forms.One(n)
	*s = Form{Family: f, Keys: like, Bounds: slices.Clone(bounds)}
	if like == nil {
		s.Keys = c.pointKeys(m)
	} else if plain { // their bounds differ, but some may be the same
		s.shared = true
		c.shareLayouts(t, f)
	}
	list, err := c.pointLabels(f, m)
	if err != nil {
		return n
	}
	if plain = plain && c.linkAttributes(list, m); !plain {
		for i := range list {
			list[i].attribute = 0
		}
	}
	c.makeLayouts(t, s, list)
	if plain {
		if len(f.forms) >= maxForms {
			f.forms = slices.Delete(f.forms, 0, 1)
		}
		f.forms = append(f.forms, n)
	}
	return n
}

// shareLayouts has further forms of a family find the layouts of those that it remembers. The table must be locked.
func (c *Cache) shareLayouts(t *Tenant, f *Family) {
	for _, n := range f.forms {
		s := c.Forms.One(n)
		if s.shared {
			continue
		}
		s.shared = true
		for _, n := range s.layouts {
			if c.rules == nil { // else they can be found already
				t.layouts.Insert(c.layoutHash(c.Layouts.One(n)), n)
			}
		}
	}
}

// linkAttributes finds the attribute that each label equals. It returns false if a label is made of several.
func (c *Cache) linkAttributes(list []seriesLabel, m pcommon.Map) bool {
	labels := labelSet{list, names.PlacesFor(len(list))}
	if labels.at != nil {
		for i, l := range list {
			labels.at[l.Name] = i
		}
	}
	n := 0
	for k := range m.All() {
		name, err := c.names.Label(k)
		if err != nil {
			return false
		}
		n++
		if i := labels.find(name); i >= 0 && list[i].own {
			if list[i].attribute > 0 {
				return false
			}
			list[i].attribute = n
		}
	}
	return true
}
