// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// schema is which labels a resource contributes: their sorted names. Series are made for a schema, with a place
// for each of its values.
type schema struct {
	names  []string
	id     uint64
	marked mark
	// Where there are rules, what becomes of each label, and the schema of those that keep a place.
	fates []labelFate
	left  *schema
	// For each place of left, the value in it if rules read that.
	read []string
}

// labelFate is what rules make of a label that a resource contributes.
type labelFate struct {
	kind  fateKind
	place int    // among those that keep one
	value string // if rules need it
}

type fateKind uint8

const (
	fatePlace  fateKind = iota // rules leave it as it is, though they may read it
	fateValue                  // rules may change it: the value is that of the series
	fateRemove                 // rules remove it whatever its value
)

// places is the schema that the values of resources are for.
func (s *schema) places() *schema {
	if s.left != nil {
		return s.left
	}
	return s
}

// label is the one in a place, for a layout.
func (s *schema) label(i int) seriesLabel {
	l := seriesLabel{Label: names.Label{Name: s.names[i]}}
	if s.fates == nil {
		l.from = i + 1
		return l
	}
	switch f := &s.fates[i]; f.kind {
	case fateValue:
		l.Value = f.value
	case fateRemove:
		l.from = removed
	default:
		l.from = f.place + 1
	}
	return l
}

// resourceLabels are the values for a schema. Resources that differ in nothing else share them, so that their
// series are the same.
type resourceLabels struct {
	schema  *schema
	values  []uint32 // symbols
	weight  int      // bytes they may take up in a request
	order   uint32   // when it was made; sorts a column
	sibling *resourceLabels
	marked  mark
}

// resource is a resource as it arrives.
type resource struct {
	attributes attributes
	schema     *schema // of its series
	labels     *resourceLabels
	info       *series // target_info, or nil
	infoSent   atomic.Int64
	first      atomic.Pointer[family] // the first metric last time
	sibling    *resource
	seen       atomic.Uint32
}

// resource finds or makes r.
func (e *Encoder) resource(t *tenant, r pcommon.Resource) *resource {
	m := r.Attributes()
	h := e.hashMap(0, m) & e.hashMask
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	text := e.symbols.Snapshot()
	for c := t.resources[h]; c != nil; c = c.sibling {
		if c.attributes.keys.match(m, c.attributes.values, text) {
			e.see(&c.seen)
			return c
		}
	}
	c := &resource{attributes: e.remember(m)}
	c.schema, c.labels = e.resourceLabels(t, m)
	if e.cfg.TargetInfo {
		c.info = e.targetInfo(t, m)
	}
	e.see(&c.seen)
	if e.resources >= e.cfg.MaxSeries {
		e.overflow.Add(1)
		return c
	}
	e.resources++
	c.sibling = t.resources[h]
	t.resources[h] = c
	return c
}

func (e *Encoder) resourceLabels(t *tenant, m pcommon.Map) (*schema, *resourceLabels) {
	list, err := e.names.Attributes(m, func(key string) bool {
		return !attribute.MatchAny(e.cfg.PromoteResourceAttributes, key) || attribute.MatchAny(e.cfg.ExcludeResourceAttributes, key)
	})
	if err != nil {
		e.losses.Add(loss.Label, "resource attributes", 1)
	}
	list = names.Identify(list, m)
	slices.SortFunc(list, names.ByName)
	if e.rules == nil {
		c := e.labelSet(t, list)
		return c.schema, c
	}
	fates := make([]labelFate, 0, len(list))
	var left []names.Label
	alone := true
	for _, l := range list {
		f := labelFate{place: len(left)}
		read, remove := e.rules.Read(l.Name), e.rules.Remove(l.Name)
		switch {
		case e.rules.Set(l.Name), read && remove:
			f.kind = fateValue
		case remove:
			f.kind = fateRemove
		default:
			left = append(left, l)
		}
		if read || f.kind == fateValue {
			f.value = strings.ToValidUTF8(l.Value, "\uFFFD")
		}
		alone = alone && f.kind == fatePlace && !read
		fates = append(fates, f)
	}
	c := e.labelSet(t, left)
	if alone {
		return c.schema, c
	}
	return e.schema(t, list, fates, c.schema), c
}

// labelSet finds or makes the labels that a resource contributes. The table is locked.
func (e *Encoder) labelSet(t *tenant, list []names.Label) *resourceLabels {
	if len(list) == 0 {
		return t.none
	}
	c := &resourceLabels{schema: e.schema(t, list, nil, nil), order: e.resourceID + 1}
	h := c.schema.id
	for _, l := range list {
		c.values = append(c.values, e.symbols.Intern(l.Value))
		c.weight += len(l.Value) + 8
		h = e.hashString(h, l.Value)
	}
	h &= e.hashMask
	for o := t.labelSets[h]; o != nil; o = o.sibling {
		if o.schema == c.schema && slices.Equal(o.values, c.values) {
			return o
		}
	}
	e.resourceID++
	if e.resources < e.cfg.MaxSeries {
		c.sibling = t.labelSets[h]
		t.labelSets[h] = c
	}
	return c
}

// schema finds or makes that of some labels, and of what rules make of them. The table is locked.
func (e *Encoder) schema(t *tenant, list []names.Label, fates []labelFate, left *schema) *schema {
	key := []byte{0}
	if fates != nil {
		key[0] = 1 // so that no two kinds of keys are the same
	}
	for i, l := range list {
		key = store.AppendText(key, l.Name)
		if fates != nil {
			key = store.AppendText(append(key, byte(fates[i].kind)), fates[i].value)
		}
	}
	if s := t.schemas[string(key)]; s != nil {
		return s
	}
	e.familyIDs++
	s := &schema{id: e.familyIDs, fates: fates, left: left}
	for _, l := range list {
		s.names = append(s.names, e.keep(l.Name))
	}
	for i := range fates {
		f := &fates[i]
		f.value = e.keep(f.value)
		if f.kind == fatePlace {
			s.read = append(s.read, f.value)
		}
	}
	t.schemas[string(key)] = s
	return s
}

// targetInfo makes the series that lists a resource's other attributes, if it has an identity to list them for.
func (e *Encoder) targetInfo(t *tenant, m pcommon.Map) *series {
	others := false
	list, err := e.names.Attributes(m, func(key string) bool {
		others = others || !names.Identifies(key)
		return names.Identifies(key)
	})
	if err != nil {
		e.losses.Add(loss.Label, otlptranslator.TargetInfoMetricName, 1)
		return nil
	}
	job, instance := names.Identity(m)
	if job == "" && instance == "" {
		return nil
	}
	if !others {
		for k := range m.All() { // those of empty values were not asked about
			others = others || !names.Identifies(k)
		}
		if !others {
			return nil
		}
	}
	list = names.Identify(list, m)
	own := make([]seriesLabel, 0, len(list)+len(e.names.External)+1)
	for _, l := range list {
		own = append(own, seriesLabel{Label: l})
	}
	for _, l := range e.names.External {
		if indexOf(own, l.Name) < 0 {
			own = append(own, seriesLabel{Label: l})
		}
	}
	name := e.names.TargetInfo()
	for _, l := range append(e.names.TypeAndUnit(promwrite.Gauge, ""), names.Label{Name: names.NameLabel, Value: name}) {
		own = set(own, seriesLabel{Label: l})
	}
	l := e.layout(t, t.none.schema, nil, own, e.meta(t, metaKey{promwrite.Gauge, name, "Target metadata", ""}))
	if e.rules == nil {
		return e.series.One(e.seriesOf(t, l, 0))
	}
	n, out := e.ruled(t, t.none.schema, l, 0)
	if out != nil {
		return &out.series
	}
	return e.series.One(n)
}

// due says whether what was last sent at a time is to be sent again at another, and takes note that it will be.
// A time a little in the past is late, not due; one far in the past corrects a clock that was wrong.
func due(sent *atomic.Int64, time, interval int64) bool {
	was := sent.Load()
	if was != 0 && time-was < interval && was-time < 10*interval+1 {
		return false
	}
	return sent.CompareAndSwap(was, time)
}
