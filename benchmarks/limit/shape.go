// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/benchmarks/tally"
)

// Shapes are the kinds of load with their descriptions.
var Shapes = map[string]string{
	"W1": "nearly all points are of one metric with one number for an attribute, delta",
	"W2": "100,000 series of 50 metrics with 8 attributes, delta",
	"W3": "the same, cumulative",
	"W4": "W2, and 2,000 points each second with an id that never comes again",
	"W5": "W2, and a tenth of the pods is replaced each minute",
	"W6": "500 tenants with 200 series each",
	"R1": "pages of node exporters, 507 samples each, four in a request, as Remote Write 1.0 with snappy",
	"R2": "the same as Remote Write 2.0 with snappy",
	"R3": "the same as OTLP, without compression",
	"A1": "the counters of these pages, 143 for each of 1000 targets, as Remote Write 1.0 with snappy: one rule adds them up over targets",
	"A2": "the same as Remote Write 2.0 with snappy, which says that they are counters",
}

// PerRequest is the number of points in every request.
const PerRequest = 1000

// Marks that are overwritten at each send. None occurs by chance.
const (
	timeMark  = 0x7a5b7a5b7a5b7a5b
	startMark = 0x7a5c7a5c7a5c7a5c
	valueMark = 0x3a5d7a5d7a5d7a5d
	idMark    = "<id to be written over, 36 of them!>"
	podMark   = "<generation>"
)

const (
	seriesOfW2 = 100_000
	metricsW2  = 50
	tenants    = 500
)

// build makes the requests of a shape. Those of hostile points, which only W4 has, are separate because they have their
// own rate.
func build(shape string, rate int) (steady, hostile []pmetric.Metrics, err error) {
	random := rand.New(rand.NewPCG(3, 3))
	switch shape {
	case "W1":
		return seedShape(random, rate), nil, nil
	case "W2", "W3", "W4", "W5":
		for pod := range seriesOfW2 / PerRequest {
			steady = append(steady, podRequest(random, pod, shape))
		}
		if shape == "W4" {
			hostile = []pmetric.Metrics{explosion()}
		}
		return steady, hostile, nil
	case "W6":
		for i := 0; i < tenants; i += PerRequest * tenants / seriesOfW2 {
			steady = append(steady, tenantRequest(random, i))
		}
		return steady, nil, nil
	}
	return nil, nil, fmt.Errorf("cannot find shape %q: it is none of W1 to W6", shape)
}

// resource adds a resource whose points count as a target's, unlike those of the explosion and of overflow series.
func resource(md pmetric.Metrics, target int, service string) pmetric.ResourceMetrics {
	rm := md.ResourceMetrics().AppendEmpty()
	a := rm.Resource().Attributes()
	a.PutStr("service.name", service)
	a.PutStr("service.instance.id", tally.Address(target, 1))
	a.PutStr("instance", tally.Address(target, 1)) // for agents that send attributes as labels
	return rm
}

func sum(sm pmetric.ScopeMetrics, name string, temporality pmetric.AggregationTemporality) pmetric.NumberDataPointSlice {
	m := sm.Metrics().AppendEmpty()
	m.SetName(name)
	m.SetUnit("1")
	s := m.SetEmptySum()
	s.SetIsMonotonic(true)
	s.SetAggregationTemporality(temporality)
	return s.DataPoints()
}

func point(points pmetric.NumberDataPointSlice) pcommon.Map {
	p := points.AppendEmpty()
	p.SetTimestamp(timeMark)
	p.SetStartTimestamp(startMark)
	p.SetIntValue(valueMark)
	return p.Attributes()
}

// seedShape is the load that the original report really sent: higher rates have more series, each sent ten times a
// second.
func seedShape(random *rand.Rand, rate int) (all []pmetric.Metrics) {
	delta := pmetric.AggregationTemporalityDelta
	requests := max(2, rate/10/PerRequest)
	for r := range requests {
		md := pmetric.NewMetrics()
		sm := resource(md, r, "metrics-generator").ScopeMetrics().AppendEmpty()
		filler := sum(sm, "load_filler_datapoints", delta)
		for i := range PerRequest * 92 / 100 {
			point(filler).PutInt("series_id", int64(r*PerRequest+i))
		}
		for i := range PerRequest * 8 / 100 {
			a := point(sum(sm, "diverse_metric_"+strconv.Itoa(i), delta))
			a.PutStr("service", []string{"payment-api", "order-api"}[r%2])
			a.PutStr("env", "prod")
			a.PutStr("endpoint", "/api/v1/"+strconv.Itoa(random.IntN(50)))
		}
		all = append(all, md)
	}
	return all
}

func podRequest(random *rand.Rand, pod int, shape string) pmetric.Metrics {
	temporality := pmetric.AggregationTemporalityDelta
	if shape == "W3" {
		temporality = pmetric.AggregationTemporalityCumulative
	}
	md := pmetric.NewMetrics()
	rm := resource(md, pod, "service-"+strconv.Itoa(pod%20))
	name := fmt.Sprintf("service-%d-5d4f8c7b9-%05d", pod%20, pod)
	if shape == "W5" {
		name += "-" + podMark
	}
	rm.Resource().Attributes().PutStr("k8s.pod.name", name)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("github.com/example/instrumentation/http")
	for m := range metricsW2 {
		points := sum(sm, fmt.Sprintf("http.server.request.count.%d", m), temporality)
		for i := range PerRequest / metricsW2 {
			attributes(point(points), random, i)
		}
	}
	return md
}

// attributes sets eight strings of 3 to 40 bytes; i makes them unique in their metric.
func attributes(a pcommon.Map, random *rand.Rand, i int) {
	a.PutStr("http.request.method", []string{"GET", "POST", "PUT", "DELETE"}[i%4])
	a.PutStr("http.route", fmt.Sprintf("/api/v2/customers/{id}/orders/%02d", i))
	a.PutStr("http.response.status_code", []string{"200", "201", "404", "500"}[random.IntN(4)])
	a.PutStr("server.address", "orders.internal.example.com")
	a.PutStr("url.scheme", "https")
	a.PutStr("network.protocol.version", "1.1")
	a.PutStr("cloud.availability_zone", "eu-central-1"+string(rune('a'+i%3)))
	a.PutStr("client.id", fmt.Sprintf("client-%04d", random.IntN(3000)))
}

// explosion is a metric with a request's ID as attribute. Its resource is not a target, so that its points can be told
// from those that limits must not affect.
func explosion() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "careless")
	points := sum(rm.ScopeMetrics().AppendEmpty(), "requests.by.id", pmetric.AggregationTemporalityDelta)
	for range PerRequest {
		a := point(points)
		a.PutStr("http.route", "/api/v2/customers")
		a.PutStr("request.id", idMark)
	}
	return md
}

func tenantRequest(random *rand.Rand, first int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for t := range PerRequest * tenants / seriesOfW2 {
		rm := resource(md, first+t, "shared")
		rm.Resource().Attributes().PutStr("tenant.id", fmt.Sprintf("tenant-%04d", first+t))
		sm := rm.ScopeMetrics().AppendEmpty()
		for m := range 10 {
			points := sum(sm, fmt.Sprintf("queue.messages.%d", m), pmetric.AggregationTemporalityDelta)
			for i := range seriesOfW2 / tenants / 10 {
				attributes(point(points), random, i)
			}
		}
	}
	return md
}
