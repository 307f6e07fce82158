// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// scrapes returns what a scraper makes of so many node exporters, one batch for each target and scrape. All have the
// same series; from scrape to scrape counters move on and a third of the gauges change.
func scrapes(tb testing.TB, targets, times int) (batches []pmetric.Metrics, points int) {
	text, err := os.ReadFile("../../../testdata/pages/node.txt")
	require.NoError(tb, err)
	random := rand.New(rand.NewPCG(1, 2))
	for scrape := range times {
		for target := range targets {
			at := time.Unix(1_700_000_000+int64(scrape)*10, int64(target)*37_000_000)
			md := scrape1(string(text), target, at, random)
			batches, points = append(batches, md), points+md.DataPointCount()
		}
	}
	return batches, points
}

func scrape1(text string, target int, at time.Time, random *rand.Rand) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	host := fmt.Sprintf("10.0.%d.%d", target/256, target%256)
	for _, attribute := range [][2]string{
		{"service.name", "node"},
		{"service.instance.id", host + ":9100"},
		{"server.address", host},
		{"server.port", "9100"},
		{"url.scheme", "http"},
	} {
		rm.Resource().Attributes().PutStr(attribute[0], attribute[1])
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("github.com/godwit-otel/godwit/receiver/fastprometheusreceiver")
	kinds, help := map[string]string{}, map[string]string{}
	var metric pmetric.Metric
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if words := strings.SplitN(line, " ", 4); words[0] == "#" {
			map[string]map[string]string{"TYPE": kinds, "HELP": help}[words[1]][words[2]] = words[3]
			continue
		}
		space := strings.LastIndexByte(line, ' ')
		name, labels, _ := strings.Cut(line[:space], "{")
		value, _ := strconv.ParseFloat(line[space+1:], 64)
		if metric == (pmetric.Metric{}) || metric.Name() != name {
			metric = sm.Metrics().AppendEmpty()
			metric.SetName(name)
			metric.SetDescription(help[name])
			if kinds[name] == "counter" {
				metric.SetEmptySum().SetIsMonotonic(true)
				metric.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			} else {
				metric.SetEmptyGauge()
			}
		}
		var point pmetric.NumberDataPoint
		if metric.Type() == pmetric.MetricTypeSum {
			point = metric.Sum().DataPoints().AppendEmpty()
			point.SetStartTimestamp(pcommon.Timestamp(1_690_000_000_000_000_000 + target*1_000_000_000))
			value = float64(int64(value) + random.Int64N(100_000))
		} else {
			point = metric.Gauge().DataPoints().AppendEmpty()
			if random.IntN(3) == 0 {
				value *= 1 + random.Float64()/10
			}
		}
		point.SetTimestamp(pcommon.NewTimestampFromTime(at))
		point.SetDoubleValue(value)
		for label := range strings.SplitSeq(strings.TrimSuffix(labels, `"}`), `",`) {
			if key, value, ok := strings.Cut(label, `="`); ok {
				point.Attributes().PutStr(key, value)
			}
		}
	}
	return md
}

// requests returns n batches of so many spans with four attributes each.
func requests(n, spans int) (batches []ptrace.Traces, count int) {
	random := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "checkout")
		rs.Resource().Attributes().PutStr("host.name", "web-17")
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName("io.opentelemetry.http")
		for j := range spans {
			span := ss.Spans().AppendEmpty()
			id := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, random.Uint64()), random.Uint64())
			span.SetTraceID([16]byte(id))
			span.SetSpanID([8]byte(binary.LittleEndian.AppendUint64(nil, random.Uint64())))
			span.SetName([]string{"GET /cart", "POST /order", "SELECT items", "redis.get"}[random.IntN(4)])
			span.SetKind(ptrace.SpanKindClient)
			begin := time.Unix(1_700_000_000+int64(i), random.Int64N(1_000_000_000))
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(begin))
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(begin.Add(time.Duration(random.IntN(100_000_000)))))
			span.Attributes().PutInt("sequence", int64(i*spans+j))
			span.Attributes().PutStr("http.request.method", "GET")
			span.Attributes().PutStr("http.route", fmt.Sprintf("/item/%d", random.IntN(1000)))
			span.Attributes().PutStr("server.address", fmt.Sprintf("shop-%d", random.IntN(20)))
		}
		batches = append(batches, td)
	}
	return batches, spans * n
}
