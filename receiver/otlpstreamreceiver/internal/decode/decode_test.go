// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/reuse"
	"github.com/godwit-otel/godwit/internal/slab"
)

// codec has pdata's decoder, which is the oracle, and ours, whose result is encoded again for comparison.
type codec struct {
	name   string
	pdata  func([]byte) ([]byte, error)
	ours   func(*Decoder, []byte) ([]byte, bool)
	sample []byte
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func codecs() (all []codec) {
	traces := func(td ptrace.Traces) []byte { return must((&ptrace.ProtoMarshaler{}).MarshalTraces(td)) }
	metrics := func(md pmetric.Metrics) []byte { return must((&pmetric.ProtoMarshaler{}).MarshalMetrics(md)) }
	logs := func(ld plog.Logs) []byte { return must((&plog.ProtoMarshaler{}).MarshalLogs(ld)) }
	all = []codec{
		{
			"traces", func(b []byte) ([]byte, error) {
				td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(b)
				if err != nil {
					return nil, err
				}
				return traces(td), nil
			}, func(d *Decoder, b []byte) ([]byte, bool) {
				td, ok := d.Traces(b)
				return traces(td), ok
			}, traces(everyTrace()),
		},
		{
			"metrics", func(b []byte) ([]byte, error) {
				md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(b)
				if err != nil {
					return nil, err
				}
				return metrics(md), nil
			}, func(d *Decoder, b []byte) ([]byte, bool) {
				md, ok := d.Metrics(b)
				return metrics(md), ok
			}, metrics(everyMetric()),
		},
		{
			"logs", func(b []byte) ([]byte, error) {
				ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(b)
				if err != nil {
					return nil, err
				}
				return logs(ld), nil
			}, func(d *Decoder, b []byte) ([]byte, bool) {
				ld, ok := d.Logs(b)
				return logs(ld), ok
			}, logs(everyLog()),
		},
	}
	if !slab.Places() || handback.Poisons() {
		return all // memory is not reused in this build
	}
	again, lists := reuse.New(), NewLists(1<<20)
	return append(all, codec{
		"metrics again", all[1].pdata, func(d *Decoder, b []byte) ([]byte, bool) {
			ok := d.MetricsAgain(b, again, lists)
			got := metrics(again.Metrics())
			if !again.TakeBack() {
				panic("nobody has changed anything")
			}
			return got, ok
		}, all[1].sample,
	})
}

func attributes(m pcommon.Map) {
	m.PutStr("string", "value")
	m.PutStr("empty string", "")
	m.PutStr("long", strings.Repeat("x", 3*maxInterned))
	m.PutInt("int", -5)
	m.PutInt("zero", 0)
	m.PutDouble("double", 2.5)
	m.PutBool("bool", true)
	m.PutEmpty("nothing")
	m.PutEmptyBytes("bytes").FromRaw([]byte{1, 2, 3})
	list := m.PutEmptySlice("list")
	list.AppendEmpty().SetStr("a")
	list.AppendEmpty()
	inner := list.AppendEmpty().SetEmptyMap()
	inner.PutStr("deep", "er")
	inner.PutEmptyMap("map").PutInt("n", 1)
}

func everyTrace() ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	attributes(rs.Resource().Attributes())
	rs.Resource().SetDroppedAttributesCount(1)
	rs.SetSchemaUrl("schema")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("scope")
	ss.Scope().SetVersion("v1")
	ss.Scope().SetDroppedAttributesCount(2)
	attributes(ss.Scope().Attributes())
	ss.SetSchemaUrl("schema")
	for range 2 {
		s := ss.Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{1})
		s.SetSpanID(pcommon.SpanID{2})
		s.SetParentSpanID(pcommon.SpanID{3})
		s.TraceState().FromRaw("a=b")
		s.SetName("span")
		s.SetKind(ptrace.SpanKindServer)
		s.SetStartTimestamp(1)
		s.SetEndTimestamp(2)
		s.SetFlags(3)
		s.SetDroppedAttributesCount(4)
		s.SetDroppedEventsCount(5)
		s.SetDroppedLinksCount(6)
		s.Status().SetCode(ptrace.StatusCodeError)
		s.Status().SetMessage("failed")
		attributes(s.Attributes())
		event := s.Events().AppendEmpty()
		event.SetName("event")
		event.SetTimestamp(7)
		event.SetDroppedAttributesCount(8)
		attributes(event.Attributes())
		link := s.Links().AppendEmpty()
		link.SetTraceID(pcommon.TraceID{9})
		link.SetSpanID(pcommon.SpanID{10})
		link.TraceState().FromRaw("c=d")
		link.SetFlags(11)
		link.SetDroppedAttributesCount(12)
		attributes(link.Attributes())
	}
	td.ResourceSpans().AppendEmpty()
	return td
}

func everyMetric() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	attributes(rm.Resource().Attributes())
	rm.SetSchemaUrl("schema")
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("scope")
	sm.SetSchemaUrl("schema")
	metric := func(name string) pmetric.Metric {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetUnit("By")
		m.SetDescription("what it is")
		attributes(m.Metadata())
		return m
	}
	exemplar := func(e pmetric.Exemplar) {
		e.SetTimestamp(1)
		e.SetIntValue(2)
		e.SetTraceID(pcommon.TraceID{3})
		e.SetSpanID(pcommon.SpanID{4})
		attributes(e.FilteredAttributes())
	}
	number := func(p pmetric.NumberDataPoint, asInt bool) {
		p.SetStartTimestamp(1)
		p.SetTimestamp(2)
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		if asInt {
			p.SetIntValue(-3)
		} else {
			p.SetDoubleValue(3.5)
		}
		attributes(p.Attributes())
		exemplar(p.Exemplars().AppendEmpty())
		p.Exemplars().AppendEmpty().SetDoubleValue(1.5)
	}
	metric("nothing")
	number(metric("gauge").SetEmptyGauge().DataPoints().AppendEmpty(), false)
	sum := metric("sum").SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	number(sum.DataPoints().AppendEmpty(), true)
	sum.DataPoints().AppendEmpty()
	histogram := metric("histogram").SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	h := histogram.DataPoints().AppendEmpty()
	h.SetStartTimestamp(1)
	h.SetTimestamp(2)
	h.SetCount(3)
	h.SetSum(0)
	h.SetMin(-1)
	h.SetMax(4)
	h.SetFlags(1)
	h.BucketCounts().FromRaw([]uint64{1, 2, 3})
	h.ExplicitBounds().FromRaw([]float64{0.5, 1})
	attributes(h.Attributes())
	exemplar(h.Exemplars().AppendEmpty())
	histogram.DataPoints().AppendEmpty()
	exponential := metric("exponential").SetEmptyExponentialHistogram()
	exponential.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	x := exponential.DataPoints().AppendEmpty()
	x.SetStartTimestamp(1)
	x.SetTimestamp(2)
	x.SetCount(3)
	x.SetSum(4)
	x.SetMin(5)
	x.SetMax(6)
	x.SetScale(-7)
	x.SetZeroCount(8)
	x.SetZeroThreshold(9)
	x.SetFlags(1)
	x.Positive().SetOffset(-10)
	x.Positive().BucketCounts().FromRaw([]uint64{1, 1 << 40})
	x.Negative().SetOffset(10)
	x.Negative().BucketCounts().FromRaw([]uint64{0})
	attributes(x.Attributes())
	exemplar(x.Exemplars().AppendEmpty())
	summary := metric("summary").SetEmptySummary().DataPoints().AppendEmpty()
	summary.SetStartTimestamp(1)
	summary.SetTimestamp(2)
	summary.SetCount(3)
	summary.SetSum(4)
	summary.SetFlags(1)
	attributes(summary.Attributes())
	q := summary.QuantileValues().AppendEmpty()
	q.SetQuantile(0.5)
	q.SetValue(1)
	return md
}

func everyLog() plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	attributes(rl.Resource().Attributes())
	rl.SetSchemaUrl("schema")
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("scope")
	sl.SetSchemaUrl("schema")
	l := sl.LogRecords().AppendEmpty()
	l.SetTimestamp(1)
	l.SetObservedTimestamp(2)
	l.SetSeverityNumber(plog.SeverityNumberError)
	l.SetSeverityText("ERROR")
	l.SetEventName("event")
	l.SetFlags(3)
	l.SetDroppedAttributesCount(4)
	l.SetTraceID(pcommon.TraceID{5})
	l.SetSpanID(pcommon.SpanID{6})
	attributes(l.Attributes())
	attributes(l.Body().SetEmptyMap())
	sl.LogRecords().AppendEmpty().Body().SetStr("text")
	return ld
}

func TestWhatIsDecodedIsWhatPdataDecodes(t *testing.T) {
	for _, c := range codecs() {
		t.Run(c.name, func(t *testing.T) {
			d := Get()
			defer Put(d)
			for range 2 { // the second time all strings are known
				got, ok := c.ours(d, c.sample)
				require.True(t, ok)
				require.Equal(t, c.sample, got)
			}
		})
	}
}

// For any input, both decoders have the same result, or ours leaves it to pdata.
func agrees(tb testing.TB, c *codec, payload []byte) bool {
	before := bytes.Clone(payload)
	d := Get()
	defer Put(d)
	got, ok := c.ours(d, payload)
	require.Equal(tb, before, payload, "the payload is not ours to change")
	if !ok {
		return false
	}
	want, err := c.pdata(payload)
	require.NoError(tb, err)
	require.Equal(tb, want, got)
	return true
}

func TestWhatIsUnusualIsLeftToPdata(t *testing.T) {
	field := func(number protowire.Number, content ...[]byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), bytes.Join(content, nil))
	}
	text := func(s string) []byte { return field(1, []byte(s)) }
	var nest []byte
	for range 2 * maxDepth {
		nest = field(5, field(1, nest))
	}
	var many [][]byte
	for i := range 2 * maxAttributes {
		many = append(many, field(9, text(fmt.Sprint(i))))
	}
	span := func(content ...[]byte) []byte { return field(1, field(2, field(2, content...))) }
	c := codecs()[0]
	require.True(t, agrees(t, &c, nil))
	require.True(t, agrees(t, &c, span(field(9, text("key"), field(2, text("value"))))))
	for name, payload := range map[string][]byte{
		"an unknown field":          span(field(99, []byte("x"))),
		"a key twice":               span(field(9, text("key")), field(9, text("key"))),
		"a value twice":             span(field(9, text("key"), field(2, text("a")), field(2, text("b")))),
		"a value of two kinds":      span(field(9, text("key"), field(2, text("a"), []byte{3 << 3, 1}))),
		"a short trace ID":          span(field(1, []byte{1, 2, 3})),
		"a wrong wire type":         span([]byte{5 << 3, 1}),
		"values in values":          span(field(9, text("key"), field(2, nest))),
		"very many attributes":      span(many...),
		"an end in the middle":      span(field(9, text("key")))[:8],
		"a length beyond the end":   {1<<3 | length, 200},
		"an endless number":         bytes.Repeat([]byte{0xff}, 20),
		"an index instead of a key": span(field(9, []byte{3 << 3, 1})),
	} {
		t.Run(name, func(t *testing.T) { require.False(t, agrees(t, &c, payload)) })
	}
}

// Slightly damaged data gets closer to the limits than what a fuzzer generates from nothing.
func TestMutilatedPayloadsAreDecodedAlikeOrLeft(t *testing.T) {
	all := codecs()
	random := rand.New(rand.NewPCG(1, 2))
	decoded := 0
	for range 10_000 {
		c := &all[random.IntN(len(all))]
		p := bytes.Clone(c.sample)
		for range 1 + random.IntN(3) {
			from := random.IntN(len(p))
			to := from + random.IntN(min(40, len(p)-from))
			switch random.IntN(3) {
			case 0:
				p[from] = byte(random.Uint32())
			case 1:
				p = slices.Delete(p, from, to)
			case 2:
				p = slices.Insert(p, from, bytes.Clone(p[from:to])...)
			}
		}
		if agrees(t, c, p) {
			decoded++
		}
	}
	require.Greater(t, decoded, 100, "else it proves nothing")
}

func TestEqualStringsAreOne(t *testing.T) {
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for range 2 {
		spans.AppendEmpty().Attributes().PutStr("a key of some length", "a value of some length")
	}
	payload := must((&ptrace.ProtoMarshaler{}).MarshalTraces(td))
	d := Get()
	defer Put(d)
	at := map[*byte]bool{}
	for range 2 {
		got, ok := d.Traces(payload)
		require.True(t, ok)
		spans := got.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		for i := range spans.Len() {
			for key, value := range spans.At(i).Attributes().All() {
				at[unsafe.StringData(key)] = true
				at[unsafe.StringData(value.Str())] = true
			}
		}
	}
	require.Len(t, at, 2)
}

// TestEqualValuesAreOne: equal strings share pdata's wrapper, unless the Collector frees values one by one.
func TestEqualValuesAreOne(t *testing.T) {
	if !slab.Readable() {
		t.Skip("this build does not know how attributes look in memory")
	}
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range 4 {
		a := spans.AppendEmpty().Attributes()
		a.PutStr("same", "one value")
		a.PutStr("turns", []string{"this", "that"}[i%2])
		a.PutStr("empty", "")
		a.PutStr("long", strings.Repeat("x", maxInterned+1))
	}
	payload := must((&ptrace.ProtoMarshaler{}).MarshalTraces(td))
	spots := func() map[string]int {
		d := Get()
		defer Put(d)
		got, ok := d.Traces(payload)
		require.True(t, ok)
		at := map[string]map[slab.Spot]bool{}
		spans := got.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		for i := range spans.Len() {
			all := slab.Attributes(spans.At(i).Attributes())
			for j := range all {
				key, _ := all[j].Key()
				if at[key] == nil {
					at[key] = map[slab.Spot]bool{}
				}
				at[key][all[j].Spot()] = true
			}
		}
		n := map[string]int{}
		for key, spots := range at {
			n[key] = len(spots)
		}
		return n
	}
	require.Equal(t, map[string]int{"same": 1, "turns": 2, "empty": 4, "long": 4}, spots())

	const pooling = "pdata.useProtoPooling"
	require.NoError(t, featuregate.GlobalRegistry().Set(pooling, true))
	t.Cleanup(func() { require.NoError(t, featuregate.GlobalRegistry().Set(pooling, false)) })
	require.Equal(t, map[string]int{"same": 4, "turns": 4, "empty": 4, "long": 4}, spots())
}

func TestFewStringsAreRemembered(t *testing.T) {
	d := Get()
	defer Put(d)
	for i := range 1 << 16 {
		d.values.get(fmt.Append(nil, "value-", i))
	}
	require.Len(t, d.values, 1<<12)
	long := make([]byte, maxInterned+1)
	require.Nil(t, d.values.get(long))
	one, other := d.values.string(long), d.values.string(long)
	require.NotSame(t, unsafe.StringData(one), unsafe.StringData(other))
}

func FuzzDecode(f *testing.F) {
	all := codecs()
	for _, c := range all {
		f.Add(c.sample)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		for i := range all {
			agrees(t, &all[i], payload)
		}
	})
}
