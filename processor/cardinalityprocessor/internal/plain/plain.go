// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package plain makes text of attribute values that are foreign data: as pdata does, if they are not too large for what it
// is wanted for, to be shown or compared.
//
// pdata goes through lists and maps by recursion, and makes JSON of all that is in them. A request of a few megabytes can
// nest so deep that the stack of a goroutine has no room for it, which ends the process.
package plain

import "go.opentelemetry.io/collector/pdata/pcommon"

const (
	// TooLarge stands for a value that is not spelled out.
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

// small says whether a value has no more in it than is left.
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
