// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package plain converts untrusted attribute values to text: like pdata does, if they are not too large to be shown or compared.
//
// pdata walks lists and maps recursively, and makes JSON of all their content. A request of a few megabytes can
// nest so deep that a goroutine's stack overflows, which ends the process.
package plain

import "go.opentelemetry.io/collector/pdata/pcommon"

const (
	// TooLarge replaces a value that is not written out.
	TooLarge = "…"

	maxDepth  = 16
	maxValues = 1000
)

// Text returns the text of a value.
func Text(value pcommon.Value) string {
	left := maxValues
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return value.Str()
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		if !small(value, maxDepth, &left) {
			return TooLarge
		}
	default:
	}
	return value.AsString()
}

// small reports whether a value has no more content than left.
func small(value pcommon.Value, depth int, left *int) bool {
	*left--
	if depth < 0 || *left < 0 {
		return false
	}
	switch value.Type() {
	case pcommon.ValueTypeSlice:
		for _, element := range value.Slice().All() {
			if !small(element, depth-1, left) {
				return false
			}
		}
	case pcommon.ValueTypeMap:
		for _, element := range value.Map().All() {
			if !small(element, depth-1, left) {
				return false
			}
		}
	default:
	}
	return true
}
