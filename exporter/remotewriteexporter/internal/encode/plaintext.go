// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import "go.opentelemetry.io/collector/pdata/pcommon"

const (
	// maxNesting is how deep an attribute's value may be nested. pdata makes JSON of such values by recursion: a request of a
	// few megabytes can nest so deep that the stack has no room, which ends the process.
	maxNesting = 64
	// tooDeep stands for a value that is nested deeper.
	tooDeep = "…"
)

// PlainText is the text of an attribute's value.
func PlainText(v pcommon.Value) string {
	if isDeeper(v, maxNesting) {
		return tooDeep
	}
	return v.AsString()
}

func isDeeper(v pcommon.Value, depth int) bool {
	switch v.Type() {
	case pcommon.ValueTypeSlice:
		if depth == 0 {
			return true
		}
		for _, element := range v.Slice().All() {
			if isDeeper(element, depth-1) {
				return true
			}
		}
	case pcommon.ValueTypeMap:
		if depth == 0 {
			return true
		}
		for _, element := range v.Map().All() {
			if isDeeper(element, depth-1) {
				return true
			}
		}
	default:
	}
	return false
}
