// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/plain"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// tenantSource is a place where a tenant may be found.
type tenantSource struct {
	metadata bool
	key      string
}

// tenantSources are these places, in the order in which they are looked at.
type tenantSources []tenantSource

func newTenantSources(from []string) tenantSources {
	var out tenantSources
	for _, f := range from {
		s := policy.NewSource(f)
		if s.Kind == policy.FromResource {
			out = append(out, tenantSource{key: s.Key})
		} else {
			out = append(out, tenantSource{metadata: true, key: f[len("metadata:"):]})
		}
	}
	return out
}

// of returns the tenant of a resource, the zero one if there is none.
func (all tenantSources) of(from client.Metadata, resource pcommon.Map) ident.Tenant {
	for _, s := range all {
		if !s.metadata {
			if value, ok := resource.Get(s.key); ok {
				if name := plain.Text(value); name != "" {
					return ident.Tenant{Name: name}
				}
			}
		} else if values := from.Get(s.key); len(values) > 0 && values[0] != "" {
			return ident.Tenant{Name: values[0], Key: s.key}
		}
	}
	return ident.Tenant{}
}

// sortedKeys returns keys sorted, since the order in the configuration must not matter.
func sortedKeys(keys []string) []string {
	var all []string
	for _, key := range keys {
		all = append(all, strings.ToLower(key)) // as in metadata
	}
	slices.Sort(all)
	return slices.Compact(all)
}
