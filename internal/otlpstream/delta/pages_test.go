// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// target is a node exporter whose numbers move as those of a machine do: so many of its series are in use, counters grow at a
// rate of their own that varies by a fifth, seconds have two places, and gauges wander.
type target struct {
	md     pmetric.Metrics
	random *rand.Rand
	moves  []func()
	points []pmetric.NumberDataPoint
}

// newTarget makes one whose series move with the probability share.
func newTarget(tb testing.TB, number int, share float64) *target {
	text, err := os.ReadFile("../../../testdata/pages/node.txt")
	require.NoError(tb, err)
	t := &target{md: pmetric.NewMetrics(), random: rand.New(rand.NewPCG(uint64(number), 2))}
	rm := t.md.ResourceMetrics().AppendEmpty()
	host := fmt.Sprintf("10.0.%d.%d", number/256, number%256)
	rm.Resource().Attributes().PutStr("service.name", "node")
	rm.Resource().Attributes().PutStr("service.instance.id", host+":9100")
	rm.Resource().Attributes().PutStr("server.address", host)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("github.com/godwit-otel/godwit/receiver/fastprometheusreceiver")
	kinds, help := map[string]string{}, map[string]string{}
	began := pcommon.Timestamp(1_690_000_000_000_000_000 + number*1_000_000_000)
	var metric pmetric.Metric
	for line := range strings.Lines(string(text)) {
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

func (t *target) mover(p pmetric.NumberDataPoint, counter, seconds bool) func() {
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

// scrape moves on, and is the payload of the next scrape.
func (t *target) scrape(at pcommon.Timestamp) []byte {
	for _, move := range t.moves {
		move()
	}
	for _, p := range t.points {
		p.SetTimestamp(at)
	}
	b, _ := (&pmetric.ProtoMarshaler{}).MarshalMetrics(t.md)
	return b
}

// scrapes are those of so many targets, in the order in which they come.
func scrapes(tb testing.TB, targets, times int, share float64) (payloads [][]byte, points int) {
	fleet := make([]*target, targets)
	for i := range fleet {
		fleet[i] = newTarget(tb, i, share)
	}
	for n := range times {
		for i, t := range fleet {
			payloads = append(payloads, t.scrape(pcommon.Timestamp(1_700_000_000_000_000_000+n*10_000_000_000+i*37_123_456)))
			points += len(t.points)
		}
	}
	return payloads, points
}
