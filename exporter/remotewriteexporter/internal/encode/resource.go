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
)

const (
	serviceName      = "service.name"
	serviceNamespace = "service.namespace"
	serviceInstance  = "service.instance.id"
)

// schema is which labels a resource contributes: their sorted names. Series are made for a schema, with a place
// for each of its values.
type schema struct {
	names  []string
	id     uint64
	marked mark
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
	text := e.symbols.snapshot()
	for c := t.resources[h]; c != nil; c = c.sibling {
		if c.attributes.keys.match(m, c.attributes.values, text) {
			e.see(&c.seen)
			return c
		}
	}
	c := &resource{attributes: e.remember(m), labels: e.resourceLabels(t, m)}
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

// identity is job and instance of a resource; either may be empty.
func identity(m pcommon.Map) (job, instance string) {
	text := func(key string) string {
		if v, ok := m.Get(key); ok {
			return PlainText(v)
		}
		return ""
	}
	if job = text(serviceName); job != "" {
		if namespace := text(serviceNamespace); namespace != "" {
			job = namespace + "/" + job
		}
	}
	return job, text(serviceInstance)
}

func (e *Encoder) resourceLabels(t *tenant, m pcommon.Map) *resourceLabels {
	list, err := e.attributeLabels(m, func(key string) bool {
		return !globAny(e.cfg.PromoteResourceAttributes, key) || globAny(e.cfg.ExcludeResourceAttributes, key)
	})
	if err != nil {
		e.dropped(ReasonLabel, "resource attributes", 1)
	}
	list = identify(list, m)
	if len(list) == 0 {
		return t.none
	}
	slices.SortFunc(list, byName)
	c := &resourceLabels{schema: e.schema(t, list), order: e.resourceID + 1}
	h := c.schema.id
	for _, l := range list {
		c.values = append(c.values, e.symbols.intern(l.value))
		c.weight += len(l.value) + 8
		h = e.hashString(h, l.value)
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

// identify sets job and instance over what attributes made of these names.
func identify(list []label, m pcommon.Map) []label {
	job, instance := identity(m)
	for _, l := range []label{{jobLabel, job}, {instanceLabel, instance}} {
		if l.value == "" {
			continue
		}
		list = append(slices.DeleteFunc(list, func(o label) bool { return o.name == l.name }), l)
	}
	return list
}

func (e *Encoder) schema(t *tenant, list []label) *schema {
	var key strings.Builder
	for _, l := range list {
		key.WriteString(l.name)
		key.WriteByte(0xff)
	}
	if s := t.schemas[key.String()]; s != nil {
		return s
	}
	e.familyIDs++
	s := &schema{id: e.familyIDs}
	for _, l := range list {
		s.names = append(s.names, e.keep(l.name))
	}
	t.schemas[key.String()] = s
	return s
}

// targetInfo makes the series that lists a resource's other attributes, if it has an identity to list them for.
func (e *Encoder) targetInfo(t *tenant, m pcommon.Map) *series {
	others := false
	list, err := e.attributeLabels(m, func(key string) bool {
		identifying := key == serviceName || key == serviceNamespace || key == serviceInstance
		others = others || !identifying
		return identifying
	})
	if err != nil {
		e.dropped(ReasonLabel, otlptranslator.TargetInfoMetricName, 1)
		return nil
	}
	job, instance := identity(m)
	if job == "" && instance == "" {
		return nil
	}
	if !others {
		for k := range m.All() { // those of empty values were not asked about
			others = others || k != serviceName && k != serviceNamespace && k != serviceInstance
		}
		if !others {
			return nil
		}
	}
	list = identify(list, m)
	own := make([]seriesLabel, 0, len(list)+len(e.external)+1)
	for _, l := range list {
		own = append(own, seriesLabel{label: l})
	}
	for _, l := range e.external {
		if indexOf(own, l.name) < 0 {
			own = append(own, seriesLabel{label: l})
		}
	}
	name := otlptranslator.TargetInfoMetricName
	if e.cfg.Namespace != "" {
		name = e.cfg.Namespace + "_" + name
		if e.cfg.Strategy.ShouldEscape() {
			name = legacyName(name)
		}
	}
	for _, l := range append(e.typeAndUnit(promwrite.Gauge, ""), label{nameLabel, name}) {
		own = set(own, seriesLabel{label: l})
	}
	l := e.layout(t.none.schema, nil, own, e.meta(t, metaKey{promwrite.Gauge, name, "Target metadata", ""}))
	return e.series.one(e.seriesOf(t, l, 0))
}

// legacyName replaces what Prometheus did not always allow in a name.
func legacyName(name string) string {
	return strings.Map(func(r rune) rune {
		if validNameRune(r) {
			return r
		}
		return '_'
	}, name)
}

func validNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == ':'
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
