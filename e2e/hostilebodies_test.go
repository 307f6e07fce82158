// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/e2e/wait"
)

// Protobuf fields, written by hand: no library would write such mistakes.

func field(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

func text(number protowire.Number, s string) []byte { return field(number, []byte(s)) }

func varint(number protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), v)
}

func fixed(number protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, number, protowire.Fixed64Type), v)
}

func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func packed(number protowire.Number, values ...uint64) []byte {
	var b []byte
	for _, v := range values {
		b = protowire.AppendVarint(b, v)
	}
	return field(number, b)
}

// absent holds the bits of a NaN that some use for a missing value.
const absent = 0x7ff0000000000003

// nothings returns n empty messages: two bytes each here, and more memory once decoded.
func nothings(number protowire.Number, n int) []byte { return bytes.Repeat(field(number, nil), n) }

// metrics returns an OTLP request of one resource and one scope with these metrics.
func metrics(all ...[]byte) []byte {
	var scope []byte
	for _, m := range all {
		scope = append(scope, field(2, m)...)
	}
	return field(1, field(2, scope))
}

// kind returns an OTLP metric of a kind with its points.
func kind(name string, number protowire.Number, body ...[]byte) []byte {
	return cat(text(1, name), field(number, cat(body...)))
}

const (
	gaugeKind, sumKind, histogramKind, exponentialKind, summaryKind = 5, 7, 9, 10, 11
	// An ordinary time in nanoseconds.
	someTime = 1_800_000_000_000_000_000
)

func keyValue(key string, value []byte) []byte { return cat(text(1, key), field(2, value)) }

// nested returns an attribute's value with values nested this deep.
func nested(depth int) []byte {
	value := text(1, "deep")
	for range depth {
		value = field(6, field(1, keyValue("k", value))) // a key-value list
	}
	return value
}

// otlpBodies are malicious requests with metrics.
var otlpBodies = []struct {
	name string
	body func() []byte
}{
	{"garbage", func() []byte { return noise(1 << 20) }},
	{"truncated", func() []byte { b := metrics(kind("m", gaugeKind, field(1, fixed(3, someTime)))); return b[:len(b)-3] }},
	{"nested attributes", func() []byte {
		return metrics(kind("m", gaugeKind, field(1, cat(fixed(3, someTime), fixed(4, 0), field(7, keyValue("k", nested(5_000)))))))
	}},
	{"60,000 attributes", func() []byte {
		point := cat(fixed(3, someTime), fixed(4, 0))
		for i := range 60_000 {
			point = append(point, field(7, keyValue(fmt.Sprintf("label_%d", i), text(1, "v")))...)
		}
		return metrics(kind("m", gaugeKind, field(1, point)))
	}},
	{"the same attribute 60,000 times", func() []byte {
		point := cat(fixed(3, someTime), fixed(4, 0), bytes.Repeat(field(7, keyValue("k", text(1, "v"))), 60_000))
		return metrics(kind("m", sumKind, field(1, point), varint(2, 2), varint(3, 1)))
	}},
	{"odd NaN", func() []byte {
		return metrics(
			kind("m", gaugeKind, field(1, cat(fixed(3, someTime), fixed(4, absent)))),
			kind("n", sumKind, field(1, cat(fixed(3, someTime), fixed(4, absent))), varint(2, 2), varint(3, 1)),
			kind("h", histogramKind, field(1, cat(fixed(3, someTime), fixed(4, 3), fixed(5, absent))), varint(2, 2)),
		)
	}},
	{"one name of every type", func() []byte {
		point := cat(fixed(3, someTime), fixed(4, math.Float64bits(1)))
		return metrics(
			kind("m", gaugeKind, field(1, point)), kind("m", sumKind, field(1, point), varint(2, 2), varint(3, 1)),
			kind("m", histogramKind, field(1, cat(fixed(3, someTime), fixed(4, 1), field(6, binary.LittleEndian.AppendUint64(nil, 1)))), varint(2, 2)),
			kind("m", exponentialKind, field(1, cat(fixed(3, someTime), fixed(4, 1), field(8, packed(2, 1)))), varint(2, 2)),
			kind("m", summaryKind, field(1, cat(fixed(3, someTime), fixed(4, 1)))),
		)
	}},
	{"wide exponential histograms", func() []byte {
		counts := make([]uint64, 100_000)
		for i := range counts {
			counts[i] = 1
		}
		point := func(scale, offset uint64) []byte {
			return field(1, cat(fixed(3, someTime), fixed(4, 100_000), varint(6, protowire.EncodeZigZag(int64(int32(scale)))),
				field(8, cat(varint(1, offset), packed(2, counts...)))))
		}
		return metrics(kind("m", exponentialKind, point(20, protowire.EncodeZigZag(math.MaxInt32)), point(math.MaxUint32-10, 0),
			point(math.MaxInt32, protowire.EncodeZigZag(math.MinInt32)), varint(2, 2)))
	}},
	{"histograms whose bounds and counts disagree", func() []byte {
		bounds := make([]byte, 8*10_000)
		return metrics(kind("m", histogramKind, field(1, cat(fixed(3, someTime), fixed(4, 1), field(7, bounds))), varint(2, 2)))
	}},
	{"nothing but resources", func() []byte { return nothings(1, 1_000_000) }},
	{"nothing but scopes", func() []byte { return field(1, nothings(2, 1_000_000)) }},
	{"nothing but metrics", func() []byte { return field(1, field(2, nothings(2, 1_000_000))) }},
	{"nothing but points", func() []byte { return metrics(kind("m", gaugeKind, nothings(1, 1_000_000))) }},
	{"nothing but wide points", func() []byte { return metrics(kind("m", exponentialKind, nothings(1, 300_000), varint(2, 2))) }},
	{"nothing but attributes", func() []byte {
		return metrics(kind("m", gaugeKind, field(1, cat(fixed(3, someTime), nothings(7, 500_000)))))
	}},
	{"new series without end", churn},
	{"attributes in another order each time", shuffled},
	{"names that are no UTF-8", func() []byte {
		return metrics(kind("\xff\xfe", gaugeKind, field(1, cat(fixed(3, someTime), fixed(4, 0), field(7, keyValue("\xff", text(1, "\xff")))))))
	}},
	{"a name of a megabyte", func() []byte {
		return metrics(kind(string(bytes.Repeat([]byte("m"), 1<<20)), gaugeKind, field(1, cat(fixed(3, someTime), fixed(4, 0)))))
	}},
	{"times beyond time", func() []byte {
		return metrics(kind("m", sumKind, field(1, cat(fixed(2, math.MaxUint64), fixed(3, 0), fixed(4, 0))),
			field(1, cat(fixed(2, 0), fixed(3, math.MaxUint64), fixed(4, 0))), varint(2, 9), varint(3, 1)))
	}},
}

// fresh are the cases with another body each time.
var fresh = []string{"new series without end", "attributes in another order each time"}

// shuffled returns a point of tens of thousands of attributes: the same names each time, but in another order, and
// another number of them.
func shuffled() []byte {
	names := rand.Perm(30_000)
	point := cat(fixed(3, someTime), fixed(4, 0))
	for _, i := range names[:20_000+rand.IntN(10_000)] {
		point = append(point, field(7, keyValue(fmt.Sprintf("label_%d", i), text(1, "v")))...)
	}
	return metrics(kind("m", gaugeKind, field(1, point)))
}

// churn returns a thousand new series.
func churn() []byte {
	var points []byte
	for range 1000 {
		points = append(points, field(1, cat(fixed(3, someTime), fixed(4, 0), field(7, keyValue("id", text(1, fmt.Sprint(newName.Add(1)))))))...)
	}
	return metrics(kind("churning", gaugeKind, points))
}

// oldSeries returns a series of remote write 1.0 with labels and parts such as samples.
func oldSeries(labels int, parts ...[]byte) []byte {
	series := field(1, cat(text(1, "__name__"), text(2, "m")))
	for i := range labels {
		series = append(series, field(1, cat(text(1, fmt.Sprintf("label_%06d", i)), text(2, "v")))...)
	}
	return field(1, cat(series, cat(parts...)))
}

// newSeries returns a series of remote write 2.0 with its symbols.
func newSeries(parts ...[]byte) []byte {
	return cat(text(4, ""), text(4, "__name__"), text(4, "m"), field(5, cat(packed(1, 1, 2), cat(parts...))))
}

const someMillisecond = someTime / 1_000_000

// writeBodies are malicious requests of remote write; some are not valid snappy or zstd.
var writeBodies = []struct {
	name string
	v2   bool
	// encoding defaults to snappy. raw is sent as it is, body is compressed first.
	encoding  string
	raw, body func() []byte
}{
	{name: "garbage", raw: func() []byte { return noise(1 << 20) }},
	{name: "compressed garbage", body: func() []byte { return noise(1 << 20) }},
	{name: "2.0 compressed garbage", v2: true, body: func() []byte { return noise(1 << 20) }},
	{name: "snappy that claims 4 GiB", raw: func() []byte { return binary.AppendUvarint(nil, math.MaxUint32) }},
	{name: "snappy bomb", raw: func() []byte { return pack("snappy", make([]byte, 1<<20), 64) }},
	{name: "zstd bomb", encoding: "zstd", raw: func() []byte { return pack("zstd", make([]byte, 1<<20), 1024) }},
	{name: "zstd window of 1 GiB", encoding: "zstd", raw: func() []byte { return []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xa0, 1, 0, 0, 0} }},
	{name: "truncated", body: func() []byte {
		b := oldSeries(3, field(2, cat(fixed(1, 0), varint(2, someMillisecond))))
		return b[:len(b)-2]
	}},
	{name: "60,000 labels", body: func() []byte { return oldSeries(60_000, field(2, cat(fixed(1, 0), varint(2, someMillisecond)))) }},
	{name: "odd NaN", body: func() []byte { return oldSeries(1, field(2, cat(fixed(1, absent), varint(2, someMillisecond)))) }},
	{name: "nothing but series", body: func() []byte { return nothings(1, 1_000_000) }},
	{name: "nothing but labels", body: func() []byte { return field(1, nothings(1, 1_000_000)) }},
	{name: "nothing but samples", body: func() []byte { return oldSeries(1, nothings(2, 1_000_000)) }},
	{name: "nothing but histograms", body: func() []byte { return oldSeries(1, nothings(4, 1_000_000)) }},
	{name: "nothing but metadata", body: func() []byte { return nothings(3, 1_000_000) }},
	{name: "2.0 nothing but series", v2: true, body: func() []byte { return cat(text(4, ""), nothings(5, 1_000_000)) }},
	{name: "2.0 nothing but samples", v2: true, body: func() []byte { return newSeries(nothings(2, 1_000_000)) }},
	{name: "2.0 nothing but histograms", v2: true, body: func() []byte { return newSeries(nothings(3, 1_000_000)) }},
	{name: "2.0 nothing but symbols", v2: true, body: func() []byte { return nothings(4, 1_000_000) }},
	{name: "2.0 symbols that are not there", v2: true, body: func() []byte {
		return cat(text(4, ""), field(5, packed(1, 1, math.MaxUint32, math.MaxUint64, 5)))
	}},
	{name: "2.0 one symbol for a million labels", v2: true, body: func() []byte {
		refs := make([]uint64, 1_000_000)
		for i := range refs {
			refs[i] = uint64(1 + i%2)
		}
		return cat(text(4, ""), text(4, "__name__"), text(4, string(bytes.Repeat([]byte("m"), 1000))), field(5, packed(1, refs...)))
	}},
	{name: "2.0 a megabyte for each of many series", v2: true, body: func() []byte {
		return cat(longSymbol(), bytes.Repeat(field(5, cat(packed(1, 1, 2, 3, 3), field(2, varint(2, someMillisecond)))), 200_000))
	}},
	{name: "2.0 a megabyte for each of many exemplars", v2: true, body: func() []byte {
		return cat(longSymbol(), bytes.Repeat(field(5, cat(packed(1, 1, 2, 3, 3), field(4, varint(3, someMillisecond)))), 200_000))
	}},
	{name: "2.0 spans without end", v2: true, body: func() []byte {
		span := field(11, cat(varint(1, protowire.EncodeZigZag(math.MaxInt32)), varint(2, math.MaxUint32)))
		return newSeries(field(3, cat(varint(1, 1), fixed(3, 0), varint(4, protowire.EncodeZigZag(3)), span, span, packed(12, 2), varint(15, someMillisecond))))
	}},
	{name: "2.0 one name of every type", v2: true, body: func() []byte {
		return cat(
			newSeries(field(2, cat(fixed(1, 0), varint(2, someMillisecond)))),
			field(5, cat(packed(1, 1, 2), field(3, cat(varint(1, 1), fixed(3, 0), varint(4, 2), varint(6, 1), varint(15, someMillisecond))))),
		)
	}},
}

// longSymbol returns symbols of 2.0, one of which is a megabyte long.
func longSymbol() []byte {
	return cat(text(4, ""), text(4, "__name__"), text(4, "m"), text(4, string(bytes.Repeat([]byte("m"), 1<<20))))
}

// pack compresses b repeated so many times; except for snappy, only one copy is in memory.
func pack(encoding string, b []byte, times int) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "snappy":
		return snappy.Encode(nil, bytes.Repeat(b, times))
	case "zstd":
		w, _ = zstd.NewWriter(&out) // without options there is no error
	case "gzip":
		w = gzip.NewWriter(&out)
	default:
		return bytes.Repeat(b, times)
	}
	for range times {
		_, _ = w.Write(b) // a buffer accepts everything
	}
	_ = w.Close()
	return out.Bytes()
}

// pelt sends a body again and again, a few times a second.
func pelt(ctx context.Context, addr, head string, body []byte) {
	message := append(fmt.Appendf(nil, "%sContent-Length: %d\r\nConnection: close\r\n\r\n", head, len(body)), body...)
	for ctx.Err() == nil {
		shout(ctx, addr, message)
		wait.Pause(ctx, 4*blowPause)
	}
}
