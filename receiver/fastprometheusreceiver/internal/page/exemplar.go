// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/hex"

	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"github.com/prometheus/prometheus/model/exemplar"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// addExemplar adds an exemplar to the last sample, whose time is given, and returns the memory that it takes.
func (s *samples) addExemplar(x *expo.Exemplar, time int64) int64 {
	placed := plan.PlacedExemplar{Exemplar: exemplar.Exemplar{Value: x.Value, Ts: time}, Sample: int32(len(s.values) - 1)}
	if x.HasTS {
		placed.Ts, placed.HasTs = x.TS, true
	}
	var ok bool
	if placed.Trace, placed.Span, ok = idsOf(x); !ok {
		s.builder.Reset()
		x.AppendLabels(&s.builder)
		s.builder.Sort()
		placed.Labels = s.builder.Labels()
	}
	s.exemplars = append(s.exemplars, placed)
	return exemplarBytes + 3*int64(placed.Labels.ByteSize())
}

// idsOf returns the trace and span IDs of an exemplar if it has no other labels, and the IDs have their usual length
// and letters.
func idsOf(x *expo.Exemplar) (trace pcommon.TraceID, span pcommon.SpanID, ok bool) {
	for name, digits := range x.Each {
		var id []byte
		switch string(name) {
		case translator.ExemplarTraceIDKey:
			id = trace[:]
		case translator.ExemplarSpanIDKey:
			id = span[:]
		}
		if len(id) == 0 || len(digits) != hex.EncodedLen(len(id)) {
			return pcommon.TraceID{}, pcommon.SpanID{}, false
		}
		if _, err := hex.Decode(id, digits); err != nil {
			return pcommon.TraceID{}, pcommon.SpanID{}, false
		}
	}
	return trace, span, true
}
