// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func withInterning(c *Config) { c.Interning.Enabled = true }

// decoded is a copy of which no string is shared with anything.
func decoded(t testing.TB, md pmetric.Metrics) pmetric.Metrics {
	var to pmetric.ProtoMarshaler
	body, err := to.MarshalMetrics(md)
	require.NoError(t, err)
	var from pmetric.ProtoUnmarshaler
	out, err := from.UnmarshalMetrics(body)
	require.NoError(t, err)
	return out
}

// everyKind has a metric of each kind, and attributes of each type.
func everyKind() pmetric.Metrics {
	md := pmetric.NewMetrics()
	for k := range kinds {
		appendPoint(md, point{
			resource: attrs{"service.name": "a", "n": int64(3)}, scope: "scope", name: "m" + strconv.Itoa(int(k)), unit: "By", kind: k,
			attrs: attrs{
				"s": "GET", "i": int64(1), "d": 1.5, "b": true, "empty": "", "bytes": []byte{1, 2},
				"list": []any{"x", int64(2)}, "map": attrs{"y": "z"},
			},
		})
	}
	return md
}

func TestInterningChangesNothingThatCanBeSeen(t *testing.T) {
	want := everyKind() // once: a map of Go's has no order
	for _, mode := range []string{modeEnforce, modeDryRun} {
		r := newRig(t, func(c *Config) { withInterning(c); c.Mode = mode })
		for range 4 {
			require.Equal(t, decoded(t, want), decoded(t, r.consume(decoded(t, want))))
		}
		counts := r.interner.table.Counts()
		require.Positive(t, counts.Hits)
		require.Positive(t, counts.Bytes)
	}
}

func TestInterningKeepsAKeyThatIsThereTwice(t *testing.T) {
	r := newRig(t, withInterning)
	// A request in bytes, because a map takes no key twice: resource, scope, gauge, point with k="v" two times.
	pair := "\x3a\x08\x0a\x01k\x12\x03\x0a\x01v"
	field := func(tag byte, body string) string { return string([]byte{tag, byte(len(body))}) + body }
	body := field(0x0a, field(0x12, field(0x12, field(0x0a, "m")+field(0x2a, field(0x0a, pair+pair)))))
	var from pmetric.ProtoUnmarshaler
	for range 3 {
		md, err := from.UnmarshalMetrics([]byte(body))
		require.NoError(t, err)
		at := func(md pmetric.Metrics) pcommon.Map {
			return attributesAt(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0), 0)
		}
		require.Equal(t, 2, at(md).Len())
		require.Equal(t, 2, at(r.consume(md)).Len())
	}
}

// sources are three kinds of data, n points of each, in a memory of its own each time.
var sources = []struct {
	name string
	make func(t testing.TB, n int) func() pmetric.Metrics
}{
	{"scraped", func(_ testing.TB, n int) func() pmetric.Metrics {
		template := workload(n) // a scraper's strings are those of its plan, the same each time
		return func() pmetric.Metrics {
			md := pmetric.NewMetrics()
			template.CopyTo(md)
			return md
		}
	}},
	{"otlp", func(t testing.TB, n int) func() pmetric.Metrics {
		template := workload(n)
		return func() pmetric.Metrics { return decoded(t, template) }
	}},
	{"ids", func(t testing.TB, n int) func() pmetric.Metrics {
		next := 0
		return func() pmetric.Metrics {
			md := workload(n)
			for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
				for i := range pointCount(m) {
					next++
					attributesAt(m, i).PutStr("url.path", fmt.Sprintf("/orders/%036d", next))
					attributesAt(m, i).PutStr("client.id", fmt.Sprintf("%036d", next))
				}
			}
			return decoded(t, md)
		}
	}},
}

const heldBatches = 50

// hold processes batches, keeps them as a queue would, and returns the heap that they take.
func hold(t testing.TB, process func(pmetric.Metrics), source func() pmetric.Metrics) (held []pmetric.Metrics, bytes float64) {
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for range 3 { // the table has seen what comes again
		process(source())
	}
	before := heap()
	for range heldBatches {
		md := source()
		process(md)
		held = append(held, md)
	}
	bytes = heap() - before
	require.Positive(t, bytes)
	return held, bytes
}

func TestInterningShrinksAQueueOfOTLP(t *testing.T) {
	const points = 500
	per := func(change func(*Config)) float64 {
		r := newRig(t, change)
		held, bytes := hold(t, func(md pmetric.Metrics) { r.consume(md) }, sources[1].make(t, points))
		require.Equal(t, points, held[0].DataPointCount())
		return bytes / points / heldBatches
	}
	without, with := per(func(*Config) {}), per(withInterning)
	t.Logf("%.0f bytes for each point without, %.0f with", without, with)
	require.Less(t, with, 0.8*without)
}

// BenchmarkInterning is what docs/design/005-interning.md quotes: bytes that stay on the heap for each point that waits in
// a queue, and the time and allocations that interning takes to get there.
func BenchmarkInterning(b *testing.B) {
	const points = 1000
	for _, source := range sources {
		for _, enabled := range []bool{false, true} {
			b.Run(fmt.Sprintf("data=%s/interning=%v", source.name, enabled), func(b *testing.B) {
				process := func(pmetric.Metrics) {}
				if enabled {
					process = newInterner(&InterningConfig{Enabled: true, MaxMiB: 16}).metrics
				}
				next := source.make(b, points)
				held, bytes := hold(b, process, next)
				require.Len(b, held, heldBatches)
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					md := next()
					b.StartTimer()
					process(md)
				}
				require.Equal(b, points, held[0].DataPointCount())
				b.ReportMetric(bytes/points/heldBatches, "retained-B/point")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/points, "ns/point")
			})
		}
	}
}
