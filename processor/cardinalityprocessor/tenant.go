// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"

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

// tenant is whose a series is, and what of the client's metadata goes with it.
type tenant struct {
	name     string
	key      string // of the metadata that said so, if it was that
	metadata string // other keys with their values, see appendMetadata
	road     string // the pipeline of a shared processor
}

// context gives the tenant back to whom it is sent.
func (t tenant) context(ctx context.Context) context.Context {
	if t.key == "" && t.metadata == "" {
		return ctx
	}
	all := map[string][]string{}
	eachMetadata(t.metadata, func(key string, values []string) { all[key] = values })
	if key := strings.ToLower(t.key); key != "" && len(all[key]) == 0 {
		all[key] = []string{t.name}
	}
	return client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(all)})
}

// detached has strings of its own.
func (t tenant) detached() tenant {
	t.name, t.metadata = strings.Clone(t.name), strings.Clone(t.metadata)
	return t
}

func (t tenant) size() int64 { return int64(len(t.name) + len(t.key) + len(t.metadata)) }

// tenant is 0 for nobody's.
func (h *hasher) tenant(t *tenant) uint64 {
	if t.name == "" && t.metadata == "" && t.road == "" {
		return 0
	}
	seed := h.text(t.name)
	if t.metadata != "" || t.road != "" {
		seed = mix(mix(seed, h.text(t.metadata)), h.text(t.road))
	}
	return seed
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

// appendMetadata appends those of the keys that the client has sent, so that two clients have the same text if they have sent
// the same:
//
//	for each key: its length | key | number of values | for each value: its length | value
func appendMetadata(dst []byte, from client.Metadata, keys []string) []byte {
	for _, key := range keys {
		values := from.Get(key)
		if len(values) == 0 {
			continue
		}
		dst = binary.AppendUvarint(appendString(dst, key), uint64(len(values)))
		for _, value := range values {
			dst = appendString(dst, value)
		}
	}
	return dst
}

// eachMetadata undoes that. What is damaged has no more keys.
func eachMetadata(text string, f func(key string, values []string)) {
	r := reader{rest: []byte(text)}
	for len(r.rest) > 0 && r.err == nil {
		key := r.string()
		values := make([]string, r.count(1))
		for i := range values {
			values[i] = r.string()
		}
		if r.err == nil {
			f(key, values)
		}
	}
}

// appendTenant appends a tenant to what is saved. Pipeline and metadata are behind the key: the first two have no byte of 0.
func appendTenant(dst []byte, t tenant) []byte {
	dst = appendString(dst, t.name)
	if t.metadata == "" && t.road == "" {
		return appendString(dst, t.key)
	}
	return appendString(dst, t.key+"\x00"+t.road+"\x00"+t.metadata)
}

func (r *reader) tenant() tenant {
	t := tenant{name: r.string()}
	var rest string
	t.key, rest, _ = strings.Cut(r.string(), "\x00")
	t.road, t.metadata, _ = strings.Cut(rest, "\x00")
	return t
}

// sortedKeys are in one order, whatever the configuration's was.
func sortedKeys(keys []string) []string {
	var all []string
	for _, key := range keys {
		all = append(all, strings.ToLower(key)) // as metadata has them
	}
	slices.Sort(all)
	return slices.Compact(all)
}
