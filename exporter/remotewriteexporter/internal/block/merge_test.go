// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

func TestMergeKeepsEverythingInOrder(t *testing.T) {
	for _, f := range []Format{v2Zstd, v2Snappy, v1Zstd, v1Snappy} {
		later := sampleSeries(5)
		for i := range later {
			later[i].Samples[0].Timestamp += 5000
			later[i].Samples[1].Timestamp += 5000
		}
		parts := [][]promwrite.Series{append(sampleSeries(3), histogramSeries(2)), later, sampleSeries(1)}
		var blocks []Block
		var want []promwrite.Series
		for _, series := range parts {
			b := made(t, f, series...)
			d := decoded(t, b)
			want = append(want, d.Series...)
			blocks = append(blocks, b)
		}
		whole, err := Merge(blocks)
		require.NoError(t, err)
		assert.Equal(t, Header{
			Version: f.Version, Compression: f.Compression, Samples: 18, Histograms: 1, Exemplars: 9,
			MinTime: 1000, MaxTime: 7004, RawSize: whole.RawSize, Shard: 3, Tenant: "acme",
		}, whole.Header)
		d := decoded(t, whole)
		assert.Equal(t, want, d.Series)
	}
}

func TestMergeKeepsMetadataOfOne(t *testing.T) {
	var blocks []Block
	want := []promwrite.Metadata{{Type: promwrite.Gauge, Family: "f", Help: "h"}, {Type: promwrite.Counter, Family: "g"}}
	for i := range want {
		b, err := write(Header{}, v1Zstd, sampleSeries(1), want[i:i+1])
		require.NoError(t, err)
		blocks = append(blocks, b)
	}
	whole, err := Merge(blocks)
	require.NoError(t, err)
	d := decoded(t, whole)
	assert.Equal(t, want, d.Metadata)
	assert.Equal(t, 2, whole.Metadata)
}

func TestMergeOfWhatDoesNotFitIsAnError(t *testing.T) {
	good := made(t, v2Zstd, sampleSeries(1)...)
	tenant := good
	tenant.Tenant = "other"
	plain := func(body string) Block {
		return New(Header{Version: promwrite.V2, Compression: promwrite.Identity, Tenant: "acme"}, []byte(body))
	}
	for _, blocks := range [][]Block{
		nil,
		{good, tenant},
		{good, made(t, v1Zstd, sampleSeries(1)...)},
		{good, New(good.Header, []byte("no zstd"))},
		{good, plain("\xff")},
		{good, plain("\x22\x00\x2a\x04\x0a\x02\x00")},                     // ends in a series
		{good, plain("\x22\x00\x2a\x04\x0a\x02\x00\x07")},                 // a label with an unknown symbol
		{good, plain("\x22\x00\x2a\x03\x0a\x01\x80")},                     // half a number
		{good, plain("\x22\x00\x2a\x08\x0a\x00\x22\x04\x0a\x02\x00\x07")}, // an exemplar's
		{good, plain("\x22\x00\x2a\x04\x2a\x02\x18\x07")},                 // a help text
		{good, plain("\x22\x00\x2a\x04\x2a\x02\x20\x07")},                 // a unit
		{good, plain("\x22\x00\x2a\x03\x2a\x01\x18")},                     // half of the metadata
		{good, plain("\x22\x00\x2a\x03\x22\x01\x0a")},                     // half of an exemplar
	} {
		_, err := Merge(blocks)
		require.ErrorContains(t, err, "cannot merge")
	}
}

// nodeSeries returns the nth page of some targets: series with one sample and ten labels.
func nodeSeries(count, n int) (series []promwrite.Series) {
	for i := range count {
		labels := []promwrite.Label{{Name: "__name__", Value: fmt.Sprintf("node_cpu_seconds_total_%d", i%50)}}
		for l := range 9 {
			labels = append(labels, promwrite.Label{Name: fmt.Sprintf("label_%d", l), Value: fmt.Sprintf("value of %d", (i+l)%100)})
		}
		series = append(series, promwrite.Series{
			Labels: labels, Type: promwrite.Counter, Help: "Seconds the CPUs spent.",
			Samples: []promwrite.Sample{{Value: float64(i*n) + 0.5, Timestamp: int64(1_700_000_000_000 + n), StartTimestamp: 1_699_999_000_000}},
		})
	}
	return series
}

// BenchmarkMerge merges the blocks of eight rounds into a full request.
func BenchmarkMerge(b *testing.B) {
	const rounds, size = 8, 6000
	for _, f := range []Format{v2Zstd, v1Zstd} {
		b.Run("version="+f.Version.String(), func(b *testing.B) {
			var blocks []Block
			for n := range rounds {
				blocks = append(blocks, made(b, f, nodeSeries(size, n)...))
			}
			b.ReportAllocs()
			for b.Loop() {
				if whole, err := Merge(blocks); err != nil || whole.Samples != rounds*size {
					b.Fatal(err, whole.Samples)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(rounds*size), "ns/sample")
		})
	}
}
