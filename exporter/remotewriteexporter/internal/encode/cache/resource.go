// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

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

// Schema is the sorted names of the labels that a resource contributes. Series are made for a schema, with a place for
// each of its values.
type Schema struct {
	Names  []string
	id     uint64
	marked Mark
	// With rules: what becomes of each label, and the schema of those that keep a place.
	fates []labelFate
	left  *Schema
	// For each place of left, the value in it if rules read it.
	read []string
}

// labelFate is what rules do to a label that a resource contributes.
type labelFate struct {
	kind  fateKind
	place int    // index among labels that keep a place
	value string // set if rules need it
}

type fateKind uint8

const (
	fatePlace  fateKind = iota // rules do not change it, though they may read it
	fateValue                  // rules may change it: the value becomes part of the series
	fateRemove                 // rules remove it whatever its value
)

// places is the schema that the values of resources belong to.
func (s *Schema) places() *Schema {
	if s.left != nil {
		return s.left
	}
	return s
}

// label returns the label at a place, for a layout.
func (s *Schema) label(i int) seriesLabel {
	l := seriesLabel{Label: names.Label{Name: s.Names[i]}}
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

// ResourceLabels are the values for a schema. Resources that differ in nothing else share them, and so their series.
type ResourceLabels struct {
	schema  *Schema
	Values  []uint32 // symbols
	Weight  int      // the most bytes that they take in a request
	Order   uint32   // order of creation; sorts a column
	sibling *ResourceLabels
	marked  Mark
}

// Resource is a resource as it arrives.
type Resource struct {
	attributes attributes
	Schema     *Schema // of its series
	Labels     *ResourceLabels
	Info       *Series // target_info, or nil
	InfoSent   sentAt
	First      atomic.Pointer[Family] // the metric that came first last time
	sibling    *Resource
	seen       atomic.Uint32
}

// Resource returns the entry of r, which it makes if needed.
func (c *Cache) Resource(t *Tenant, r pcommon.Resource) *Resource {
	m := r.Attributes()
	h := c.HashMap(0, m) & c.HashMask
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.Symbols.Snapshot()
	for known := t.resources[h]; known != nil; known = known.sibling {
		if known.attributes.keys.Match(m, known.attributes.values, text) {
			c.Ages.see(&known.seen)
			return known
		}
	}
	known := &Resource{attributes: c.remember(m)}
	known.Schema, known.Labels = c.resourceLabels(t, m)
	if c.cfg.TargetInfo {
		known.Info = c.targetInfo(t, m)
	}
	c.Ages.see(&known.seen)
	if !c.room.takeResource() {
		return known
	}
	known.sibling = t.resources[h]
	t.resources[h] = known
	return known
}

func (c *Cache) resourceLabels(t *Tenant, m pcommon.Map) (*Schema, *ResourceLabels) {
	list, err := c.names.Attributes(m, func(key string) bool {
		return !attribute.MatchAny(c.cfg.PromoteResourceAttributes, key) || attribute.MatchAny(c.cfg.ExcludeResourceAttributes, key)
	})
	if err != nil {
		c.losses.Add(loss.Label, "resource attributes", 1)
	}
	list = names.Identify(list, m)
	slices.SortFunc(list, names.ByName)
	if c.rules == nil {
		own := c.labelSet(t, list)
		return own.schema, own
	}
	fates := make([]labelFate, 0, len(list))
	var left []names.Label
	alone := true
	for _, l := range list {
		f := labelFate{place: len(left)}
		read, remove := c.rules.Read(l.Name), c.rules.Remove(l.Name)
		switch {
		case c.rules.Set(l.Name), read && remove:
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
	own := c.labelSet(t, left)
	if alone {
		return own.schema, own
	}
	return c.schema(t, list, fates, own.schema), own
}

// labelSet returns the labels that a resource contributes, which it makes if needed. The table must be locked.
func (c *Cache) labelSet(t *Tenant, list []names.Label) *ResourceLabels {
	if len(list) == 0 {
		return t.None
	}
	made := &ResourceLabels{schema: c.schema(t, list, nil, nil), Order: c.resourceID + 1}
	h := made.schema.id
	for _, l := range list {
		made.Values = append(made.Values, c.Symbols.Intern(l.Value))
		made.Weight += len(l.Value) + 8
		h = c.hashString(h, l.Value)
	}
	h &= c.HashMask
	for o := t.labelSets[h]; o != nil; o = o.sibling {
		if o.schema == made.schema && slices.Equal(o.Values, made.Values) {
			return o
		}
	}
	c.resourceID++
	if c.room.resources < c.room.most && !c.room.memory.isFull() {
		made.sibling = t.labelSets[h]
		t.labelSets[h] = made
	}
	return made
}

// schema returns the schema of these labels, and of what rules make of them, which it makes if needed. The table must
// be locked.
func (c *Cache) schema(t *Tenant, list []names.Label, fates []labelFate, left *Schema) *Schema {
	key := []byte{0}
	if fates != nil {
		key[0] = 1 // different kinds of keys must differ
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
	c.familyIDs++
	s := &Schema{id: c.familyIDs, fates: fates, left: left}
	for _, l := range list {
		s.Names = append(s.Names, c.keep(l.Name))
	}
	for i := range fates {
		f := &fates[i]
		f.value = c.keep(f.value)
		if f.kind == fatePlace {
			s.read = append(s.read, f.value)
		}
	}
	t.schemas[string(key)] = s
	return s
}

// targetInfo makes the series of a resource's other attributes, if it has a job or an instance.
func (c *Cache) targetInfo(t *Tenant, m pcommon.Map) *Series {
	others := false
	list, err := c.names.Attributes(m, func(key string) bool {
		others = others || !names.Identifies(key)
		return names.Identifies(key)
	})
	if err != nil {
		c.losses.Add(loss.Label, otlptranslator.TargetInfoMetricName, 1)
		return nil
	}
	job, instance := names.Identity(m)
	if job == "" && instance == "" {
		return nil
	}
	if !others {
		for k := range m.All() { // empty values were left out above
			others = others || !names.Identifies(k)
		}
		if !others {
			return nil
		}
	}
	list = names.Identify(list, m)
	own := make([]seriesLabel, 0, len(list)+len(c.names.External)+1)
	for _, l := range list {
		own = append(own, seriesLabel{Label: l})
	}
	for _, l := range c.names.External {
		if indexOf(own, l.Name) < 0 {
			own = append(own, seriesLabel{Label: l})
		}
	}
	name := c.names.TargetInfo()
	for _, l := range append(c.names.TypeAndUnit(promwrite.Gauge, ""), names.Label{Name: names.NameLabel, Value: name}) {
		own = set(own, seriesLabel{Label: l})
	}
	l := c.addLayout(t, c.layout(t.None.schema, nil, own, c.meta(t, metaKey{promwrite.Gauge, name, "Target metadata", ""})), false)
	if c.rules == nil {
		return c.Series.One(c.seriesOf(t, l, 0))
	}
	n, out := c.applyRules(t, t.None.schema, l, 0)
	if out != nil {
		return &out.series
	}
	return c.Series.One(n)
}
