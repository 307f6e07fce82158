// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"hash/maphash"
	"slices"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pcommon"
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
	layouts []*layout // of each series of a point; none if no label name can be made of a key
	marked  mark
}

// layout is the labels that the series of a form have, sorted by name, and where their values are.
type layout struct {
	schema *schema
	meta   *meta
	labels []labelRef
	weight int // bytes it may take up in a request, without the values of points
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
	layout  *layout
	values  ids
	sibling *series
	hash    uint32
	weight  uint32 // bytes the labels and metadata may take up in a request
	slot    uint32 // where it is in the open buffer of its column, if it is there; under column.mu
	spread  uint16 // decides the shard, however many there are
	marked  mark
}

func (s *series) link() (**series, uint32) { return &s.sibling, s.hash }

// ref is a label's value: a symbol, or a place in the resource's.
func (s *series) ref(l labelRef) uint32 {
	if l.value&^placeMask == fromPoint {
		return s.values.at(int(l.value & placeMask))
	}
	return l.value
}

func (s *series) equal(o *series) bool {
	return s.layout.schema == o.layout.schema &&
		slices.EqualFunc(s.layout.labels, o.layout.labels, func(a, b labelRef) bool {
			return a.name == b.name && s.ref(a) == o.ref(b)
		})
}

// form finds or makes the form of a new point, and the point's values. The table is locked.
func (e *Encoder) form(f *family, m pcommon.Map, bounds []float64) (*form, ids) {
	plain := true
	for _, v := range m.All() {
		text := v.AsString()
		plain = plain && utf8.ValidString(text)
	}
	values := e.values(m)
	var like *keys
	for _, s := range f.forms {
		if s.keys.same(m) {
			if plain && sameBounds(s.bounds, bounds) {
				return s, values
			}
			like = s.keys
		}
	}
	s := &form{family: f, keys: like, bounds: slices.Clone(bounds)}
	if like == nil {
		s.keys = e.keys(m)
	}
	list, err := e.pointLabels(f, m)
	if err != nil {
		return s, values
	}
	if plain = plain && e.linkAttributes(list, m); !plain {
		for i := range list {
			list[i].attribute = 0
		}
	}
	e.makeLayouts(s, list)
	if plain {
		if len(f.forms) >= maxForms {
			f.forms = slices.Delete(f.forms, 0, 1)
		}
		f.forms = append(f.forms, s)
	}
	return s, values
}

// linkAttributes notes which attribute each label is. It is false if one is made of several.
func (e *Encoder) linkAttributes(list []seriesLabel, m pcommon.Map) bool {
	names := make([]string, 0, m.Len())
	for k := range m.All() {
		name, err := e.labelNamer.Build(k)
		if err != nil || slices.Contains(names, name) {
			return false
		}
		names = append(names, name)
		if i := indexOf(list, name); i >= 0 && list[i].own {
			list[i].attribute = len(names)
		}
	}
	return true
}

// layout fixes a set of labels, in any order.
func (e *Encoder) layout(f *schema, list []seriesLabel, m *meta) *layout {
	slices.SortFunc(list, func(a, b seriesLabel) int { return byName(a.label, b.label) })
	l := &layout{schema: f, meta: m, labels: make([]labelRef, 0, len(list)), weight: 64}
	if m != nil {
		l.weight += len(m.help) + len(m.unit) + len(m.name)
	}
	for _, x := range list {
		ref := labelRef{name: e.symbols.intern(x.name)}
		l.weight += len(x.name) + 16
		switch {
		case x.from > 0:
			ref.value = uint32(x.from-1) | fromResource
		case x.attribute > 0:
			ref.value = uint32(x.attribute-1) | fromPoint
		default:
			ref.value = e.symbols.intern(x.value)
			l.weight += len(x.value)
		}
		l.labels = append(l.labels, ref)
	}
	return l
}

// series finds the series of a layout and values, or makes it of fresh. The table is locked.
func (e *Encoder) series(t *tenant, l *layout, values ids, fresh *series) *series {
	*fresh = series{layout: l, values: values}
	symbols := e.symbols.snapshot()
	text, weight := e.hashed[:0], l.weight // text is what is hashed
	for _, x := range l.labels {
		text = append(append(text, symbols[x.name]...), 0xff)
		if x.value&fromResource == 0 {
			value := symbols[fresh.ref(x)]
			text = append(append(text, value...), 0xff)
			if x.value&fromPoint != 0 {
				weight += len(value)
			}
		}
	}
	e.hashed = text
	fresh.weight = uint32(weight)
	fresh.spread = uint16(xxh3.Hash(text))
	fresh.hash = fold(mix(maphash.Bytes(e.seed, text), l.schema.id) & e.hashMask)
	for o := t.series.first(fresh.hash); o != nil; o = o.sibling {
		if o.hash == fresh.hash && o.equal(fresh) {
			return o
		}
	}
	if e.points < e.cfg.MaxSeries {
		t.series.insert(fresh)
	}
	return fresh
}

// fold takes the better half of a hash.
func fold(h uint64) uint32 { return uint32(h >> 32) }

// ids are symbols, packed into a string because that takes less to refer to than a slice.
type ids string

func (s ids) len() int { return len(s) / 4 }

func (s ids) at(i int) uint32 {
	b := s[4*i : 4*i+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// values keeps the values of m, those other than strings by their text.
func (e *Encoder) values(m pcommon.Map) ids {
	packed := e.symbols.pack(e.hashed[:0], m)
	e.hashed = packed
	return ids(packed)
}
