// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleettest makes metrics of node exporters whose numbers change as those of machines do, for tests and benchmarks of what
// transports them. The numbers are the same each time. It holds one copy of a page for each target.
package fleettest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Target is a node exporter: some of its series are in use, counters grow at a rate of their own that varies by a fifth, seconds
// have two places, and gauges wander.
type Target struct {
	md     pmetric.Metrics
	random *rand.Rand
	moves  []func()
	points []pmetric.NumberDataPoint
}

// New returns a target with a page in Prometheus' text format. Its series move with the probability share.
func New(page string, number int, share float64) *Target {
	t := &Target{md: pmetric.NewMetrics(), random: rand.New(rand.NewPCG(uint64(number), 2))} //nolint:gosec // it is no secret
	rm := t.md.ResourceMetrics().AppendEmpty()
	host := fmt.Sprintf("10.0.%d.%d", number/256, number%256)
	rm.Resource().Attributes().PutStr("service.name", "node")
	rm.Resource().Attributes().PutStr("service.instance.id", host+":9100")
	rm.Resource().Attributes().PutStr("server.address", host)
	rm.Resource().Attributes().PutStr("server.port", "9100")
	rm.Resource().Attributes().PutStr("url.scheme", "http")
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("github.com/godwit-otel/godwit/receiver/fastprometheusreceiver")
	kinds, help := map[string]string{}, map[string]string{}
	began := pcommon.Timestamp(1_690_000_000_000_000_000 + number*1_000_000_000)
	var metric pmetric.Metric
	for line := range strings.Lines(page) {
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
		var p pmetric.NumberDataPoint
		if metric.Type() == pmetric.MetricTypeSum {
			p = metric.Sum().DataPoints().AppendEmpty()
			p.SetStartTimestamp(began)
		} else {
			p = metric.Gauge().DataPoints().AppendEmpty()
		}
		p.SetDoubleValue(value)
		for label := range strings.SplitSeq(strings.TrimSuffix(labels, `"}`), `",`) {
			if key, value, ok := strings.Cut(label, `="`); ok {
				p.Attributes().PutStr(key, value)
			}
		}
		t.points = append(t.points, p)
		if t.random.Float64() < share {
			t.moves = append(t.moves, t.mover(p, metric.Type() == pmetric.MetricTypeSum, strings.Contains(name, "seconds")))
		}
	}
	return t
}

func (t *Target) mover(p pmetric.NumberDataPoint, counter, seconds bool) func() {
	places := 1.0
	if seconds {
		places = 100
	}
	rate := math.Exp(t.random.NormFloat64()*2.5 + 4) // from a few to some hundred thousand in ten seconds
	integral := p.DoubleValue() == math.Trunc(p.DoubleValue())
	return func() {
		v := p.DoubleValue()
		switch {
		case counter && seconds:
			p.SetDoubleValue(math.Round((v+10*t.random.Float64())*places) / places)
		case counter:
			p.SetDoubleValue(v + math.Round(rate*(0.8+0.4*t.random.Float64())))
		case integral:
			p.SetDoubleValue(math.Round(v*(1+0.02*t.random.NormFloat64()) + t.random.NormFloat64()))
		default:
			p.SetDoubleValue(v * (1 + 0.02*t.random.NormFloat64()))
		}
	}
}

// Points returns the number of points in a scrape.
func (t *Target) Points() int { return len(t.points) }

// Scrape advances the numbers, and returns the next scrape. It belongs to the target, and the next call changes it.
func (t *Target) Scrape(at pcommon.Timestamp) pmetric.Metrics {
	for _, move := range t.moves {
		move()
	}
	for _, p := range t.points {
		p.SetTimestamp(at)
	}
	return t.md
}
