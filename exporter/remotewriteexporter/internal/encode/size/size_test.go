// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package size

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

func TestRequestsOfOneSize(t *testing.T) {
	l := New(100, 1<<20, 1<<20)
	f := func(samples, want int) {
		t.Helper()
		assert.Equal(t, want, l.PerRequest(samples))
	}
	f(1, 1)
	f(100, 100)
	f(101, 51)
	f(200, 100)
	f(205, 69)
}

func TestLimitFollowsWhatCompresses(t *testing.T) {
	zstd := block.Format{Version: promwrite.V2, Compression: promwrite.Zstd}
	snappy := block.Format{Version: promwrite.V2, Compression: promwrite.Snappy}
	l := New(100, 1<<20, 1<<16)
	assert.Equal(t, 1<<20, l.Raw(zstd), "nothing is known yet")
	l.Learn(zstd, 1000, 1<<20, 500)
	assert.Equal(t, 1<<20, l.Raw(zstd), "a small request says nothing")
	l.Learn(zstd, 1<<20, 1<<20, 1<<17) // an eighth
	assert.InEpsilon(t, 0.9*8*(1<<16), l.Raw(zstd), 1e-5)
	assert.Equal(t, 1<<20, l.Raw(snappy), "each format by itself")
	l.Learn(zstd, 1<<20, 1<<20, 1<<18) // a quarter, immediately
	assert.InEpsilon(t, 0.9*4*(1<<16), l.Raw(zstd), 1e-5)
	l.Learn(zstd, 1<<20, 1<<20, 1<<17) // an eighth again, gradually
	assert.InEpsilon(t, 0.9/(0.25-0.125/16)*(1<<16), l.Raw(zstd), 1e-4)
	l.LimitCompressed(1 << 40)
	assert.InEpsilon(t, 0.9/(0.25-0.125/16)*(1<<16), l.Raw(zstd), 1e-4, "no more than was configured")
	l.LimitCompressed(1 << 15)
	assert.InEpsilon(t, 0.9/(0.25-0.125/16)*(1<<15), l.Raw(zstd), 1e-4)
	l.LimitCompressed(0)
	assert.Equal(t, 1024, l.Raw(zstd), "never so little that nothing goes")
}
