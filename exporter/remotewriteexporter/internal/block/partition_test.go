// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// placed returns the destinations of a series, computed in a slow way.
func placed(s *promwrite.Series, destinations []string, replicas int, decides func(label string) bool) []int {
	var hash uint64
	for _, l := range s.Labels {
		if decides(l.Name) {
			hash += pair(xxh3.HashString(l.Name), xxh3.HashString(l.Value))
		}
	}
	order := make([]int, len(destinations))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return -cmp.Compare(mix(hash^xxh3.HashString(destinations[a])), mix(hash^xxh3.HashString(destinations[b])))
	})
	return order[:replicas]
}

func anyLabel(string) bool { return true }

// severalSeries returns series of all kinds, with many symbols and few.
func severalSeries(random *rand.Rand, n int) []promwrite.Series {
	var series []promwrite.Series
	for i := range n {
		one := sampleSeries(i + 1)[i]
		for range random.IntN(4) {
			one.Labels = append(one.Labels, promwrite.Label{Name: fmt.Sprintf("label_%d", random.IntN(1000)), Value: fmt.Sprint(random.IntN(5))})
		}
		switch random.IntN(4) {
		case 0:
			one.Samples, one.Histograms = nil, histogramSeries(2).Histograms
		case 1:
			one.Exemplars, one.Help, one.Unit = nil, "", ""
		}
		series = append(series, one)
	}
	return series
}

// TestPartsAreTheWhole: each destination gets its series, unchanged and in order.
func TestPartsAreTheWhole(t *testing.T) {
	racetest.Sequential(t)
	destinations := []string{"a", "b", "c", "d", "e"}
	random := rand.New(rand.NewPCG(1, 2))
	for _, f := range []Format{v2Zstd, v2Snappy, v1Zstd, v1Snappy} {
		for _, n := range []int{0, 1, 3, 200} {
			whole := made(t, f, severalSeries(random, n)...)
			series := decoded(t, whole)
			for replicas := 1; replicas <= len(destinations); replicas++ {
				for name, c := range map[string]struct {
					labels  []string
					ignored bool
					decides func(string) bool
				}{
					"all":     {nil, true, anyLabel},
					"some":    {[]string{"code"}, false, func(l string) bool { return l == "code" }},
					"but one": {[]string{"code"}, true, func(l string) bool { return l != "code" }},
				} {
					parts, err := Partition(whole, NewSpread(destinations, replicas, c.labels, c.ignored), 1)
					require.NoError(t, err)
					require.Len(t, parts, len(destinations))
					samples, histograms := 0, 0
					for i, part := range parts {
						var want []promwrite.Series
						for j := range series.Series {
							if slices.Contains(placed(&series.Series[j], destinations, replicas, c.decides), i) {
								want = append(want, series.Series[j])
							}
						}
						if len(want) == 0 {
							require.Zero(t, part.Samples+part.Histograms)
							continue
						}
						got := decoded(t, part)
						assert.Equal(t, want, got.Series, name)
						require.Equal(t, [2]any{whole.Shard, whole.Tenant}, [2]any{part.Shard, part.Tenant})
						var count Header
						for j := range want {
							count.Samples += len(want[j].Samples)
							count.Histograms += len(want[j].Histograms)
							count.Exemplars += len(want[j].Exemplars)
						}
						require.Equal(t, [3]int{count.Samples, count.Histograms, count.Exemplars}, [3]int{part.Samples, part.Histograms, part.Exemplars})
						samples, histograms = samples+part.Samples, histograms+part.Histograms
					}
					require.Equal(t, [2]int{replicas * whole.Samples, replicas * whole.Histograms}, [2]int{samples, histograms})
				}
			}
		}
	}
}

// TestASeriesStays: in both versions, in whatever order its destinations are listed, and when another one is added or
// removed.
func TestASeriesStays(t *testing.T) {
	const n, replicas = 2000, 2
	series := sampleSeries(n)
	where := func(f Format, destinations ...string) []map[string]bool {
		parts, err := Partition(made(t, f, series...), NewSpread(destinations, replicas, nil, true), 1)
		require.NoError(t, err)
		at := make([]map[string]bool, n)
		for i, part := range parts {
			d := decoded(t, part)
			for j := range d.Series {
				code := 0
				_, err := fmt.Sscan(d.Series[j].Labels[1].Value, &code)
				require.NoError(t, err)
				if at[code] == nil {
					at[code] = map[string]bool{}
				}
				at[code][destinations[i]] = true
			}
		}
		return at
	}
	before := where(v2Zstd, "a", "b", "c", "d")
	require.Equal(t, before, where(v1Snappy, "a", "b", "c", "d"))
	require.Equal(t, before, where(v2Zstd, "d", "b", "a", "c"))
	counts, moved := map[string]int{}, 0
	for i, after := range where(v2Zstd, "a", "b", "c", "d", "e") {
		require.Len(t, after, replicas)
		for d := range after {
			counts[d]++
			if !before[i][d] {
				moved++
				require.Equal(t, "e", d, "it moves to the new one, or not at all")
			}
		}
	}
	require.InDelta(t, n*replicas/5, moved, n*replicas/50)
	for d, count := range counts {
		require.InDelta(t, n*replicas/5, count, n*replicas/50, d)
	}
}

func TestPartsGetTheMetadataOfOne(t *testing.T) {
	want := []promwrite.Metadata{{Type: promwrite.Gauge, Family: "f", Help: "h"}}
	for _, n := range []int{0, 50} {
		b, err := write(Header{}, v1Zstd, sampleSeries(n), want)
		require.NoError(t, err)
		parts, err := Partition(b, NewSpread([]string{"a", "b"}, 1, nil, true), 1)
		require.NoError(t, err)
		for _, part := range parts {
			require.Equal(t, 1, part.Metadata)
			got := decoded(t, part)
			require.Equal(t, want, got.Metadata)
		}
	}
}

// FuzzPartition: for any input, there is an error or as many points as before.
func FuzzPartition(f *testing.F) {
	for _, format := range []Format{{Version: promwrite.V2}, {Version: promwrite.V1}} {
		b := made(f, format, append(sampleSeries(3), histogramSeries(2))...)
		raw, err := b.Raw()
		require.NoError(f, err)
		f.Add(format.Version == promwrite.V2, raw)
	}
	spread := NewSpread([]string{"a", "b", "c"}, 2, []string{"code"}, true)
	f.Fuzz(func(t *testing.T, two bool, raw []byte) {
		b := New(Header{Version: promwrite.V1, Compression: promwrite.Identity}, raw)
		if two {
			b.Version = promwrite.V2
		}
		parts, err := Partition(b, spread, 1)
		if err != nil {
			return
		}
		sum := 0
		for _, part := range parts {
			sum += part.Samples + part.Histograms
		}
		require.Zero(t, sum%2, "each series is there twice")
	})
}

// BenchmarkPartition divides a request among three destinations.
func BenchmarkPartition(b *testing.B) {
	const size = 48_000
	for _, f := range []Format{v2Zstd, v2Snappy, v1Zstd} {
		b.Run("version="+f.Version.String()+"/compression="+f.Compression.String(), func(b *testing.B) {
			whole, bytes := made(b, f, nodeSeries(size, 1)...), 0
			spread := NewSpread([]string{"a", "b", "c"}, 1, nil, true)
			b.ReportAllocs()
			for b.Loop() {
				parts, err := Partition(whole, spread, 1)
				if err != nil {
					b.Fatal(err)
				}
				bytes = len(parts[0].Body()) + len(parts[1].Body()) + len(parts[2].Body())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/sample")
			b.ReportMetric(float64(bytes)/float64(len(whole.Body())), "bytes/byte")
		})
	}
}
