// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
)

// Attributes translates attributes. If several keys become the same name, their values are joined in the order of the
// original keys. Only err says that the attributes cannot be labels.
func (t *Translator) Attributes(m pcommon.Map, skip func(key string) bool) ([]Label, error) {
	list := make([]Label, 0, m.Len()+4)
	for k, v := range m.All() {
		if value := attribute.Text(v); value != "" && (skip == nil || !skip(k)) {
			list = append(list, Label{k, value})
		}
	}
	slices.SortStableFunc(list, ByName)
	out, at := list[:0], PlacesFor(len(list))
	var joined map[int][]byte // values that are joined
	for _, l := range list {
		name, err := t.labels.Build(l.Name)
		if err != nil {
			return nil, err
		}
		i := at.Find(out, name)
		if i < 0 {
			if at != nil {
				at[name] = len(out)
			}
			out = append(out, Label{name, l.Value})
			continue
		}
		value, grows := joined[i]
		if !grows {
			value = []byte(out[i].Value)
		}
		if string(value) == l.Value {
			continue
		}
		if joined == nil {
			joined = map[int][]byte{}
		}
		joined[i] = append(append(value, ';'), l.Value...)
	}
	for i, value := range joined {
		out[i].Value = string(value)
	}
	return out, nil
}
