// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// The sink decodes the deltas of the exporter's packer to the original data, for targets that change, vanish and come
// back.
func TestDeltasAreReadAsWhatTheyWere(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	packer := otlpstream.Keep{Window: packWindow, History: keptHistory}.NewPacker()
	var u unpacker
	defer u.close()
	deltas := 0
	for id := uint64(1); id <= 200; id++ {
		target, series := random.IntN(5), 3
		if random.IntN(20) == 0 {
			series++
		}
		payload, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(allKinds(random, target, series))
		if err != nil {
			t.Fatal(err)
		}
		plain := newEntry(0)
		if err := otlp(payload, plain); err != nil {
			t.Fatal(err)
		}
		if err := otlpstream.ToStream(payload); err != nil {
			t.Fatal(err)
		}
		r := otlpstream.Request{ID: id, Data: payload}
		packer.Pack(&r)
		if r.Delta > 0 {
			deltas++
		}
		message := make([]byte, r.SizeProto())
		r.MarshalProto(message)
		_, e, err := u.request(message)
		if err != nil {
			t.Fatalf("request %d: %v", id, err)
		}
		if e.stats.Samples != plain.stats.Samples || fmt.Sprint(e.series) != fmt.Sprint(plain.series) || len(e.groups) != len(plain.groups) {
			t.Fatalf("request %d: read as %+v, sent %+v", id, e.stats, plain.stats)
		}
		for key, g := range plain.groups {
			if got := e.groups[key]; got == nil || *got != *g {
				t.Fatalf("request %d: %+v arrived as %+v", id, g, got)
			}
		}
	}
	if deltas < 190 || len(u.history.rows) < 5 {
		t.Errorf("%d deltas, %d rows", deltas, len(u.history.rows))
	}
}

// allKinds returns metrics of a target, of all kinds, with all kinds of numbers.
func allKinds(random *rand.Rand, target, series int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprintf("127.1.0.%d:9100", target+1))
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	at := pcommon.Timestamp(random.Int64N(1e9)) * 1e9
	value := func() float64 {
		return []float64{float64(random.IntN(1000)), random.Float64(), float64(random.IntN(1e6)) / 100}[random.IntN(3)]
	}
	add := func(name string) pmetric.Metric {
		m := metrics.AppendEmpty()
		m.SetName(name)
		return m
	}
	gauge, sum := add("gauge").SetEmptyGauge(), add("sum").SetEmptySum()
	for i := range series {
		for _, p := range []pmetric.NumberDataPoint{gauge.DataPoints().AppendEmpty(), sum.DataPoints().AppendEmpty()} {
			p.Attributes().PutStr("i", fmt.Sprint(i))
			p.SetTimestamp(at + pcommon.Timestamp(random.IntN(2)))
			p.SetStartTimestamp(1)
			if i == 0 {
				p.SetIntValue(random.Int64())
			} else {
				p.SetDoubleValue(value())
			}
		}
	}
	h := add("histogram").SetEmptyHistogram().DataPoints().AppendEmpty()
	h.SetTimestamp(at)
	h.ExplicitBounds().FromRaw([]float64{1})
	h.BucketCounts().FromRaw([]uint64{random.Uint64N(9), random.Uint64N(9)})
	h.SetCount(1 + random.Uint64N(9))
	h.SetSum(value())
	s := add("summary").SetEmptySummary().DataPoints().AppendEmpty()
	s.SetTimestamp(at)
	s.SetCount(1 + random.Uint64N(9))
	s.SetSum(1 + value())
	q := s.QuantileValues().AppendEmpty()
	q.SetQuantile(0.5)
	q.SetValue(1 + value())
	return md
}

func TestDeltasThatAreNoneAreRefused(t *testing.T) {
	for name, delta := range map[string][]byte{
		"an unknown row":  {3},
		"an unknown kind": {7},
		"cut":             {0, 9, 1},
		"no shape":        {1, 0},
		"nothing to drop": {4},
		"another size":    {0, 0},
	} {
		if err := newHistory(keptHistory).resources(delta, 100, func([]byte) error { return nil }); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
