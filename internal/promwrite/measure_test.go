// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizesAreThoseOfTheTypes(t *testing.T) {
	for _, c := range []struct {
		size int
		of   reflect.Type
	}{
		{symbolSize, reflect.TypeFor[string]()},
		{labelSize, reflect.TypeFor[Label]()},
		{referenceSize, reflect.TypeFor[uint64]()},
		{sampleSize, reflect.TypeFor[Sample]()},
		{exemplarSize, reflect.TypeFor[Exemplar]()},
		{metadataSize, reflect.TypeFor[Metadata]()},
		{seriesSize, reflect.TypeFor[Series]()},
		{histogramSize, reflect.TypeFor[Histogram]()},
	} {
		require.Equal(t, c.size, int(c.of.Size()), c.of)
	}
}

// checkMeasure compares the measured sizes with the decoded request.
func checkMeasure(t *testing.T, version Version, body []byte) {
	size, err := Measure(version, string(body))
	var d Decoder
	if d.Decode(version, body) != nil {
		return
	}
	require.NoError(t, err, "what can be decoded can be measured")
	want := Size{
		Series: len(d.Series), Labels: len(d.labels), Samples: len(d.samples), Exemplars: len(d.exemplars),
		Histograms: len(d.histograms), Metadata: len(d.Metadata), Symbols: len(d.symbols),
		HistogramBytes: size.HistogramBytes, ExemplarBytes: size.ExemplarBytes,
	}
	for _, s := range d.Series {
		want.PointLabels += len(s.Labels) * (len(s.Samples) + len(s.Histograms))
		want.LongestSeries = max(want.LongestSeries, len(s.Labels))
	}
	require.Equal(t, want, size)
	inside := len(d.exemplarLabels)*labelSize + 8*(len(d.positive.spans)+len(d.positive.deltas)+len(d.positive.counts)+
		len(d.negative.spans)+len(d.negative.deltas)+len(d.negative.counts)+len(d.customValues))
	require.LessOrEqual(t, inside, size.HistogramBytes*histogramByteSize+size.ExemplarBytes*exemplarByteSize)

	var measured Decoder
	require.NoError(t, measured.DecodeMeasured(version, string(body), size))
	require.Len(t, measured.Series, len(d.Series))
}

func TestMeasureCountsWhatIsThere(t *testing.T) {
	for seed := range uint64(200) {
		dice := newDice(seed)
		body, err := dice.v1().Marshal()
		require.NoError(t, err)
		checkMeasure(t, V1, body)
		body, err = dice.v2().Marshal()
		require.NoError(t, err)
		checkMeasure(t, V2, body)
	}
}

func BenchmarkMeasure(b *testing.B) {
	for _, version := range []Version{V1, V2} {
		b.Run("version="+version.String(), func(b *testing.B) {
			body := string(nodeLike(b, version, 10_000))
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				size, err := Measure(version, body)
				require.NoError(b, err)
				require.Equal(b, 10_000, size.Series)
			}
		})
	}
}
