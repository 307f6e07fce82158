// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Consumers recognize a series by the order of its attributes, so the order is always the same, however many attributes
// there are. If a name occurs twice, its last value counts.
func TestAttributesStayInOrder(t *testing.T) {
	for _, n := range []int{0, 1, manyAttributes, manyAttributes + 1, 1000} {
		want := pcommon.NewMap()
		var order []string
		m := pcommon.NewMap()
		all := fillAttributes(m, n+1)
		put := func(name, value string) {
			want.PutStr(name, value)
			all.put(name, value)
			if !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
		for i := range n {
			put(fmt.Sprintf("label_%d", i*7919%n), fmt.Sprint("value ", i))
		}
		put("label_0", "the last")
		all.flush()
		require.Equal(t, want.AsRaw(), m.AsRaw())
		var got []string
		for name := range m.All() {
			got = append(got, name)
		}
		require.Equal(t, order, got, "%d attributes", n)
	}
}
