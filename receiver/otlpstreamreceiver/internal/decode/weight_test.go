// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func message(number protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), body)
}

func TestWeightOfEmptyMessages(t *testing.T) {
	const n = 1000
	empty := func(number protowire.Number) []byte { return bytes.Repeat(message(number, nil), n) }
	metric := func(kind protowire.Number) []byte {
		return message(1, message(2, message(2, message(kind, empty(1)))))
	}
	above := resourceWeight + scopeWeight + metricWeight
	require.Equal(t, n*resourceWeight, Weight(otlpstream.Metrics, empty(1)))
	require.Equal(t, resourceWeight+n*scopeWeight, Weight(otlpstream.Metrics, message(1, empty(2))))
	require.Equal(t, resourceWeight+scopeWeight+n*metricWeight, Weight(otlpstream.Metrics, message(1, message(2, empty(2)))))
	for kind, each := range map[protowire.Number]int{5: numberWeight, 7: numberWeight, 9: histogramWeight, 10: exponentialWeight, 11: summaryWeight} {
		require.Equal(t, above+n*each, Weight(otlpstream.Metrics, metric(kind)))
	}
	require.Equal(t, resourceWeight+scopeWeight+n*spanWeight, Weight(otlpstream.Traces, message(1, message(2, empty(2)))))
	require.Equal(t, resourceWeight+scopeWeight+n*logWeight, Weight(otlpstream.Logs, message(1, message(2, empty(2)))))
	point := message(1, empty(7)) // attributes
	require.Equal(t, above+numberWeight+n*partWeight, Weight(otlpstream.Metrics, message(1, message(2, message(2, message(5, point))))))
	require.Zero(t, Weight(otlpstream.Metrics, []byte{0xff, 0xff, 0xff}), "what is malformed is for the decoder")
}

// The weight of realistic data is at most several times its size.
func TestWeightOfPlainPoints(t *testing.T) {
	md := pmetric.NewMetrics()
	points := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints()
	for range 1000 {
		point := points.AppendEmpty()
		point.SetTimestamp(1)
		point.SetDoubleValue(1)
	}
	data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	require.Less(t, Weight(otlpstream.Metrics, data), 8*len(data))

	d := Get()
	defer Put(d)
	_, ok := d.Metrics(data)
	require.True(t, ok, "it has room in the decoder")
	_, ok = d.Metrics(message(1, message(2, message(2, message(5, bytes.Repeat(message(1, nil), 100_000))))))
	require.False(t, ok, "nothing but empty points has none")
}

func TestDepthOfJSON(t *testing.T) {
	f := func(text string, want int) {
		t.Helper()
		require.Equal(t, want, Depth([]byte(text), 100))
	}
	f(`{}`, 1)
	f(`{"a": [{"b": []}], "c": {}}`, 4)
	f(`"[[[[\"[[["`, 0)
	f(strings.Repeat("[", 1000), 100)
}

func nest(depth int, field byte) (message []byte) {
	for range depth {
		message = append(protowire.AppendVarint([]byte{field<<3 | length}, uint64(len(message))), message...)
	}
	return message
}

func TestNesting(t *testing.T) {
	const limit = 20
	require.False(t, Nested(nil, limit))
	require.False(t, Nested(nest(limit-1, 1), limit))
	require.True(t, Nested(nest(limit, 1), limit))
	require.True(t, Nested(append(nest(3, 2), nest(limit, 5)...), limit), "anywhere")
	require.False(t, Nested(append(nest(limit-1, 2), nest(limit-1, 5)...), limit), "one beside the other is not one in the other")
	require.True(t, Nested(append(nest(limit, 1), 0xff), limit), "what is malformed further on counts, too")
	for _, text := range []string{"bbbbbbbbbb", strings.Repeat("b", 10_000), strings.Repeat("zJ2*", 10_000), strings.Repeat("\n\x7e", 10_000)} {
		require.False(t, Nested(append(protowire.AppendVarint([]byte{1<<3 | length}, uint64(len(text))), text...), 256), "text: %.10q", text)
	}
}

// It takes time proportional to the size of the message, not to its depth times its size.
func TestNestingIsFoundInOnePass(t *testing.T) {
	deep := nest(200, 1)
	wide := bytes.Repeat(deep, 20_000) // some 15 MB
	require.False(t, Nested(wide, 256))
}

func FuzzNested(f *testing.F) {
	f.Add(nest(30, 1), 20)
	f.Add([]byte("bbbb"), 3)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = 1 + limit&0xff
		require.Equal(t, deepest(data) >= limit, Nested(data, limit))
	})
}

// deepest is the slower model, with recursion.
func deepest(message []byte) (depth int) {
	for len(message) > 0 {
		tag, n := protowire.ConsumeVarint(message)
		if n < 0 {
			return depth
		}
		message = message[n:]
		switch kind := protowire.Type(tag & 7); kind {
		case protowire.BytesType:
			body, m := protowire.ConsumeBytes(message)
			if m < 0 {
				return depth
			}
			depth = max(depth, 1+deepest(body))
			message = message[m:]
		case protowire.VarintType, protowire.Fixed32Type, protowire.Fixed64Type:
			m := protowire.ConsumeFieldValue(1, kind, message)
			if m < 0 {
				return depth
			}
			message = message[m:]
		default:
			return depth
		}
	}
	return depth
}

// Values nested in attributes, bodies and events count: an empty value in a list, or an attribute in one, takes two
// bytes.
func TestWeightOfWhatIsNested(t *testing.T) {
	const n = 1000
	list := message(5, bytes.Repeat(message(1, nil), n))
	kvlist := message(6, bytes.Repeat(message(1, nil), n))
	attribute := func(value []byte) []byte { return append(message(1, []byte("key")), message(2, value)...) }
	above := resourceWeight + scopeWeight
	for name, f := range map[string]func(value []byte) (data []byte, signal otlpstream.Signal, weight int){
		"an attribute of a resource": func(v []byte) ([]byte, otlpstream.Signal, int) {
			return message(1, message(1, message(1, attribute(v)))), otlpstream.Logs, resourceWeight + partWeight
		},
		"an attribute of a scope": func(v []byte) ([]byte, otlpstream.Signal, int) {
			return message(1, message(2, message(1, message(3, attribute(v))))), otlpstream.Logs, above + partWeight
		},
		"an attribute of a point": func(v []byte) ([]byte, otlpstream.Signal, int) {
			return message(1, message(2, message(2, message(5, message(1, message(7, attribute(v))))))), otlpstream.Metrics, above + metricWeight + numberWeight + partWeight
		},
		"an attribute of an exemplar": func(v []byte) ([]byte, otlpstream.Signal, int) {
			return message(1, message(2, message(2, message(5, message(1, message(5, message(7, attribute(v)))))))), otlpstream.Metrics, above + metricWeight + numberWeight + 2*partWeight
		},
		"an attribute of an event": func(v []byte) ([]byte, otlpstream.Signal, int) {
			return message(1, message(2, message(2, message(11, message(3, attribute(v)))))), otlpstream.Traces, above + spanWeight + 2*partWeight
		},
		"a body": func(v []byte) ([]byte, otlpstream.Signal, int) {
			return message(1, message(2, message(2, message(5, v)))), otlpstream.Logs, above + logWeight + partWeight
		},
		"a value in a value": func(v []byte) ([]byte, otlpstream.Signal, int) {
			return message(1, message(2, message(2, message(5, message(5, message(1, v)))))), otlpstream.Logs, above + logWeight + partWeight + elementWeight
		},
		"an attribute in a value": func(v []byte) ([]byte, otlpstream.Signal, int) {
			return message(1, message(2, message(2, message(5, message(6, message(1, attribute(v))))))), otlpstream.Logs, above + logWeight + partWeight + elementWeight
		},
	} {
		for _, value := range [][]byte{list, kvlist} {
			data, signal, without := f(value)
			require.Equal(t, without+n*elementWeight, Weight(signal, data), name)
		}
		data, signal, without := f(message(1, []byte(strings.Repeat("*2", n))))
		require.Equal(t, without, Weight(signal, data), "%s: text is no list", name)
	}
}
