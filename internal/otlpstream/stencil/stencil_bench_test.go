// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package stencil

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// BenchmarkPage encodes the page of a node exporter, with pdata and when it is known. It reports the time per point as
// ns/point.
func BenchmarkPage(b *testing.B) {
	md := nodePage(b)
	points := md.DataPointCount()
	perPoint := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*points), "ns/point")
	}
	b.Run("pdata", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		}
		perPoint(b)
	})
	b.Run("known", func(b *testing.B) {
		e := NewEncoder(1 << 20)
		same(b, e, md)
		b.ReportAllocs()
		for b.Loop() {
			e.Encode(md).Release()
		}
		perPoint(b)
	})
}

func nodePage(tb testing.TB) pmetric.Metrics {
	text, err := os.ReadFile("../../../testdata/pages/node.txt")
	require.NoError(tb, err)
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	for i := range 5 {
		rm.Resource().Attributes().PutStr(fmt.Sprint("service.attribute", i), "10.0.0.1:9100")
	}
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	var metric pmetric.Metric
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		space := strings.LastIndexByte(line, ' ')
		name, labels, _ := strings.Cut(line[:space], "{")
		value, _ := strconv.ParseFloat(line[space+1:], 64)
		if metric == (pmetric.Metric{}) || metric.Name() != name {
			metric = metrics.AppendEmpty()
			metric.SetName(name)
			metric.SetDescription("what it is about, in a sentence of words")
			metric.SetEmptySum().SetIsMonotonic(true)
		}
		p := metric.Sum().DataPoints().AppendEmpty()
		p.SetTimestamp(1)
		p.SetStartTimestamp(1)
		p.SetDoubleValue(value)
		for label := range strings.SplitSeq(strings.TrimSuffix(labels, `"}`), `",`) {
			if key, value, ok := strings.Cut(label, `="`); ok {
				p.Attributes().PutStr(key, value)
			}
		}
	}
	return md
}
