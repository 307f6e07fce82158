// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMentionsAreOneEach: a text has one number in a request, another in the next, however many there are.
func TestMentionsAreOneEach(t *testing.T) {
	e, _ := newEncoder(t, nil)
	r := rand.New(rand.NewPCG(1, 3))
	w := e.flusher()
	for _, texts := range []int{1, 10, 40_000, 300} {
		w.request.begin(v2Zstd.Version)
		refs, before := map[string]uint32{}, w.refs
		for range 2 * texts {
			text := fmt.Sprint(r.IntN(texts))
			ref := w.textRef([]byte(text))
			if known, ok := refs[text]; ok {
				require.Equal(t, known, ref)
			}
			refs[text] = ref
		}
		require.Equal(t, uint32(len(refs)), w.refs-before)
	}
	require.LessOrEqual(t, len(w.mentions.places), manyMentions, "those of a start do not stay")
}
