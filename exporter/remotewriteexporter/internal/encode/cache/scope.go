// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// Scope is an instrumentation scope that becomes labels.
type Scope struct {
	name, version string
	attributes    attributes
	labels        []names.Label
	id            uint64
	sibling       *Scope
	marked        Mark
}

// Scraped reports whether a scope is that of a receiver that scrapes.
func Scraped(name string) bool {
	return strings.HasSuffix(name, "/prometheusreceiver") || strings.HasSuffix(name, "/fastprometheusreceiver")
}

// Scope returns the scope whose labels the series of s get, which it makes if needed; nil for none.
func (c *Cache) Scope(t *Tenant, s pcommon.InstrumentationScope, scraped bool) *Scope {
	switch {
	case c.cfg.ScopeLabels == ScopeLabelsOff, c.cfg.ScopeLabels == ScopeLabelsAuto && scraped:
		return nil
	case s.Name() == "" && s.Version() == "" && s.Attributes().Len() == 0:
		return nil
	}
	h := c.HashMap(c.hashString(c.hashString(0, s.Name()), s.Version()), s.Attributes()) & c.HashMask
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.Symbols.Snapshot()
	for known := t.scopes[h]; known != nil; known = known.sibling {
		if known.name == s.Name() && known.version == s.Version() && known.attributes.keys.Match(s.Attributes(), known.attributes.values, text) {
			return known
		}
	}
	c.familyIDs++
	known := &Scope{
		name: c.keep(s.Name()), version: c.keep(s.Version()), attributes: c.remember(s.Attributes()),
		id: c.familyIDs, sibling: t.scopes[h],
	}
	at := names.PlacesFor(s.Attributes().Len() + 2)
	add := func(key, value string) {
		if name, err := c.names.Label("otel_scope_" + key); err == nil && value != "" {
			i := at.Find(known.labels, name)
			if i < 0 {
				if at != nil {
					at[name] = len(known.labels)
				}
				known.labels = append(known.labels, names.Label{Name: name, Value: value})
			} else {
				known.labels[i].Value = value
			}
		}
	}
	const nameKey, versionKey, schemaKey = "name", "version", "schema_url"
	add(nameKey, known.name)
	add(versionKey, known.version)
	for k, v := range s.Attributes().All() {
		if k != nameKey && k != versionKey && k != schemaKey {
			add(k, strings.Clone(attribute.Text(v)))
		}
	}
	if !c.room.isFull() {
		t.scopes[h] = known
	}
	return known
}
