// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package ident

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/siphash"
)

func TestARecallForgetsAllStrings(t *testing.T) {
	h := NewHasher(siphash.NewKey([siphash.KeySize]byte{1}))
	var r Recall
	for n := range 100 {
		m := pcommon.NewMap()
		for i := range n {
			m.PutStr("key"+strconv.Itoa(i), "value"+strconv.Itoa(n%7))
		}
		require.Equal(t, h.Attributes(m), r.attributes(&h, m))
	}
	require.Len(t, r.before, MaxRecalled)
	r.Forget()
	require.Empty(t, r.before)
	for _, b := range r.before[:cap(r.before)] {
		require.Zero(t, b)
	}
	if r.values != nil {
		require.Zero(t, *r.values)
	}
}
