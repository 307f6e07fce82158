// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"bytes"
	"compress/gzip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
)

// read makes a decoder read a page of this size.
func read(t *testing.T, d *fetch.Decoder, size int) *fetch.Decoder {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(bytes.Repeat([]byte("a 1\n"), size/4))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	_, err = d.Decode(fetch.Response{Encoding: fetch.Gzip, Body: packed.Bytes()}, 0, func([]byte) error { return nil })
	require.NoError(t, err)
	return d
}

// If more pages are read at a time than there are processors, only the largest decoders are kept, in whatever order
// they are returned.
func TestDecodersThatHoldTheMostAreKept(t *testing.T) {
	d := decoders{keep: 2}
	small, middle, large := read(t, d.take(), 1000), read(t, d.take(), 100_000), read(t, d.take(), 1_000_000)
	for _, order := range [][]*fetch.Decoder{{small, middle, large}, {large, middle, small}, {middle, small, large}, {nil, large, small, nil, middle}} {
		d.idle = nil
		for _, back := range order {
			d.give(back)
		}
		assert.ElementsMatch(t, []*fetch.Decoder{middle, large}, d.idle)
	}
	first, second := d.take(), d.take()
	assert.NotSame(t, first, second)
	assert.Zero(t, d.take().Held())
}

// The decoder returned last is taken first, even if it replaced another one.
func TestTheLastDecoderBackIsTheFirstOut(t *testing.T) {
	d := decoders{keep: 2}
	small, large, larger := read(t, d.take(), 1000), read(t, d.take(), 1_000_000), read(t, d.take(), 1_100_000)
	d.give(larger)
	d.give(small)
	d.give(large)
	assert.Same(t, large, d.take())
	assert.Same(t, larger, d.take())
}
