// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package ident

import (
	"context"
	"encoding/binary"
	"strings"

	"go.opentelemetry.io/collector/client"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// Tenant is the tenant of a series, and the client's metadata to be sent along with it.
type Tenant struct {
	Name     string
	Key      string // the metadata key that named it, if one did
	Metadata string // further keys with their values, see AppendMetadata
	Road     string // the pipeline of a shared processor
}

// Context adds the tenant's metadata to a context.
func (t Tenant) Context(ctx context.Context) context.Context {
	if t.Key == "" && t.Metadata == "" {
		return ctx
	}
	all := map[string][]string{}
	eachMetadata(t.Metadata, func(key string, values []string) { all[key] = values })
	if key := strings.ToLower(t.Key); key != "" && len(all[key]) == 0 {
		all[key] = []string{t.Name}
	}
	return client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(all)})
}

// Detached returns a copy with strings of its own.
func (t Tenant) Detached() Tenant {
	t.Name, t.Metadata = strings.Clone(t.Name), strings.Clone(t.Metadata)
	return t
}

// Size is the memory of its strings.
func (t Tenant) Size() int64 { return int64(len(t.Name) + len(t.Key) + len(t.Metadata)) }

// Tenant hashes a tenant; 0 for none.
func (h *Hasher) Tenant(t *Tenant) uint64 {
	if t.Name == "" && t.Metadata == "" && t.Road == "" {
		return 0
	}
	seed := h.Text(t.Name)
	if t.Metadata != "" || t.Road != "" {
		seed = Mix(Mix(seed, h.Text(t.Metadata)), h.Text(t.Road))
	}
	return seed
}

// AppendMetadata appends those keys that the client has sent, so that clients that have sent the same get the same
// text:
//
//	for each key: its length | key | number of values | for each value: its length | value
func AppendMetadata(dst []byte, from client.Metadata, keys []string) []byte {
	for _, key := range keys {
		values := from.Get(key)
		if len(values) == 0 {
			continue
		}
		dst = binary.AppendUvarint(store.AppendString(dst, key), uint64(len(values)))
		for _, value := range values {
			dst = store.AppendString(dst, value)
		}
	}
	return dst
}

// eachMetadata parses such a text. It stops at damaged data.
func eachMetadata(text string, f func(key string, values []string)) {
	r := store.Reader{Rest: []byte(text)}
	for len(r.Rest) > 0 && r.Err == nil {
		key := r.String()
		values := make([]string, r.Count(1))
		for i := range values {
			values[i] = r.String()
		}
		if r.Err == nil {
			f(key, values)
		}
	}
}

// AppendTenant appends a tenant for ReadTenant. Pipeline and metadata come after the key: name and key contain no byte
// 0.
func AppendTenant(dst []byte, t Tenant) []byte {
	dst = store.AppendString(dst, t.Name)
	if t.Metadata == "" && t.Road == "" {
		return store.AppendString(dst, t.Key)
	}
	return store.AppendString(dst, t.Key+"\x00"+t.Road+"\x00"+t.Metadata)
}

// ReadTenant reads what AppendTenant wrote.
func ReadTenant(r *store.Reader) Tenant {
	t := Tenant{Name: r.String()}
	var rest string
	t.Key, rest, _ = strings.Cut(r.String(), "\x00")
	t.Road, t.Metadata, _ = strings.Cut(rest, "\x00")
	return t
}
