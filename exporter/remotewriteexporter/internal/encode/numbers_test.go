// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// fleet returns scrapes of many targets of one shape, whose numbers and times take more bytes now and then.
func fleet(r *rand.Rand, targets int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	families := 1 + r.IntN(5)
	starts, often := r.IntN(2) == 0, 1+r.IntN(200)
	rarely := func() bool { return r.IntN(often) == 0 }
	at := epoch.Add(time.Duration(r.IntN(1e9)))
	for target := range targets {
		rm := md.ResourceMetrics().AppendEmpty()
		a := rm.Resource().Attributes()
		a.PutStr("service.name", "job")
		if rarely() {
			a.PutStr("service.name", fmt.Sprint("job ", r.IntN(500)))
		}
		a.PutStr("service.instance.id", fmt.Sprint(target))
		if rarely() {
			a.PutStr("zone", "another schema")
		}
		sm := rm.ScopeMetrics().AppendEmpty()
		for family := range families {
			m := sm.Metrics().AppendEmpty()
			m.SetName(fmt.Sprint("metric_", family))
			points := m.SetEmptySum().DataPoints()
			m.Sum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			for point := range 1 + family%3 {
				dp := points.AppendEmpty()
				dp.Attributes().PutInt("point", int64(point))
				time := at.Add(time.Duration(target) * time.Millisecond)
				dp.SetTimestamp(pcommon.NewTimestampFromTime(time))
				if starts && !rarely() {
					dp.SetStartTimestamp(dp.Timestamp() - 1e12 - pcommon.Timestamp(r.IntN(1e9)))
				}
				switch r.IntN(4 + often) {
				case 0:
					dp.SetTimestamp(pcommon.Timestamp(1e6 + r.Int64N(1e17)>>r.IntN(50)))
				case 1:
					dp.SetStartTimestamp(pcommon.Timestamp(1 + r.Int64N(1e18)>>r.IntN(50)))
				case 2:
					x := dp.Exemplars().AppendEmpty()
					x.SetTimestamp(dp.Timestamp())
					x.SetDoubleValue(1)
				}
				switch family {
				case 0:
					dp.SetIntValue(0)
				case 1:
					dp.SetDoubleValue(float64(r.IntN(3)))
				case 2:
					dp.SetDoubleValue(math.Float64frombits(r.Uint64()))
				default:
					dp.SetIntValue(r.Int64N(1e6))
				}
			}
		}
	}
	return md
}

// TestCompressionsHoldTheSame: compression relies on what is declared about a request, so a wrong word would be decoded
// as a different request.
func TestCompressionsHoldTheSame(t *testing.T) {
	racetest.Sequential(t)
	v2Snappy2, v2Raw := v2Snappy, v2Snappy
	v2Snappy2.Level, v2Raw.Compression = 2, promwrite.Identity
	for _, pair := range [][2]block.Format{{v2Zstd, v2Snappy2}, {v1Zstd, v1Snappy}, {v2Snappy, v2Raw}} {
		name := fmt.Sprint(pair[0].Version, pair[0].Compression)
		t.Run(name, func(t *testing.T) { compressionsHoldTheSame(t, pair[0], pair[1]) })
	}
}

func compressionsHoldTheSame(t *testing.T, zstdFormat, snappyFormat block.Format) {
	var told [2]int // without labels of a target's own, and with them
	for seed := range uint64(60) {
		change := func(c *Config) {
			r := rand.New(rand.NewPCG(seed, 1))
			c.Cache.Metadata, c.StartTimestamps = r.IntN(3) > 0, true
			c.Cache.TargetInfo = r.IntN(4) == 0
			c.MaxSamples = 1 << (4 + r.IntN(12))
			c.MaxRawBytes = 1 << (10 + r.IntN(12))
			if r.IntN(3) == 0 {
				c.Cache.PromoteResourceAttributes = []string{"*"}
			}
			if r.IntN(3) == 0 {
				c.Names.ExternalLabels = map[string]string{"another_label": strings.Repeat("outside", r.IntN(40))}
			}
		}
		zstd, _ := newEncoder(t, change)
		snappy, _ := newEncoder(t, change)
		r := rand.New(rand.NewPCG(seed, 2))
		for range 2 {
			md := fleet(r, 1+r.IntN(1+r.IntN(600)))
			if seed%2 == 1 {
				makeOwn(md, r)
			}
			require.NoError(t, zstd.Add(md, ""))
			require.NoError(t, snappy.Add(md, ""))
			got, want := flushAll(zstd, zstdFormat), flushAll(snappy, snappyFormat)
			require.Len(t, got, len(want))
			for i := range got {
				a, err := got[i].Raw()
				require.NoError(t, err)
				b, err := want[i].Raw()
				require.NoError(t, err)
				require.True(t, bytes.Equal(a, b), "request %d of seed %d", i, seed)
			}
			decode(t, got)
			require.Equal(t, canonical(decodePrometheus(t, got)), canonical(decodePrometheus(t, want)))
		}
		w := zstd.writer()
		told[seed%2] += len(w.Hints.Known.Runs)
	}
	assert.Greater(t, told[0], 50, "there were no runs: this was no test")
	if zstdFormat.Version == promwrite.V2 {
		assert.Greater(t, told[1], 50, "there were no runs of several series: this was no test")
	}
}

// makeOwn gives the points of each resource, or of most, a label whose value no other has, before the others, after
// them or both. The points of a metric share the value, or have different ones, which are the same in other metrics.
func makeOwn(md pmetric.Metrics, r *rand.Rand) {
	keys, few, each := [][]string{{"a_pod"}, {"the_pod"}, {"a_pod", "the_pod"}}[r.IntN(3)], r.IntN(2) == 0, r.IntN(2) == 0
	for i, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Type() != pmetric.MetricTypeSum {
					continue
				}
				for j, dp := range m.Sum().DataPoints().All() {
					if few && r.IntN(8) == 0 {
						continue
					}
					value := fmt.Sprint("pod-", i)
					if each {
						value = fmt.Sprint("pod-", i, "-", j)
					}
					for _, key := range keys {
						dp.Attributes().PutStr(key, value)
					}
				}
			}
		}
	}
}

// TestMessagesAreInPiecesThatServersTake: Mimir requires the references of labels in complete pairs, and the name
// before the metadata.
func TestMessagesAreInPiecesThatServersTake(t *testing.T) {
	several := 0
	for seed := range uint64(20) {
		e, _ := newEncoder(t, func(c *Config) { c.StartTimestamps = true })
		r := rand.New(rand.NewPCG(seed, 2))
		md := fleet(r, 300)
		if seed%2 == 0 {
			makeOwn(md, r)
		}
		require.NoError(t, e.Add(md, ""))
		for _, b := range flushAll(e, v2Zstd) {
			raw, err := b.Raw()
			require.NoError(t, err)
			var symbols []string
			eachField(t, raw, func(tag byte, content []byte) {
				switch wire.Tag(tag) {
				case wire.SymbolV2:
					symbols = append(symbols, string(content))
				case wire.SeriesV2:
					named, pieces := false, 0
					eachField(t, content, func(tag byte, content []byte) {
						switch wire.Tag(tag) {
						case wire.RefsV2:
							pieces++
							n := 0
							for ; len(content) > 0; n++ {
								ref, size := binary.Uvarint(content)
								content = content[size:]
								named = named || n%2 == 0 && symbols[ref] == names.NameLabel
							}
							require.Zero(t, n%2)
						case wire.MetaV2:
							require.True(t, named)
						}
					})
					if pieces > 1 {
						several++
					}
				}
			})
		}
	}
	assert.Greater(t, several, 1000, "there were no pieces: this was no test")
}

// eachField yields the fields of a message that hold bytes.
func eachField(t *testing.T, message []byte, yield func(tag byte, content []byte)) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeField(message)
		require.Positive(t, n)
		if kind == protowire.BytesType {
			_, _, head := protowire.ConsumeTag(message)
			content, _ := protowire.ConsumeBytes(message[head:])
			yield(byte(number<<3)|byte(kind), content)
		}
		message = message[n:]
	}
}

// TestNumbersComeBack: each number, with its times, has its labels, including those of a target's own.
func TestNumbersComeBack(t *testing.T) {
	racetest.Sequential(t)
	for _, f := range []block.Format{v2Zstd, v1Zstd} {
		t.Run(f.Version.String(), func(t *testing.T) { numbersComeBack(t, f) })
	}
}

func numbersComeBack(t *testing.T, f block.Format) {
	type key struct {
		instance, name, point string
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		md := fleet(r, 300)
		if seed%2 == 1 {
			makeOwn(md, r)
		}
		e, _ := newEncoder(t, func(c *Config) { c.StartTimestamps = true })
		require.NoError(t, e.Add(md, ""))
		want := map[key]string{}
		for _, rm := range md.ResourceMetrics().All() {
			instance, _ := rm.Resource().Attributes().Get("service.instance.id")
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, dp := range m.Sum().DataPoints().All() {
					point, _ := dp.Attributes().Get("point")
					value := dp.DoubleValue()
					if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
						value = float64(dp.IntValue())
					}
					start := int64(0)
					if dp.StartTimestamp() != 0 && f.Version == promwrite.V2 {
						start = max(1, int64(dp.StartTimestamp()/1e6))
					}
					var pods strings.Builder
					for _, name := range []string{"a_pod", "the_pod"} {
						if pod, ok := dp.Attributes().Get(name); ok {
							pods.WriteString(pod.Str())
						}
					}
					want[key{instance.Str(), m.Name() + "_total", point.AsString()}] = fmt.Sprint(math.Float64bits(value), int64(dp.Timestamp()/1e6), start, pods.String())
				}
			}
		}
		series, _ := decode(t, flushAll(e, f))
		got := map[key]string{}
		for _, s := range series {
			label := map[string]string{}
			for _, l := range s.Labels {
				label[l.Name] = l.Value
			}
			require.Len(t, s.Samples, 1)
			p := s.Samples[0]
			got[key{label["instance"], label["__name__"], label["point"]}] = fmt.Sprint(math.Float64bits(p.Value), p.Timestamp, p.StartTimestamp, label["a_pod"]+label["the_pod"])
		}
		require.Equal(t, want, got)
	}
}
