// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// rotation is the number of different batches. They are made before the clock starts.
const rotation = 32

// batches returns batches like those of the proposal's generator: spans of one resource; the first two attributes are
// numbers, the others random text.
func batches(spans, attributes int) []ptrace.Traces {
	random := rand.New(rand.NewPCG(99, 0))
	text := func(most int) string {
		b := make([]byte, 1+random.IntN(most))
		for i := range b {
			b[i] = byte(33 + random.IntN(10))
		}
		return string(b)
	}
	start := time.Date(2019, 10, 31, 10, 11, 12, 0, time.UTC)
	var all []ptrace.Traces
	number := int64(0)
	for batch := range rotation {
		td := ptrace.NewTraces()
		resource := td.ResourceSpans().AppendEmpty()
		resource.Resource().Attributes().PutStr("service.name", "generator")
		resource.Resource().Attributes().PutStr("host.name", "fakehost")
		resource.Resource().Attributes().PutInt("process.pid", 1234)
		list := resource.ScopeSpans().AppendEmpty().Spans()
		list.EnsureCapacity(spans)
		for range spans {
			number++
			span := list.AppendEmpty()
			var trace pcommon.TraceID
			var id pcommon.SpanID
			binary.PutUvarint(trace[:], uint64(batch+1))
			binary.PutUvarint(id[:], uint64(number))
			span.SetTraceID(trace)
			span.SetSpanID(id)
			span.SetName("load-generator-span")
			span.SetKind(ptrace.SpanKindClient)
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Millisecond)))
			span.Attributes().EnsureCapacity(attributes)
			for i := range attributes {
				switch i {
				case 0:
					span.Attributes().PutInt("load_generator.span_seq_num", number)
				case 1:
					span.Attributes().PutInt("load_generator.trace_seq_num", int64(batch+1))
				default:
					span.Attributes().PutStr(text(50), text(20))
				}
			}
		}
		// Exporters only read the batches, and each is sent many times from several goroutines.
		td.MarkReadOnly()
		all = append(all, td)
	}
	return all
}
