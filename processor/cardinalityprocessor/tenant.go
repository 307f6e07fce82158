// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/plain"
)

// tenantSource is a place where a tenant may be found.
type tenantSource struct {
	metadata bool
	key      string
}

func newTenantSources(from []string) []tenantSource {
	var out []tenantSource
	for _, f := range from {
		s := newSource(f)
		if s.kind == fromResource {
			out = append(out, tenantSource{key: s.key})
		} else {
			out = append(out, tenantSource{metadata: true, key: f[len("metadata:"):]})
		}
	}
	return out
}

// tenant is whose a series is, and the metadata key that said so, if it was one.
type tenant struct{ name, key string }

// context gives the tenant back to whom it is sent.
func (t tenant) context(ctx context.Context) context.Context {
	if t.key == "" {
		return ctx
	}
	return client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(map[string][]string{t.key: {t.name}})})
}

// tenant returns whose points a resource has, nobody's if nothing says.
func (p *cardinalityProcessor) tenant(from client.Metadata, resource pcommon.Map) tenant {
	for _, s := range p.tenants {
		if !s.metadata {
			if value, ok := resource.Get(s.key); ok {
				if name := plain.Text(value); name != "" {
					return tenant{name: name}
				}
			}
		} else if values := from.Get(s.key); len(values) > 0 && values[0] != "" {
			return tenant{name: values[0], key: s.key}
		}
	}
	return tenant{}
}
