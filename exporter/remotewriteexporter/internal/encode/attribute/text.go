// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package attribute reads attributes: the text of a value, and whether a key is selected.
package attribute

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	// maxNesting limits how deep an attribute's value may be nested. pdata makes JSON of such values by recursion, and
	// a request of a few megabytes can nest so deep that the stack overflows, which ends the process.
	maxNesting = 64
	// tooDeep replaces a value that is nested deeper.
	tooDeep = "…"
)

// Text is the text of an attribute's value.
func Text(v pcommon.Value) string {
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

// TextIs reports whether Text(v) equals text, if possible without making a string.
func TextIs(v pcommon.Value, text string) bool {
	switch v.Type() {
	case pcommon.ValueTypeInt:
		var buf [20]byte
		return string(strconv.AppendInt(buf[:0], v.Int(), 10)) == text
	case pcommon.ValueTypeBool:
		return strconv.FormatBool(v.Bool()) == text
	default:
		return Text(v) == text
	}
}

// KindOf is the type of a value, ValueTypeEmpty if it has no text.
func KindOf(v pcommon.Value) pcommon.ValueType {
	if Text(v) == "" {
		return pcommon.ValueTypeEmpty
	}
	return v.Type()
}
