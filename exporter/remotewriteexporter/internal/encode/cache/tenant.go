// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"

// Tenant is a separate namespace. It shares memory with others, but no entries.
type Tenant struct {
	families  map[uint64]*Family
	points    store.Index
	series    store.Index
	resources map[uint64]*Resource
	labelSets map[uint64]*ResourceLabels
	schemas   map[string]*Schema
	scopes    map[uint64]*Scope
	metas     map[metaKey]*Meta
	layouts   store.Index     // of series that rules have changed
	None      *ResourceLabels // labels of a resource that contributes none
}

// NewTenant makes one of which nothing is known yet.
func NewTenant() *Tenant {
	return &Tenant{
		families:  map[uint64]*Family{},
		resources: map[uint64]*Resource{},
		labelSets: map[uint64]*ResourceLabels{},
		schemas:   map[string]*Schema{},
		scopes:    map[uint64]*Scope{},
		metas:     map[metaKey]*Meta{},
		None:      &ResourceLabels{schema: &Schema{}},
	}
}
