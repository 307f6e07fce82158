// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// TestMentionsAreOneEach: a text has one number in a request, and another one in the next, however many texts there
// are.
func TestMentionsAreOneEach(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	refs := references{all: store.NewSymbols()}
	for _, texts := range []int{1, 10, 40_000, 300} {
		refs.begin(promwrite.V2)
		seen := map[string]uint32{}
		for range 2 * texts {
			text := fmt.Sprint(r.IntN(texts))
			ref := refs.ofText([]byte(text))
			if known, ok := seen[text]; ok {
				require.Equal(t, known, ref)
			}
			seen[text] = ref
		}
		require.Equal(t, uint32(len(seen)), refs.count)
	}
	require.LessOrEqual(t, len(refs.mentions.places), manyMentions, "those of a start do not stay")
}

// TestSymbolsAreNumberedInEachRequest, independently of previous requests, however many there were.
func TestSymbolsAreNumberedInEachRequest(t *testing.T) {
	refs := references{all: store.NewSymbols()}
	var ids []uint32
	for i := range 100 {
		ids = append(ids, refs.all.Intern(fmt.Sprint("text ", i)))
	}
	refs.takeSnapshot()
	for request := range 300 {
		refs.begin(promwrite.V2)
		if request == 100 {
			refs.base = math.MaxUint32/2 - 500
		}
		for range 2 {
			for i := range 100 {
				require.Equal(t, uint32(i+1), refs.of(ids[(i+request)%100]), "request %d", request)
			}
		}
	}
	require.Less(t, refs.base, uint32(math.MaxUint32/4), "they have begun anew")
}
