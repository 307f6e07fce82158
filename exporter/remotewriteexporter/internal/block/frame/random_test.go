// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Data that is declared to be random is decoded correctly, at any position and of any length, whether it is random or
// not.
func TestRandomStretchesAreThere(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	d, e := reader(t), &Encoder{}
	hex := func(n int) (data []byte) {
		for len(data) < n {
			data = fmt.Appendf(data, "\"\x10%016x", r.Uint64())
		}
		return data[:n]
	}
	for _, before := range []int{0, 1, 50, 5000, maxBlock - 1, maxBlock, maxBlock + 3} {
		for _, length := range []int{1, leastRandom - 1, leastRandom, 50_000, 2*maxBlock + 1} {
			for _, behind := range []int{0, 1, 20, 70_000} {
				for _, random := range []func(int) []byte{hex, func(n int) []byte { return messages(r, n) }, func(n int) []byte { return make([]byte, n) }} {
					src := append(messages(r, before), random(length)...)
					src = append(src, messages(r, behind)...)
					framed := e.Append(nil, src, Known{Random: Stretch{before, before + length}})
					got, err := d.DecodeAll(framed, nil)
					require.NoError(t, err, "%d bytes behind %d, before %d", length, before, behind)
					require.True(t, bytes.Equal(src, got), "%d bytes behind %d, before %d", length, before, behind)
				}
			}
		}
	}
}

// Among other literals, hex digits take more than half a byte each.
func TestRandomStretchesHaveACodeOfTheirOwn(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	e := &Encoder{}
	var src []byte
	for range 1000 {
		src = fmt.Appendf(src, "a metric of %x", r.Uint64()%1000)
	}
	begin := len(src)
	for range 2000 {
		src = fmt.Appendf(src, "\"\x10%016x", r.Uint64())
	}
	end := len(src)
	src = append(src, messages(r, 60_000)...)
	mixed, apart := len(e.Append(nil, src, Known{})), len(e.Append(nil, src, Known{Random: Stretch{begin, end}}))
	t.Logf("%d bytes, %d apart", mixed, apart)
	require.Less(t, apart, mixed-2000)
}
