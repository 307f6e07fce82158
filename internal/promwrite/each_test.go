// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// checkEach compares what Each yields with Decode, series by series, including errors.
func checkEach(t *testing.T, version Version, body []byte) {
	var whole, single Decoder
	wantErr := whole.Decode(version, body)
	at := 0
	err := single.Each(version, string(body), Size{}, func(s *Series) error {
		encoded := s.Encoded
		if s.Labels == nil {
			if err := single.DecodeLabels(version, s); err != nil {
				return err
			}
		}
		if version == V2 && encoded != "" {
			require.Equal(t, s.Labels, nextLabels(t, &single, encoded))
		}
		require.Equal(t, encoded != "", s.Rest != "")
		if s.Rest != "" {
			require.True(t, strings.HasSuffix(string(body), s.Rest))
			_, sample, ok := checkUsual(t, version, s.Rest)
			if want := s.Samples[0]; ok {
				require.Equal(t, math.Float64bits(want.Value), math.Float64bits(sample.Value))
				sample.Value, want.Value = 0, 0
				require.Equal(t, want, sample)
			}
		}
		s.Encoded, s.Rest = "", ""
		if wantErr == nil {
			require.Empty(t, diff(whole.Series[at:at+1], []Series{*s}), "series %d", at)
		}
		at++
		return nil
	})
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error())
		require.Empty(t, single.Series)
		return
	}
	require.NoError(t, err)
	require.Len(t, whole.Series, at)
	require.Empty(t, diff(whole.Metadata, single.Metadata))
	require.Empty(t, single.Series)
}

// checkEachUsual compares what EachUsual yields with Decode, up to where it ends. It reports whether that is the end of
// the request.
func checkEachUsual(t *testing.T, version Version, body []byte) bool {
	var whole, single Decoder
	wantErr := whole.Decode(version, body)
	at := 0
	err := single.EachUsual(version, string(body), func(s *Series) error {
		require.NotEmpty(t, s.Encoded)
		if err := single.DecodeLabels(version, s); err != nil {
			return err
		}
		s.Encoded, s.Rest = "", ""
		if wantErr == nil {
			require.Empty(t, diff(whole.Series[at:at+1], []Series{*s}), "series %d", at)
		}
		at++
		return nil
	})
	require.Empty(t, single.Series)
	require.False(t, single.unmeasured)
	if err != nil {
		return false
	}
	require.NoError(t, wantErr)
	require.Len(t, whole.Series, at)
	require.Empty(t, whole.Metadata)
	return true
}

// Series of an unmeasured request are yielded like others, as far as possible. Those that could take more memory than
// is counted for them are not.
func TestEachUsualYieldsWhatDecodeDoes(t *testing.T) {
	for seed := range uint64(300) {
		dice := newDice(seed)
		body, err := dice.v1().Marshal()
		require.NoError(t, err)
		checkEachUsual(t, V1, body)
		body, err = dice.v2().Marshal()
		require.NoError(t, err)
		checkEachUsual(t, V2, body)
	}
	for _, version := range []Version{V1, V2} {
		require.True(t, checkEachUsual(t, version, usualBody(t, version, 10)))
		body := nodeLike(t, version, 3)
		require.True(t, checkEachUsual(t, version, body))
		for n := range body { // truncated, and with a flipped bit in each byte
			checkEachUsual(t, version, body[:n])
			body[n] ^= 1 << (n % 8)
			checkEachUsual(t, version, body)
			body[n] ^= 1 << (n % 8)
		}
	}
	v2 := string(usualBody(t, V2, 2))
	symbols, err := (&writev2.Request{Symbols: []string{"", "__name__", "x"}}).Marshal()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(v2, string(symbols)))
	const sample = "\x12\x10\x09\x00\x00\x00\x00\x00\x00\x00\x00\x10\xc0\xd0\xb2\xcf\xbc\x31"
	long := strings.Repeat("\x0a\x00", maxUsualLabels/2+1) + sample
	for name, c := range map[string]struct {
		version Version
		body    string
	}{
		"symbols behind series":  {V2, v2[len(symbols):] + string(symbols)},
		"symbols between series": {V2, v2 + "\x22\x01y"},
		"another first symbol":   {V2, "\x22\x01y" + v2},
		"many symbols":           {V2, "\x22\x00" + strings.Repeat("\x22\x00", maxUsualSymbols) + v2},
		"metadata":               {V1, "\x1a\x00"},
		"an exemplar":            {V1, "\x0a\x02\x1a\x00"},
		"many samples":           {V1, "\x0a" + string(binary.AppendUvarint(nil, uint64(len(sample)*(maxUsualSamples+1)))) + strings.Repeat(sample, maxUsualSamples+1)},
		"many labels":            {V1, "\x0a" + string(binary.AppendUvarint(nil, uint64(len(long)))) + long},
	} {
		require.False(t, checkEachUsual(t, c.version, []byte(c.body)), name)
	}
}

// checkUsual parses the first series of a message, if it has the usual form, and returns the rest after its first
// sample.
func checkUsual(t *testing.T, version Version, msg string) (rest string, sample Sample, ok bool) {
	series, rest, ok := SeriesAt(version, msg)
	if !ok {
		return "", sample, false
	}
	require.True(t, strings.HasSuffix(msg, rest))
	if version == V2 {
		_, series, ok = RefsAt(series)
	} else {
		for isShort(series, labelsTag) {
			series = series[2+int(series[1]):]
		}
	}
	if !ok {
		return "", sample, false
	}
	sample, _, ok = SampleAt(version, series)
	return rest, sample, ok
}

// Reading samples one after the other has the same result as reading each alone, whatever the previous ones were.
func TestSamplesOneAfterTheOther(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 3))
	for _, version := range []Version{V1, V2} {
		var usual [][]byte
		for _, at := range []int64{1_700_000_000_000, 1_700_000_000_001, 1 << 35, 1<<42 - 1, 1, 0, -1} {
			for _, start := range []int64{0, 1_600_000_000_000} {
				one := writev2.Sample{Value: r.Float64() * float64(r.IntN(3)), Timestamp: at, StartTimestamp: start}
				b, err := one.Marshal()
				require.NoError(t, err)
				usual = append(usual, append([]byte{samplesTag, byte(len(b))}, b...))
			}
		}
		reader, taken := SampleReader{Version: version}, 0
		for range 20_000 {
			msg := slices.Clone(usual[r.IntN(len(usual))])
			switch r.IntN(4) {
			case 0:
				msg[r.IntN(len(msg))] ^= 1 << r.IntN(8)
			case 1:
				clear(msg[r.IntN(len(msg)):])
			case 2:
				msg = msg[:r.IntN(len(msg)+1)]
			}
			msg = append(msg, make([]byte, r.IntN(3))...)
			if r.IntN(20) == 0 {
				reader = SampleReader{Version: version}
			}
			want, wantRest, wantOK := SampleAt(version, string(msg))
			got, rest, ok := reader.Next(string(msg))
			require.Equal(t, wantOK, ok)
			if ok {
				require.Equal(t, []any{math.Float64bits(want.Value), want.Timestamp, want.StartTimestamp, wantRest}, []any{math.Float64bits(got.Value), got.Timestamp, got.StartTimestamp, rest})
				taken++
			}
		}
		require.Greater(t, taken, 1000)
	}
}

// Skipped series are not yielded, and all others are.
func TestSkippedSeries(t *testing.T) {
	for _, version := range []Version{V1, V2} {
		var want []Sample
		body := usualBody(t, version, 10)
		var d Decoder
		require.NoError(t, d.Each(version, string(body), Size{}, func(s *Series) error {
			want = append(want, s.Samples...)
			return nil
		}))
		require.Len(t, want, 10)
		var got []Sample
		require.NoError(t, d.Each(version, string(body), Size{}, func(s *Series) error {
			got = append(got, s.Samples...)
			if len(got) == 3 {
				rest, n := s.Rest, 0
				for ; n < 4; n++ {
					next, sample, ok := checkUsual(t, version, rest)
					require.True(t, ok)
					require.Equal(t, want[2+n], sample)
					rest = next
				}
				d.Skip(n, len(s.Rest)-len(rest))
			}
			return nil
		}))
		require.Equal(t, append(slices.Clone(want[:3]), want[6:]...), got)
	}
}

// usualBody returns a request of n series in the usual form.
func usualBody(t *testing.T, version Version, n int) (body []byte) {
	var v1 prompb.WriteRequest
	v2 := writev2.Request{Symbols: []string{"", "__name__", "x"}}
	for i := range n {
		at, start := int64(1_700_000_000_000+i), int64(i%2)*1_600_000_000_000
		v1.Timeseries = append(v1.Timeseries, prompb.TimeSeries{
			Labels: []prompb.Label{{Name: "__name__", Value: "x"}}, Samples: []prompb.Sample{{Value: float64(i), Timestamp: at}},
		})
		v2.Timeseries = append(v2.Timeseries, writev2.TimeSeries{
			LabelsRefs: []uint32{1, 2}, Samples: []writev2.Sample{{Value: float64(i), Timestamp: at, StartTimestamp: start}},
		})
	}
	var err error
	if version == V1 {
		body, err = v1.Marshal()
	} else {
		body, err = v2.Marshal()
	}
	require.NoError(t, err)
	return body
}

// nextLabels decodes labels one by one.
func nextLabels(t *testing.T, d *Decoder, encoded string) (all []Label) {
	for encoded != "" {
		l, rest, ok := d.NextLabel(encoded)
		require.True(t, ok)
		all, encoded = append(all, l), rest
	}
	return all
}

func TestEachYieldsWhatDecodeDoes(t *testing.T) {
	for seed := range uint64(300) {
		dice := newDice(seed)
		body, err := dice.v1().Marshal()
		require.NoError(t, err)
		checkEach(t, V1, body)
		body, err = dice.v2().Marshal()
		require.NoError(t, err)
		checkEach(t, V2, body)
	}
	for _, version := range []Version{V1, V2} {
		body := nodeLike(t, version, 3)
		for n := range body { // truncated, and with a flipped bit in each byte
			checkEach(t, version, body[:n])
			body[n] ^= 1 << (n % 8)
			checkEach(t, version, body)
			body[n] ^= 1 << (n % 8)
		}
	}
}

// TestEachLeavesLabelsOfSenders: labels in their usual form are left encoded.
func TestEachLeavesLabelsOfSenders(t *testing.T) {
	for _, version := range []Version{V1, V2} {
		body := string(nodeLike(t, version, 1000))
		var d Decoder
		left := 0
		count := func(s *Series) error { //nolint:unparam // it is what Each takes
			if s.Encoded != "" && len(s.Samples) == 1 && s.Labels == nil {
				left++
			}
			return nil
		}
		require.NoError(t, d.Each(version, body, Size{}, count))
		require.Equal(t, 1000, left)
		require.LessOrEqual(t, alloctest.PerRun(func() {
			if err := d.Each(version, body, Size{}, count); err != nil {
				t.Fatal(err)
			}
		}), 0.5)
	}
}

func TestEachStopsWhereItIsTold(t *testing.T) {
	no := errors.New("no more")
	for _, version := range []Version{V1, V2} {
		var d Decoder
		n := 0
		err := d.Each(version, string(nodeLike(t, version, 10)), Size{}, func(*Series) error {
			if n++; n == 3 {
				return no
			}
			return nil
		})
		require.ErrorIs(t, err, no)
		require.ErrorContains(t, err, "series 2: no more")
		require.Equal(t, 3, n)
	}
}

func TestEachRefusesBodiesOfEmptyMessages(t *testing.T) {
	for _, c := range []struct {
		version Version
		body    string
	}{
		{V1, strings.Repeat("\x0a\x00", 50)},
		{V2, strings.Repeat("\x2a\x00", 50)},
		{V2, "\x2a\x64" + strings.Repeat("\x1a\x00", 50)},
		{V2, strings.Repeat("\x2a\x0c"+strings.Repeat("\x1a\x00", 6), 9)},
	} {
		var d Decoder
		require.ErrorIs(t, d.Each(c.version, c.body, Size{}, func(*Series) error { return nil }), errDense)
		checkEach(t, c.version, []byte(c.body))
	}
}

// The labels of the first series of a request do not occupy memory for the next ones.
func TestSeriesAreDecodedInTheSameMemory(t *testing.T) {
	var d Decoder
	var lengths []int
	require.NoError(t, d.Each(V1, string(nodeLike(t, V1, 100)), Size{}, func(s *Series) error {
		require.NoError(t, d.DecodeLabels(V1, s))
		lengths = append(lengths, len(s.Labels), cap(d.labels))
		return nil
	}))
	require.Less(t, slices.Max(lengths), 64)
}

func BenchmarkEach(b *testing.B) {
	for _, version := range []Version{V1, V2} {
		b.Run("version="+version.String(), func(b *testing.B) {
			body := string(nodeLike(b, version, 10_000))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var d Decoder
			n := 0
			count := func(*Series) error {
				n++
				return nil
			}
			for b.Loop() {
				if err := d.Each(version, body, Size{}, count); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/sample")
		})
	}
}
