// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strconv"
	"strings"

	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"github.com/prometheus/prometheus/model/labels"
)

// metrics are the metrics that lines belong to, each once: names, their bases, and the resources and scopes that they
// are in.
type metrics struct {
	names     table[Name, *Name]
	bases     table[base, *base]
	families  map[familyID]*Family // other than the first of a base
	resources map[[2]string]*Resource
	scopes    map[string]*Scope
	lastID    uint32 // of the last family
	held      int64  // in bytes; an estimate
}

type familyID struct {
	base     *base
	resource *Resource
	scope    *Scope
}

func newMetrics() metrics {
	return metrics{families: map[familyID]*Family{}, resources: map[[2]string]*Resource{}, scopes: map[string]*Scope{}}
}

func (m *metrics) name(final, exposed string, cond *Condition) *Name {
	asked := Name{Final: final, exposed: exposed, Cond: cond}
	hash := asked.hash()
	n := m.names.find(hash, func(n *Name) bool { return n.Final == final && n.exposed == exposed && n.Cond == cond })
	if n == nil {
		n = &Name{Final: strings.Clone(final), Cond: cond}
		n.exposed = n.Final
		if exposed != final {
			n.exposed = strings.Clone(exposed)
		}
		m.held += n.bytes()
		m.names.insert(n, hash)
	}
	return n
}

// base returns the known base that equals like, or adds it.
func (m *metrics) base(like base) *base {
	hash := like.hash()
	b := m.bases.find(hash, like.equals)
	if b == nil {
		b = new(base)
		*b = like
		m.bases.insert(b, hash)
		m.held += BaseBytes
	}
	return b
}

func (m *metrics) resource(job, instance string) *Resource {
	r := m.resources[[2]string{job, instance}]
	if r == nil {
		r = &Resource{job: strings.Clone(job), instance: strings.Clone(instance)}
		m.resources[[2]string{r.job, r.instance}] = r
		m.held += r.bytes()
	}
	return r
}

// scope returns the scope that labels name, or else the default one of the given version.
func (m *metrics) scope(set labels.Labels, version string) *Scope {
	isDefault := true
	set.Range(func(l labels.Label) { isDefault = isDefault && !strings.HasPrefix(l.Name, scopePrefix) })
	if kept := m.scopes[""]; isDefault && kept != nil {
		return kept
	}
	s := Scope{isDefault: isDefault}
	var key []byte
	set.Range(func(l labels.Label) {
		switch {
		case !strings.HasPrefix(l.Name, scopePrefix):
			return
		case l.Name == translator.ScopeNameLabelKey:
			s.Name = l.Value
		case l.Name == translator.ScopeVersionLabelKey:
			s.Version = l.Value
		case l.Name == translator.ScopeSchemaURLLabelKey:
			s.Schema = l.Value
		default:
			s.Attributes = append(s.Attributes, labels.Label{Name: strings.Clone(l.Name[len(scopePrefix):]), Value: strings.Clone(l.Value)})
		}
		key = append(append(key, strconv.Quote(l.Name)...), strconv.Quote(l.Value)...) // AppendQuote would first copy what is in key
	})
	k := string(key)
	if s.isDefault {
		s.Name, s.Version = DefaultScope, version
	}
	kept := m.scopes[k]
	if kept == nil {
		s.Name, s.Version, s.Schema = strings.Clone(s.Name), strings.Clone(s.Version), strings.Clone(s.Schema)
		kept = &s
		m.scopes[k] = kept
		m.held += s.bytes(len(k))
	}
	return kept
}

// DefaultScope is the scope of the stock receiver, which dashboards and rules may name.
const DefaultScope = "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"

func (m *metrics) family(b *base, r *Resource, s *Scope) *Family {
	if f := b.family; f != nil && f.Resource == r && f.Scope == s {
		return f
	}
	k := familyID{b, r, s}
	f := m.families[k]
	if f == nil {
		m.lastID++
		f = &Family{ID: m.lastID, Base: b, Resource: r, Scope: s}
		m.held += FamilyBytes
		if b.family == nil {
			b.family = f
		} else {
			m.families[k] = f
			m.held += FamilyBytes
		}
	}
	return f
}

// sweep forgets what has no mark.
func (m *metrics) sweep(mark uint32) {
	m.held = 0
	m.names.retain(func(n *Name) bool { return n.Epoch == mark })
	for n := range m.names.all {
		m.held += n.bytes()
	}
	m.bases.retain(func(b *base) bool { return b.epoch == mark })
	for b := range m.bases.all {
		if b.family != nil && b.family.Epoch != mark {
			b.family = nil
		}
		m.held += BaseBytes + FamilyBytes
	}
	m.families = kept(m.families, func(f *Family) bool { return f.Epoch == mark })
	m.held += 2 * FamilyBytes * int64(len(m.families))
	m.resources = kept(m.resources, func(r *Resource) bool { return r.Epoch == mark })
	for _, r := range m.resources {
		m.held += r.bytes()
	}
	m.scopes = kept(m.scopes, func(s *Scope) bool { return s.epoch == mark })
	for k, s := range m.scopes {
		m.held += s.bytes(len(k))
	}
}
