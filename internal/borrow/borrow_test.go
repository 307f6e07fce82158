// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package borrow

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPartsLastWhenTheBytesAreWrittenAgain(t *testing.T) {
	b := []byte("one two three")
	text := Of(b)
	require.Equal(t, "one two three", text.String())
	one, two, end := text.Lasting(text.String()[:3]), text.Lasting(text.String()[4:7]), text.Lasting(text.String()[13:])
	other := text.Lasting("elsewhere")
	copy(b, strings.Repeat("x", len(b)))
	require.Equal(t, []string{"one", "two", "", "elsewhere"}, []string{one, two, end, other})
	var none Text
	require.Equal(t, "x", none.Lasting("x"))
	empty := Of(nil)
	require.Empty(t, empty.String())
}
