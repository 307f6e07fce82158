// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// FuzzAdd adds any OTLP: the result must be valid, the same for Prometheus' decoders and ours, and the same when every
// point is known, and when all were forgotten and their numbers are reused.
func FuzzAdd(f *testing.F) {
	marshal := &pmetric.ProtoMarshaler{}
	for seed := range uint64(8) {
		g := generator{r: rand.New(rand.NewPCG(seed, 4)), version: promwrite.V2}
		data, err := marshal.MarshalMetrics(g.workload().metrics(&g, 0))
		require.NoError(f, err)
		f.Add(data, uint8(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte, options uint8) {
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(data)
		if err != nil {
			return
		}
		format := formats[options%4]
		e, _ := newEncoder(t, func(c *Config) {
			c.Cache.TargetInfo, c.TargetInfoInterval = true, time.Nanosecond
			c.Cache.CustomBuckets, c.Cache.KeepClassic = options&4 > 0, true
			if options&8 > 0 {
				c.Cache.Delta = cache.DeltaCumulative
			}
			if options&16 > 0 {
				c.Cache.PromoteResourceAttributes = []string{"*"}
			}
			c.Cache.ScopeLabels = cache.ScopeLabelsOn
		})
		var first []string
		for round := range 3 {
			if round == 2 {
				for range 8 {
					e.Expire()
				}
				require.Equal(t, 1, e.Stats().Symbols)
			}
			require.NoError(t, e.Add(md, ""))
			blocks := flushAll(e, format)
			series, _ := decode(t, blocks)
			for _, s := range series {
				checkSeries(t, s, format.Version)
			}
			lines := canonical(series)
			require.Equal(t, lines, canonical(decodePrometheus(t, blocks)))
			if first != nil && options&8 == 0 { // sums continue
				require.Equal(t, first, lines)
			}
			first = lines
		}
	})
}
