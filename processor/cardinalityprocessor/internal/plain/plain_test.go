// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestText(t *testing.T) {
	for _, raw := range []any{
		nil, "", "a", int64(1), 1.5, true, []byte("ab"), []any{"a", int64(1)}, map[string]any{"a": []any{map[string]any{}}},
	} {
		v := pcommon.NewValueEmpty()
		require.NoError(t, v.FromRaw(raw))
		require.Equal(t, v.AsString(), Text(v))
	}
}

func TestLargeValuesAreNotSpelledOut(t *testing.T) {
	wide := pcommon.NewValueSlice()
	for range maxValues - 1 {
		wide.Slice().AppendEmpty().SetInt(1)
	}
	require.Equal(t, wide.AsString(), Text(wide))
	wide.Slice().AppendEmpty()
	require.Equal(t, TooLarge, Text(wide))

	for _, depth := range []int{maxDepth, maxDepth + 1, 1_000_000} {
		list, mapped := pcommon.NewValueEmpty(), pcommon.NewValueEmpty()
		inList, inMap := list, mapped
		for range depth {
			inList, inMap = inList.SetEmptySlice().AppendEmpty(), inMap.SetEmptyMap().PutEmpty("k")
		}
		for _, v := range []pcommon.Value{list, mapped} {
			if depth > maxDepth {
				require.Equal(t, TooLarge, Text(v))
			} else {
				require.Equal(t, v.AsString(), Text(v))
			}
		}
	}
}
