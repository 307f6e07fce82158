// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"errors"
	"math"
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// translator turns the series of one request into metrics. Points are grouped by resource, then by the metric they
// belong to, each in order of first appearance; the points of a series keep their order.
type translator struct {
	batch

	scoped bool  // whether labels say what a series' scope is
	asker  asker // for what target_info says of targets

	resources map[resourceKey]pmetric.MetricSlice
	targets   map[resourceKey]pmetric.ScopeMetricsSlice // without a scope
	metrics   map[metricKey]pmetric.Metric
	exemplars exemplars
	buckets   bucketScratch
	key       []byte // scratch

	// The place for exemplars on the last point of the series at hand, if it has one.
	last    pmetric.ExemplarSlice
	hasLast bool

	// A series mostly belongs to the metric of the one before it, which saves the look-up.
	lastKey    metricKey
	lastMetric pmetric.Metric
}

// resourceKey is a resource and, where labels say what that is, a scope of it.
type resourceKey struct{ job, instance, scope string }

type metricKey struct {
	resource   resourceKey
	name, unit string
	typ        promwrite.MetricType
	shape      pmetric.MetricType
}

// batch is what became of one request.
type batch struct {
	metrics pmetric.Metrics
	written promwrite.Written // what metrics holds
	left    promwrite.Written // what another replica sends
	learnt  promwrite.Written // what became attributes of resources
	rejects rejects
	plain   int     // bytes of its body, decoded
	ballot  *ballot // nil where replicas are not told apart
}

// translate borrows series, and may sort their labels. The batch holds nothing of the translator.
func (t *translator) translate(series []promwrite.Series, b *ballot) batch {
	t.reset()
	defer t.reset()
	t.ballot = b
	t.batch.metrics = pmetric.NewMetrics()
	series, t.learnt = t.asker.learn(series, b)
	t.exemplars.collect(series)
	for i := range series {
		s := &series[i]
		if len(s.Samples)+len(s.Histograms) == 0 {
			continue
		}
		id, err := identify(s.Labels, b)
		if err != nil {
			t.rejects.add(reasonLabels, len(s.Samples)+len(s.Histograms)+len(s.Exemplars), i, id.name, err)
			continue
		}
		if t.scoped {
			id.resource.scope = t.scope(s.Labels)
		}
		switch b.vote(&id) {
		case voteTake:
		case voteLeave:
			t.leave(s)
			continue
		case voteFull:
			t.rejects.add(reasonClusters, len(s.Samples)+len(s.Histograms)+len(s.Exemplars), i, id.name, errClusters)
			continue
		}
		t.hasLast = false
		// The specification forbids both in one series, but nothing is wrong with either.
		t.samples(i, s, id)
		t.histograms(i, s, id)
		t.addExemplars(i, s)
	}
	t.rejects.add(reasonOrphanExemplar, t.exemplars.left(), 0, "", nil)
	return t.batch
}

// maxRetained bounds the entries of a map that is kept for the next request.
const maxRetained = 1 << 16

func (t *translator) reset() {
	t.batch = batch{}
	t.resources = reuse(t.resources)
	t.targets = reuse(t.targets)
	t.metrics = reuse(t.metrics)
	t.exemplars = reuse(t.exemplars)
	t.lastKey, t.lastMetric = metricKey{}, pmetric.Metric{}
	t.last, t.hasLast = pmetric.ExemplarSlice{}, false
}

func reuse[M ~map[K]V, K comparable, V any](m M) M {
	if m == nil || len(m) > maxRetained {
		return M{}
	}
	clear(m)
	return m
}

// samples adds a series' float samples.
func (t *translator) samples(index int, s *promwrite.Series, id identity) {
	shape := shapeOf(id.name, s.Type)
	var last pmetric.NumberDataPoint
	attrs := t.attributes(&id)
	written := 0
	for _, sample := range s.Samples {
		at, ok := nanoseconds(sample.Timestamp)
		if !ok {
			t.rejects.add(reasonTimestamp, 1, index, id.name, errTimestamp)
			continue
		}
		m := t.metric(s, id, shape)
		if shape == pmetric.MetricTypeSum {
			last = m.Sum().DataPoints().AppendEmpty()
		} else {
			last = m.Gauge().DataPoints().AppendEmpty()
		}
		last.SetTimestamp(at)
		if start, ok := nanoseconds(sample.StartTimestamp); ok {
			last.SetStartTimestamp(start)
		}
		if math.Float64bits(sample.Value) == promwrite.StaleNaN {
			last.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		} else {
			last.SetDoubleValue(sample.Value)
		}
		attrs.put(last.Attributes(), s.Labels)
		written++
	}
	if written > 0 {
		t.written.Samples += written
		t.last, t.hasLast = last.Exemplars(), true
	}
}

// leave leaves a series out that another replica sends. It counts as written: that is where it will be found.
func (t *translator) leave(s *promwrite.Series) {
	t.left.Samples += len(s.Samples)
	t.left.Histograms += len(s.Histograms)
	t.left.Exemplars += len(s.Exemplars)
	if len(t.exemplars) > 0 {
		t.key = appendKey(t.key[:0], s.Labels)
		t.left.Exemplars += len(t.exemplars[string(t.key)])
		delete(t.exemplars, string(t.key))
	}
}

// attributes are those of a series that are not yet made.
func (t *translator) attributes(id *identity) (a attributes) {
	if id.replica.cluster != "" && id.replica.replica != "" {
		a.less = t.ballot.of.cfg.ReplicaLabel
	}
	a.scope = t.scoped
	return a
}

// shapeOf says whether a float series is a Sum or a Gauge. Counters are Sums, and so are the series of a classic
// histogram or summary that count; info and stateset metrics are Sums that are not monotonic, as OpenTelemetry asks.
func shapeOf(name string, typ promwrite.MetricType) pmetric.MetricType {
	switch typ {
	case promwrite.Counter, promwrite.Info, promwrite.Stateset:
		return pmetric.MetricTypeSum
	case promwrite.ClassicHistogram, promwrite.Summary:
		for _, suffix := range [...]string{"_bucket", "_count", "_sum"} {
			if strings.HasSuffix(name, suffix) {
				return pmetric.MetricTypeSum
			}
		}
	}
	return pmetric.MetricTypeGauge
}

// metric finds or makes the metric that a series' points of one shape belong to.
func (t *translator) metric(s *promwrite.Series, id identity, shape pmetric.MetricType) pmetric.Metric {
	key := metricKey{resource: id.resource, name: id.name, unit: s.Unit, typ: s.Type, shape: shape}
	if key == t.lastKey { // fast path; no real key is the zero one
		return t.lastMetric
	}
	m, ok := t.metrics[key]
	if !ok {
		m = t.resource(id.resource).AppendEmpty()
		m.SetName(id.name)
		m.SetUnit(prometheus.UnitWordToUCUM(validUTF8(s.Unit)))
		m.SetDescription(validUTF8(s.Help))
		m.Metadata().PutStr(prometheus.MetricMetadataTypeKey, typeName(s.Type))
		switch shape {
		case pmetric.MetricTypeSum:
			sum := m.SetEmptySum()
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			sum.SetIsMonotonic(s.Type != promwrite.Info && s.Type != promwrite.Stateset)
		case pmetric.MetricTypeExponentialHistogram:
			m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		case pmetric.MetricTypeHistogram:
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		default:
			m.SetEmptyGauge()
		}
		t.metrics[key] = m
	}
	t.lastKey, t.lastMetric = key, m
	return m
}

// resource finds or makes the metrics of a resource and scope. Unless labels say what that is, the scope has no name: an
// exporter would add it to each series as a label that the sender never wrote.
func (t *translator) resource(key resourceKey) pmetric.MetricSlice {
	metrics, ok := t.resources[key]
	if !ok {
		sm := t.target(resourceKey{job: key.job, instance: key.instance}).AppendEmpty()
		setScope(sm, key.scope)
		metrics = sm.Metrics()
		t.resources[key] = metrics
	}
	return metrics
}

// target finds or makes a resource.
func (t *translator) target(key resourceKey) pmetric.ScopeMetricsSlice {
	scopes, ok := t.targets[key]
	if !ok {
		rm := t.batch.metrics.ResourceMetrics().AppendEmpty()
		key.setAttributes(rm.Resource().Attributes())
		t.asker.describe(key, rm.Resource().Attributes())
		scopes = rm.ScopeMetrics()
		t.targets[key] = scopes
	}
	return scopes
}

// scope is what labels say of one; series that follow each other mostly are of the same.
func (t *translator) scope(labels []promwrite.Label) string {
	t.key = appendScope(t.key[:0], labels)
	if string(t.key) == t.lastKey.resource.scope {
		return t.lastKey.resource.scope
	}
	return string(t.key)
}

var typeNames = [...]string{
	promwrite.Unknown:          "unknown",
	promwrite.Counter:          "counter",
	promwrite.Gauge:            "gauge",
	promwrite.ClassicHistogram: "histogram",
	promwrite.GaugeHistogram:   "gaugehistogram",
	promwrite.Summary:          "summary",
	promwrite.Info:             "info",
	promwrite.Stateset:         "stateset",
}

func typeName(typ promwrite.MetricType) string {
	if typ < 0 || int(typ) >= len(typeNames) {
		typ = promwrite.Unknown
	}
	return typeNames[typ]
}

var errTimestamp = errors.New("timestamp is not between 1970 and 2262")

// nanoseconds converts what OTLP can hold: unsigned, and within the signed range that others compute in.
func nanoseconds(ms int64) (pcommon.Timestamp, bool) {
	if ms < 0 || ms > math.MaxInt64/1_000_000 {
		return 0, false
	}
	return pcommon.Timestamp(ms * 1_000_000), true
}
