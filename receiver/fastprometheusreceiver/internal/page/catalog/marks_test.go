// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Texts with marks are parsed like others, whatever the numbers of the marks.
func TestTextsWithMarksAreRead(t *testing.T) {
	var r reread
	for number := range ownBase + MostOwn {
		body := newPiece(`m{a="` + OfTarget.Of(number) + `",b="c"}`)
		e, ok := r.line(&Line{text: text{body: body}}, nil)
		require.True(t, ok, "%d", number)
		name, value := e.Label(0)
		require.Equal(t, "a", string(name))
		require.Equal(t, number, marked(string(value)))
	}
}
