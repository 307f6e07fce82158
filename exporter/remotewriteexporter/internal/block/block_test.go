// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

var (
	v2Zstd   = Format{Version: promwrite.V2, Compression: promwrite.Zstd}
	v2Snappy = Format{Version: promwrite.V2, Compression: promwrite.Snappy}
	v1Zstd   = Format{Version: promwrite.V1, Compression: promwrite.Zstd}
	v1Snappy = Format{Version: promwrite.V1, Compression: promwrite.Snappy}
)

func sampleSeries(n int) (series []promwrite.Series) {
	for i := range n {
		series = append(series, promwrite.Series{
			Labels: []promwrite.Label{{Name: "__name__", Value: "requests_total"}, {Name: "code", Value: fmt.Sprint(i)}},
			Samples: []promwrite.Sample{
				{Value: float64(i), Timestamp: int64(1000 + i), StartTimestamp: 7},
				{Value: math.Copysign(0, -1), Timestamp: int64(2000 + i)},
			},
			Exemplars: []promwrite.Exemplar{{Labels: []promwrite.Label{{Name: "trace_id", Value: "ab"}}, Value: 1, Timestamp: 3}},
			Type:      promwrite.Counter, Help: "Requests.", Unit: "requests",
		})
	}
	return series
}

func histogramSeries(schema int32) promwrite.Series {
	return promwrite.Series{
		Labels: []promwrite.Label{{Name: "__name__", Value: "latency"}},
		Histograms: []promwrite.Histogram{{
			Timestamp: 5000, StartTimestamp: 9, Count: promwrite.Number{Int: 6}, Sum: 12.5, Schema: schema, ZeroThreshold: 0.5,
			PositiveSpans: []promwrite.Span{{Offset: -2, Length: 2}, {Offset: 5, Length: 1}}, PositiveDeltas: []int64{3, -2, 1},
			CustomValues: []float64{1, 2},
		}},
		Type: promwrite.ClassicHistogram,
	}
}

func made(t testing.TB, f Format, series ...promwrite.Series) Block {
	t.Helper()
	b, err := write(Header{Shard: 3, Tenant: "acme"}, f, series, nil)
	require.NoError(t, err)
	return b
}

func decoded(t testing.TB, b Block) promwrite.Decoder {
	t.Helper()
	raw, err := b.Raw()
	require.NoError(t, err)
	require.Len(t, raw, b.RawSize)
	var d promwrite.Decoder
	require.NoError(t, d.Decode(b.Version, raw))
	return d
}

func TestBlockKeepsEverythingOnDisk(t *testing.T) {
	for _, f := range []Format{v2Zstd, v2Snappy, v1Zstd, v1Snappy, {Version: promwrite.V2, Compression: promwrite.Identity}} {
		b := made(t, f, append(sampleSeries(10), histogramSeries(2))...)
		assert.Equal(t, 20, b.Samples)
		assert.Equal(t, 1, b.Histograms)
		assert.Equal(t, 10, b.Exemplars)
		assert.EqualValues(t, 1000, b.MinTime)
		assert.EqualValues(t, 5000, b.MaxTime)
		data := b.AppendTo([]byte("before"))[6:]
		assert.LessOrEqual(t, len(data), b.Size())
		got, err := Parse(data)
		require.NoError(t, err)
		assert.Equal(t, b, got)
		assert.Equal(t, "acme", got.Tenant)
	}
}

func TestParseRefusesEveryChange(t *testing.T) {
	data := made(t, v2Zstd, sampleSeries(3)...).AppendTo(nil)
	for i := range data {
		for _, bit := range []byte{1, 0x80} {
			changed := bytes.Clone(data)
			changed[i] ^= bit
			_, err := Parse(changed)
			require.ErrorIs(t, err, ErrCorrupt, "byte %d", i)
		}
		_, err := Parse(data[:i])
		require.ErrorIs(t, err, ErrCorrupt, "cut at %d", i)
	}
	_, err := Parse(append(bytes.Clone(data), 0))
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestSalvageReadsHeadersOfCorruptBlocks(t *testing.T) {
	b := made(t, v2Zstd, sampleSeries(3)...)
	data := b.AppendTo(nil)
	h, ok := Salvage(data[:len(data)-len(b.Body())])
	require.True(t, ok)
	require.Equal(t, b.Header, h)
	for _, beyond := range [][]byte{nil, []byte("gwb"), []byte("something else"), sealed(2, 1, 99, 0, 0, 0, 0, 0, 10, 0, 0)} {
		h, ok := Salvage(beyond)
		require.False(t, ok, "%q", beyond)
		require.Zero(t, h)
	}
}

// sealed returns a block of any fields with a valid checksum: what a hostile disk could contain.
func sealed(fields ...uint64) []byte {
	data := []byte(magic)
	for _, f := range fields {
		data = binary.AppendUvarint(data, f)
	}
	return binary.LittleEndian.AppendUint64(data, xxh3.Hash(data))
}

func TestParseRefusesFieldsOutOfRange(t *testing.T) {
	good := []uint64{2, 1, 1, 0, 0, 0, 0, 0, 10, 0, 0, 0}
	_, err := Parse(sealed(good...))
	require.NoError(t, err)
	for i, bad := range map[int]uint64{0: 3, 1: 3, 2: 1 << 40, 8: 1 << 40, 9: 1 << 21, 10: 1 << 62, 11: 1} {
		fields := append([]uint64(nil), good...)
		fields[i] = bad
		_, err := Parse(sealed(fields...))
		require.ErrorIs(t, err, ErrCorrupt, "field %d", i)
	}
	_, err = Parse(sealed(append(good, 0)...))
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = Parse(sealed(0, 1, 1, 0, 0, 0, 0, 0, 10, 0, 0, 0))
	require.ErrorIs(t, err, ErrCorrupt)
}

func FuzzParse(f *testing.F) {
	f.Add(made(f, v2Zstd, sampleSeries(2)...).AppendTo(nil), true)
	f.Add(sealed(2, 1, 1, 0, 0, 0, 0, 0, 10, 0, 0, 0), true)
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal { // so that the fields are decoded
			if len(data) >= checksumSize {
				data = data[:len(data)-checksumSize]
			}
			data = binary.LittleEndian.AppendUint64(bytes.Clone(data), xxh3.Hash(data))
		}
		b, err := Parse(data)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		again, err := Parse(b.AppendTo(nil))
		require.NoError(t, err)
		require.Equal(t, b.Header, again.Header)
		require.True(t, bytes.Equal(b.body, again.body))
		if b.RawSize < 1<<20 {
			_, _ = Transcode(b, v1Snappy)
			_, _, _ = Split(b)
		}
	})
}

func TestCompressIsWhatOthersRead(t *testing.T) {
	raw := bytes.Repeat([]byte("some text, and again "), 5000)
	decoder, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer decoder.Close()
	for level := range 6 {
		body, err := Compress([]byte("x"), Format{Compression: promwrite.Zstd, Level: level}, raw)
		require.NoError(t, err)
		got, err := decoder.DecodeAll(body[1:], nil)
		require.NoError(t, err)
		assert.Equal(t, raw, got)
		body, err = Compress([]byte("x"), Format{Compression: promwrite.Snappy, Level: level}, raw)
		require.NoError(t, err)
		got, err = snappy.Decode(nil, body[1:])
		require.NoError(t, err)
		assert.Equal(t, raw, got)
	}
	_, err = Compress(nil, Format{Compression: 9}, raw)
	require.ErrorContains(t, err, "encoding 9")
}

func TestTranscodeChangesCompressionAlone(t *testing.T) {
	for _, from := range []Format{v2Zstd, v1Zstd} {
		b := made(t, from, sampleSeries(10)...)
		to := from
		to.Compression = promwrite.Snappy
		c, err := Transcode(b, to)
		require.NoError(t, err)
		assert.Equal(t, promwrite.Snappy, c.Compression)
		before, err := b.Raw()
		require.NoError(t, err)
		after, err := c.Raw()
		require.NoError(t, err)
		assert.Equal(t, before, after)
		c.Compression, b.body = b.Compression, c.body
		assert.Equal(t, b, c)
	}
}

func TestTranscodeToOne(t *testing.T) {
	b := made(t, v2Zstd, append(sampleSeries(10), histogramSeries(2), histogramSeries(promwrite.CustomBucketsSchema))...)
	c, err := Transcode(b, v1Snappy)
	require.NoError(t, err)
	assert.Equal(t, Header{
		Version: promwrite.V1, Compression: promwrite.Snappy, Samples: 20, Histograms: 1, Exemplars: 10, Metadata: 2,
		MinTime: 1000, MaxTime: 5000, RawSize: c.RawSize, Shard: 3, Tenant: "acme",
	}, c.Header)
	d := decoded(t, c)
	want := append(sampleSeries(10), histogramSeries(2))
	for i := range want { // which 1.0 does not have
		want[i].Type, want[i].Help, want[i].Unit = 0, "", ""
		for j := range want[i].Samples {
			want[i].Samples[j].StartTimestamp = 0
		}
		for j := range want[i].Histograms {
			want[i].Histograms[j].StartTimestamp = 0
		}
	}
	assert.Equal(t, want, d.Series)
	assert.Equal(t, []promwrite.Metadata{
		{Type: promwrite.Counter, Family: "requests_total", Help: "Requests.", Unit: "requests"},
		{Type: promwrite.ClassicHistogram, Family: "latency"},
	}, d.Metadata)

	_, err = Transcode(c, v2Zstd)
	require.ErrorContains(t, err, "1.0 does not carry")
	same, err := Transcode(c, v1Snappy)
	require.NoError(t, err)
	assert.Equal(t, c, same)
}

func TestTranscodeNamesFamilies(t *testing.T) {
	series := func(name string, kind promwrite.MetricType) promwrite.Series {
		return promwrite.Series{
			Labels: []promwrite.Label{{Name: "__name__", Value: name}}, Type: kind,
			Samples: []promwrite.Sample{{Value: 1, Timestamp: 1}},
		}
	}
	b := made(t, v2Zstd, series("a_bucket", promwrite.ClassicHistogram), series("a_sum", promwrite.ClassicHistogram),
		series("s_count", promwrite.Summary), series("s", promwrite.Summary), series("g_sum", promwrite.Gauge))
	c, err := Transcode(b, v1Zstd)
	require.NoError(t, err)
	d := decoded(t, c)
	assert.Equal(t, []promwrite.Metadata{
		{Type: promwrite.ClassicHistogram, Family: "a"}, {Type: promwrite.Summary, Family: "s"}, {Type: promwrite.Gauge, Family: "g_sum"},
	}, d.Metadata)
}

func TestSplitKeepsOrderDownToSingleSamples(t *testing.T) {
	for _, f := range []Format{v2Zstd, v1Snappy} {
		whole := made(t, f, append(sampleSeries(5), histogramSeries(2))...)
		var parts []Block
		var split func(b Block)
		split = func(b Block) {
			first, second, err := Split(b)
			if err != nil {
				require.ErrorIs(t, err, ErrIndivisible)
				parts = append(parts, b)
				return
			}
			split(first)
			split(second)
		}
		split(whole)
		require.Len(t, parts, 11)
		times := map[string][]int64{}
		exemplars := 0
		for _, p := range parts {
			assert.Equal(t, "acme", p.Tenant)
			assert.Equal(t, 3, p.Shard)
			assert.Equal(t, 1, p.Samples+p.Histograms)
			assert.Equal(t, p.MinTime, p.MaxTime)
			exemplars += p.Exemplars
			d := decoded(t, p)
			for _, s := range d.Series[0].Samples {
				key := fmt.Sprint(d.Series[0].Labels)
				times[key] = append(times[key], s.Timestamp)
			}
		}
		assert.Len(t, times, 5)
		assert.Equal(t, 5, exemplars)
		for _, of := range times {
			assert.IsIncreasing(t, of)
		}
	}
}

func TestSplitKeepsMetadataOfOne(t *testing.T) {
	b, err := write(Header{}, v1Zstd, sampleSeries(4), []promwrite.Metadata{{Type: promwrite.Gauge, Family: "f", Help: "h"}})
	require.NoError(t, err)
	first, second, err := Split(b)
	require.NoError(t, err)
	assert.Equal(t, 1, first.Metadata)
	assert.Zero(t, second.Metadata)
}

func TestCorruptBodiesAreErrors(t *testing.T) {
	b := New(Header{Version: promwrite.V2, Compression: promwrite.Zstd}, []byte("no zstd"))
	_, err := b.Raw()
	require.Error(t, err)
	_, err = Transcode(b, v1Zstd)
	require.Error(t, err)
	_, _, err = Split(b)
	require.Error(t, err)
	b = New(Header{Version: promwrite.V2, Compression: promwrite.Identity}, []byte{0xff})
	_, err = Transcode(b, v1Zstd)
	require.Error(t, err)
	_, _, err = Split(b)
	require.Error(t, err)
}
