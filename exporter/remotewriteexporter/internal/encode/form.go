// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"hash/maphash"
	"slices"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/histogram"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// maxForms is how many forms a family remembers to share.
const maxForms = 16

// form is what the points of a metric have in common that have the same keys and bounds. Labels that are
// attributes as they came are taken from each point's values; a point with others has a form of its own.
type form struct {
	family  *family
	keys    *keys
	bounds  []float64 // of its buckets or quantiles
	single  bool      // the first layout is that of point.one
	layouts []uint32  // of each series of a point; none if no label name can be made of a key
	marked  mark
}

// layout is the labels that the series of a form have, sorted by name, and where their values are.
type layout struct {
	schema *schema
	meta   *meta
	labels []labelRef
	keys   *keys // of the points; nil if there are none
	weight int   // bytes it may take up in a request, without the values of points
	marked mark
}

// labelRef is the symbol of a name, and the symbol of a value or a place to look for it.
type labelRef struct {
	name, value uint32
}

// Where a value is, if it is no symbol itself.
const (
	fromResource = 1 << 31 // in resourceLabels.values
	fromPoint    = 1 << 30 // in series.values
	placeMask    = fromPoint - 1
)

// series is a set of labels, less the values that the resource contributes.
type series struct {
	layout uint32
	values uint32 // the point's, in those of its layout's keys
	weight uint32 // bytes the labels and metadata may take up in a request
	slot   uint32 // where it is in the open buffer of its column, if it is there; under column.mu
	spread uint16 // decides the shard, however many there are
	marked mark
}

// row is a series with what it refers to at hand.
type row struct {
	series *series
	layout *layout
	values ids
}

func (e *Encoder) row(s *series) row {
	r := row{series: s, layout: e.layouts.One(s.layout)}
	if s.values != 0 {
		r.values = r.layout.keys.valuesOf(s.values)
	}
	return r
}

// ref is a label's value: a symbol, or a place in the resource's.
func (r *row) ref(l labelRef) uint32 {
	if l.value&^placeMask == fromPoint {
		return r.values[l.value&placeMask]
	}
	return l.value
}

func (r *row) equal(o *row) bool {
	return r.layout.schema == o.layout.schema &&
		slices.EqualFunc(r.layout.labels, o.layout.labels, func(a, b labelRef) bool {
			return a.name == b.name && r.ref(a) == o.ref(b)
		})
}

// form finds or makes the form of a new point. The table is locked.
func (e *Encoder) form(t *tenant, f *family, m pcommon.Map, bounds []float64) uint32 {
	plain := true
	for _, v := range m.All() {
		text := attribute.Text(v)
		plain = plain && utf8.ValidString(text)
	}
	var like *keys
	for _, n := range f.forms {
		if s := e.forms.One(n); s.keys.same(m) {
			if plain && histogram.SameBounds(s.bounds, bounds) {
				return n
			}
			like = s.keys
		}
	}
	n := e.forms.Add()
	s := e.forms.One(n)
	*s = form{family: f, keys: like, bounds: slices.Clone(bounds)}
	if like == nil {
		s.keys = e.pointKeys(m)
	}
	list, err := e.pointLabels(f, m)
	if err != nil {
		return n
	}
	if plain = plain && e.linkAttributes(list, m); !plain {
		for i := range list {
			list[i].attribute = 0
		}
	}
	e.makeLayouts(t, s, list)
	if plain {
		if len(f.forms) >= maxForms {
			f.forms = slices.Delete(f.forms, 0, 1)
		}
		f.forms = append(f.forms, n)
	}
	return n
}

// linkAttributes notes which attribute each label is. It is false if one is made of several.
func (e *Encoder) linkAttributes(list []seriesLabel, m pcommon.Map) bool {
	labels := labelSet{list, names.PlacesFor(len(list))}
	if labels.at != nil {
		for i, l := range list {
			labels.at[l.Name] = i
		}
	}
	n := 0
	for k := range m.All() {
		name, err := e.names.Label(k)
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

// layout fixes a set of labels, in any order. The table is locked.
func (e *Encoder) layout(t *tenant, f *schema, k *keys, list []seriesLabel, m *meta) uint32 {
	slices.SortFunc(list, func(a, b seriesLabel) int { return names.ByName(a.Label, b.Label) })
	l := layout{schema: f.places(), meta: m, keys: k, labels: make([]labelRef, 0, len(list)), weight: m.weight()}
	for _, x := range list {
		ref := labelRef{name: e.symbols.Intern(x.Name)}
		l.weight += len(x.Name) + 16
		switch {
		case x.from > 0:
			ref.value = uint32(x.from-1) | fromResource
		case x.attribute > 0:
			ref.value = uint32(x.attribute-1) | fromPoint
		default:
			ref.value = e.symbols.Intern(x.Value)
			l.weight += len(x.Value)
		}
		l.labels = append(l.labels, ref)
	}
	if e.rules != nil { // many schemas may have the same
		if k != nil {
			l.keys = e.width(len(k.names))
		}
		return e.sharedLayout(t, l)
	}
	n := e.layouts.Add()
	*e.layouts.One(n) = l
	return n
}

// seriesOf finds or makes the series of a layout and values. The table is locked.
func (e *Encoder) seriesOf(t *tenant, layout, values uint32) uint32 {
	made := series{layout: layout, values: values}
	r := e.row(&made)
	symbols := e.symbols.Snapshot()
	text, weight := e.hashed[:0], r.layout.weight // text is what is hashed
	for _, x := range r.layout.labels {
		text = append(append(text, symbols[x.name]...), 0xff)
		if x.value&fromResource == 0 {
			value := symbols[r.ref(x)]
			text = append(append(text, value...), 0xff)
			if x.value&fromPoint != 0 {
				weight += len(value)
			}
		}
	}
	e.hashed = text
	made.weight = uint32(weight)
	made.spread = uint16(xxh3.Hash(text))
	hash := store.Fold(store.Mix(maphash.Bytes(e.seed, text), r.layout.schema.id) & e.hashMask)
	for n := range t.series.Of(hash) {
		if o := e.row(e.series.One(n)); o.equal(&r) {
			return n
		}
	}
	n := e.series.Add()
	*e.series.One(n) = made
	if e.listed < e.cfg.MaxSeries {
		t.series.Insert(hash, n)
	}
	return n
}

// ids are symbols.
type ids []uint32
