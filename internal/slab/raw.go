// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// putRaw fills a map all at once.
func putRaw(into pcommon.Map, n int, all iter.Seq2[string, string]) {
	raw := make(map[string]any, n)
	for key, value := range all {
		raw[key] = value
	}
	_ = into.FromRaw(raw) // it accepts all strings
}
