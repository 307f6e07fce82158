// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"fmt"
	"runtime"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/internal/reuse"
)

// requests returns spans of a service: each attribute has a few values, except for one that is always new.
func requests(spans, attributes int) (payloads [][]byte) {
	for batch := range 16 {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "checkout")
		ss := rs.ScopeSpans().AppendEmpty()
		for i := range spans {
			n := batch*spans + i
			s := ss.Spans().AppendEmpty()
			s.SetName([]string{"GET /cart", "POST /cart", "GET /checkout"}[n%3])
			s.SetTraceID(pcommon.TraceID{byte(n), byte(n >> 8), 1})
			s.SetSpanID(pcommon.SpanID{byte(n), byte(n >> 8), 2})
			s.SetStartTimestamp(pcommon.Timestamp(n))
			s.SetEndTimestamp(pcommon.Timestamp(n + 1))
			s.Attributes().PutInt("http.response.status_code", 200)
			s.Attributes().PutStr("session.id", fmt.Sprintf("session-%d", n))
			for a := range attributes - 2 {
				s.Attributes().PutStr(fmt.Sprintf("http.request.header.x-%d", a), fmt.Sprintf("value-%d", n%(7*(a+1))))
			}
		}
		payloads = append(payloads, must((&ptrace.ProtoMarshaler{}).MarshalTraces(td)))
	}
	return payloads
}

// BenchmarkDecode compares the time and garbage for a batch of spans, and the memory of a batch while it waits. With
// -cpu 1 the time includes garbage collection.
func BenchmarkDecode(b *testing.B) {
	decoders := []struct {
		name   string
		decode func([]byte) (ptrace.Traces, bool)
	}{
		{"pdata", func(payload []byte) (ptrace.Traces, bool) {
			td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(payload)
			return td, err == nil
		}},
		{"ours", func(payload []byte) (ptrace.Traces, bool) {
			d := Get()
			defer Put(d)
			return d.Traces(payload)
		}},
	}
	for _, size := range []struct{ spans, attributes int }{{1, 4}, {100, 4}, {500, 10}} {
		payloads := requests(size.spans, size.attributes)
		for _, with := range decoders {
			b.Run(fmt.Sprintf("spans=%d/attributes=%d/decoder=%s", size.spans, size.attributes, with.name), func(b *testing.B) {
				const kept = 200
				var before, after runtime.MemStats
				keep := make([]ptrace.Traces, 0, kept)
				for _, payload := range payloads {
					with.decode(payload) // so that all strings are known
				}
				runtime.GC()
				runtime.ReadMemStats(&before)
				for i := range kept {
					td, _ := with.decode(payloads[i%len(payloads)])
					keep = append(keep, td)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				retained := float64(after.HeapAlloc-before.HeapAlloc) / kept
				runtime.KeepAlive(keep)
				b.SetBytes(int64(len(payloads[0])))
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					td, ok := with.decode(payloads[i%len(payloads)])
					if !ok || td.SpanCount() != size.spans {
						b.Fatal("it is not all there")
					}
					i++
				}
				b.ReportMetric(retained, "retained-B/op")
			})
		}
	}
}

// pointRequests returns points of 50 metrics: their attributes are a number, or strings, some of which differ from
// those of the previous point.
func pointRequests(points, strings int) (payloads [][]byte) {
	const metrics = 50
	for batch := range 16 {
		md := pmetric.NewMetrics()
		sm := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
		for m := range metrics {
			metric := sm.Metrics().AppendEmpty()
			metric.SetName(fmt.Sprintf("http.server.request.count.%d", m))
			sum := metric.SetEmptySum().DataPoints()
			for i := range points / metrics {
				p := sum.AppendEmpty()
				p.SetStartTimestamp(pcommon.Timestamp(batch))
				p.SetTimestamp(pcommon.Timestamp(batch + 1))
				p.SetIntValue(int64(i))
				if strings == 0 {
					p.Attributes().PutInt("series_id", int64(m*points+i))
				}
				for a := range strings {
					p.Attributes().PutStr(fmt.Sprintf("http.request.attribute.%d", a), fmt.Sprintf("value-%d", i/(a+1)))
				}
			}
		}
		payloads = append(payloads, must((&pmetric.ProtoMarshaler{}).MarshalMetrics(md)))
	}
	return payloads
}

// BenchmarkDecodePoints is BenchmarkDecode for metrics.
func BenchmarkDecodePoints(b *testing.B) {
	decoders := []struct {
		name   string
		decode func([]byte) (pmetric.Metrics, bool)
	}{
		{"pdata", func(payload []byte) (pmetric.Metrics, bool) {
			md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(payload)
			return md, err == nil
		}},
		{"ours", func(payload []byte) (pmetric.Metrics, bool) {
			d := Get()
			defer Put(d)
			return d.Metrics(payload)
		}},
	}
	const points = 1000
	for _, strings := range []int{0, 3, 8} {
		payloads := pointRequests(points, strings)
		for _, with := range decoders {
			b.Run(fmt.Sprintf("strings=%d/decoder=%s", strings, with.name), func(b *testing.B) {
				b.SetBytes(int64(len(payloads[0])))
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					md, ok := with.decode(payloads[i%len(payloads)])
					if !ok || md.DataPointCount() != points {
						b.Fatal("it is not all there")
					}
					i++
				}
			})
		}
	}
}

// BenchmarkDecodeAgain measures a point of a page that is sent again, decoded into reused memory.
func BenchmarkDecodeAgain(b *testing.B) {
	payload := must((&pmetric.ProtoMarshaler{}).MarshalMetrics(page(250, 2)))
	memory, lists := reuse.New(), NewLists(1<<20)
	b.ReportAllocs()
	for b.Loop() {
		d := Get()
		if !d.MetricsAgain(payload, memory, lists) || memory.Metrics().DataPointCount() != 500 || !memory.TakeBack() {
			b.Fatal("it is not all there")
		}
		Put(d)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*500), "ns/point")
}

// page returns metrics with the given number of points each, and descriptions of a realistic length.
func page(metrics, points int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "host:9100")
	sm := rm.ScopeMetrics().AppendEmpty()
	for m := range metrics {
		metric := sm.Metrics().AppendEmpty()
		metric.SetName(fmt.Sprintf("node_something_%d_bytes", m))
		metric.SetDescription(fmt.Sprintf("Memory information field number %d, which has a sentence that says what it is about.", m))
		metric.SetUnit("By")
		list := metric.SetEmptyGauge().DataPoints()
		for i := range points {
			p := list.AppendEmpty()
			p.SetTimestamp(2)
			p.SetDoubleValue(float64(i))
			p.Attributes().PutStr("device", fmt.Sprintf("sd%d", i))
		}
	}
	return md
}
