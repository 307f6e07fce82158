// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package attribute

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func nestedValue(v pcommon.Value, depth int, inMaps bool) {
	for range depth {
		if inMaps {
			v = v.SetEmptyMap().PutEmpty("k")
		} else {
			v = v.SetEmptySlice().AppendEmpty()
		}
	}
}

func TestPlainText(t *testing.T) {
	for _, inMaps := range []bool{false, true} {
		v := pcommon.NewValueEmpty()
		nestedValue(v, maxNesting, inMaps)
		require.Equal(t, v.AsString(), Text(v))
		nestedValue(v, maxNesting+1, inMaps)
		require.Equal(t, tooDeep, Text(v))
	}
}
