// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// nodeLike returns a request like those of agents: series of one sample with a dozen labels.
func nodeLike(tb testing.TB, version Version, series int) []byte {
	var v1 prompb.WriteRequest
	symbols := writev2.NewSymbolTable()
	var v2 writev2.Request
	for i := range series {
		var labels []prompb.Label
		var refs []uint32
		add := func(name, value string) {
			labels = append(labels, prompb.Label{Name: name, Value: value})
			refs = append(refs, symbols.Symbolize(name), symbols.Symbolize(value))
		}
		add("__name__", fmt.Sprintf("node_cpu_seconds_total_%d", i%50))
		for l := range 9 {
			add(fmt.Sprintf("label_%d", l), fmt.Sprintf("value of %d", (i+l)%100))
		}
		v1.Timeseries = append(v1.Timeseries, prompb.TimeSeries{
			Labels: labels, Samples: []prompb.Sample{{Value: float64(i) + 0.5, Timestamp: 1_700_000_000_000}},
		})
		v2.Timeseries = append(v2.Timeseries, writev2.TimeSeries{
			LabelsRefs: refs, Samples: []writev2.Sample{{Value: float64(i) + 0.5, Timestamp: 1_700_000_000_000, StartTimestamp: 1_699_999_000_000}},
			Metadata: writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: symbols.Symbolize("help")},
		})
	}
	v2.Symbols = symbols.Symbols()
	body, err := v1.Marshal()
	if version == V2 {
		body, err = v2.Marshal()
	}
	require.NoError(tb, err)
	return body
}

func TestDecodeAllocatesOncePerRequest(t *testing.T) {
	for _, version := range []Version{V1, V2} {
		body := nodeLike(t, version, 1000)
		var d Decoder
		allocs := alloctest.PerRun(func() {
			if err := d.Decode(version, body); err != nil || len(d.Series) != 1000 {
				t.Fatal(err, len(d.Series))
			}
		})
		require.LessOrEqual(t, allocs, 1.0, "version %s: the copy that the strings alias, and nothing else", version)
	}
}

func TestDecodeSaysWhatAndWhere(t *testing.T) {
	f := func(version Version, body, want string) {
		t.Helper()
		var d Decoder
		require.EqualError(t, d.Decode(version, []byte(body)), want)
	}
	f(3, "", "cannot decode request of 0 bytes: version 3 is unknown")
	f(V1, "\x0a", "cannot decode request of 1 bytes: after series 0: message ends inside a field")
	f(V1, "\x0a\x05", "cannot decode request of 2 bytes: after series 0: message ends inside a field")
	f(V1, "\x0b", "cannot decode request of 1 bytes: after series 0: wire type is unknown")
	f(V1, "\x00", "cannot decode request of 1 bytes: after series 0: field number is out of range")
	f(V1, "\x08\x01", "cannot decode request of 2 bytes: series 0: wire type does not fit the field")
	f(V1, "\x0a\x04\x0a\x02\x08\x01", "cannot decode request of 6 bytes: series 0: label 0: field 1: wire type does not fit the field")
	f(V1, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "cannot decode request of 11 bytes: after series 0: varint is longer than 64 bits")
	f(V2, "\x22\x01a", "cannot decode request of 3 bytes: symbol 0 is not the empty string")
	f(V2, "\x22\x00\x2a\x04\x0a\x02\x00\x07", "cannot decode request of 8 bytes: series 0: labels_refs: symbol 7 of 1: reference to a symbol that is not there")
	f(V2, "\x22\x00\x2a\x03\x0a\x01\x00", "cannot decode request of 7 bytes: series 0: labels_refs: odd number of label references: names and values must alternate")
	f(V2, "\x22\x00\x2a\x04\x2a\x02\x18\x09", "cannot decode request of 8 bytes: series 0: metadata: field 3: symbol 9 of 1: reference to a symbol that is not there")
	f(V2, "\x2a\x04\x1a\x02\x82\x01", "cannot decode request of 6 bytes: series 0: histogram 0: message ends inside a field")
	f(V2, "\x2a\x06\x1a\x04\x82\x01\x01\x00", "cannot decode request of 8 bytes: series 0: histogram 0: field 16: packed numbers end inside a number")
}

func TestDecodeTakesSymbolsAfterTheirUse(t *testing.T) {
	var d Decoder
	require.NoError(t, d.Decode(V2, []byte("\x2a\x04\x0a\x02\x01\x02\x22\x00\x22\x01a\x22\x01b")))
	require.Equal(t, []Label{{"a", "b"}}, d.Series[0].Labels)
}

// Protobuf permits the fields of a message in any order.
func TestDecodeKeepsLabelsApartFromExemplarsBetweenThem(t *testing.T) {
	const a, b, c = "\x0a\x03\x0a\x01a", "\x0a\x03\x0a\x01b", "\x1a\x05\x0a\x03\x0a\x01c"
	var d Decoder
	require.NoError(t, d.Decode(V1, []byte("\x0a\x11"+a+c+b)))
	require.Equal(t, []Label{{Name: "a"}, {Name: "b"}}, d.Series[0].Labels)
	require.Equal(t, []Label{{Name: "c"}}, d.Series[0].Exemplars[0].Labels)

	const symbols = "\x22\x00\x22\x01a\x22\x01b\x22\x01c"
	require.NoError(t, d.Decode(V2, []byte(symbols+"\x2a\x0e\x0a\x02\x01\x01\x22\x04\x0a\x02\x03\x03\x0a\x02\x02\x02")))
	require.Equal(t, []Label{{"a", "a"}, {"b", "b"}}, d.Series[0].Labels)
	require.Equal(t, []Label{{"c", "c"}}, d.Series[0].Exemplars[0].Labels)
}

func TestDecodeRefusesBodiesOfEmptyMessages(t *testing.T) {
	var d Decoder
	empties := func(tag string, n int) (body string) {
		for range n {
			body += tag + "\x00"
		}
		return body
	}
	require.ErrorIs(t, d.Decode(V1, []byte(empties("\x0a", 50))), errDense)
	require.ErrorIs(t, d.Decode(V2, []byte("\x2a\x64"+empties("\x1a", 50))), errDense)
	require.NoError(t, d.Decode(V1, []byte(empties("\x0a", 1))))
}

func TestDecodeLetsGoOfHugeRequests(t *testing.T) {
	var d Decoder
	require.NoError(t, d.Decode(V1, nodeLike(t, V1, maxRetained/8)))
	require.Greater(t, cap(d.labels), maxRetained)
	require.NoError(t, d.Decode(V1, nil))
	require.Zero(t, cap(d.labels))
}

func BenchmarkDecode(b *testing.B) {
	for _, version := range []Version{V1, V2} {
		b.Run("version="+version.String(), func(b *testing.B) {
			body := nodeLike(b, version, 10_000)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var d Decoder
			for b.Loop() {
				if err := d.Decode(version, body); err != nil || len(d.Series) != 10_000 {
					b.Fatal(err, len(d.Series))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/sample")
		})
	}
}
