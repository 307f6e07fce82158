// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"strings"
	"unicode/utf8"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/borrow"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
)

// layout is the resources, scopes and metrics of a request, where the points of its series go. Each is made in the
// request's tree when it is first needed.
type layout struct {
	request *request
	asker   asker // for the content of target_info

	targets   map[resourceKey]*target
	resources map[resourceKey]pmetric.ScopeMetricsSlice // without a scope
	roster    roster
	metrics   map[metricKey]numbers // metrics for which the roster has no room
	crowded   bool                  // whether there are such metrics with numbers
	// unkept are families that are not known for lack of room.
	unkept map[unkeptFamily]*family

	lastTarget *target
	// A series mostly belongs to the metric of the previous one, which saves a look-up.
	lastFamily *family
	lastMetric numbers // of lastTarget
}

// resourceKey identifies a resource and, if labels identify it, a scope.
type resourceKey struct{ job, instance, scope string }

// last returns the texts of a resource, independent of the request.
func (key *resourceKey) last(text *borrow.Text) (job, instance string) {
	return text.Lasting(key.job), text.Lasting(key.instance)
}

// target is a resource, and one of its scopes, in the current request.
type target struct {
	key     resourceKey
	number  int // its number in the request
	metrics pmetric.MetricSlice
	next    *target   // the target that followed it the last time: senders may go through all targets for each metric
	numbers []numbers // by their families' numbers in the roster
	loose   bool      // whether it has numbers
}

type metricKey struct {
	target *target
	family *family
	shape  pmetric.MetricType
}

type unkeptFamily struct {
	name, help, unit string
	typ              promwrite.MetricType
}

func (l *layout) reset() {
	l.targets = emptyMap(l.targets)
	l.resources = emptyMap(l.resources)
	l.metrics = emptyMap(l.metrics)
	l.unkept = emptyMap(l.unkept)
	l.lastTarget, l.lastFamily, l.lastMetric = nil, nil, numbers{}
	l.roster.reset()
	l.crowded = false
}

// target returns a resource with a scope, which it makes if needed. Unless labels identify the scope, it has no name:
// an exporter would add that to each series as a label that the sender never wrote.
func (l *layout) target(key resourceKey) (*target, error) {
	before := l.lastTarget
	if before != nil {
		if before.key == key { // fast path
			return before, nil
		}
		if before.next != nil && before.next.key == key {
			l.turnTo(before.next)
			return before.next, nil
		}
	}
	of := l.targets[key]
	if of == nil {
		known := l.request.known.target(key.job, key.instance)
		if known == nil && (!utf8.ValidString(key.job) || !utf8.ValidString(key.instance)) {
			return nil, errLabelUTF8
		}
		l.request.take(admission.TargetSize)
		of = l.roster.target()
		of.key, of.number, of.metrics = key, l.roster.used, l.scope(key, l.resource(known, key))
		l.targets[key] = of
	}
	if before != nil {
		before.next = of
	}
	l.turnTo(of)
	return of, nil
}

// turnTo makes a target the one of the current series.
func (l *layout) turnTo(of *target) { l.lastTarget, l.lastFamily = of, nil }

// resource returns a resource, which it makes if needed.
func (l *layout) resource(known *knownTarget, key resourceKey) pmetric.ScopeMetricsSlice {
	key.scope = ""
	scopes, ok := l.resources[key]
	if !ok {
		if l.asker.infos != nil { // its attributes change from request to request
			known = nil
		}
		scopes = l.request.tree.resource(known, &key, l.request.text, &l.asker)
		l.resources[key] = scopes
	}
	return scopes
}

func (l *layout) scope(key resourceKey, in pmetric.ScopeMetricsSlice) pmetric.MetricSlice {
	sm := l.request.tree.scope(in)
	if key.scope != "" {
		setScope(sm, strings.Clone(key.scope))
	}
	return sm.Metrics()
}

// family returns the family of a series, which is mostly the same as last time.
func (l *layout) family(set *labelSet, s *promwrite.Series) *family {
	if f := set.family.Load(); f != nil && f.is(s) { // fast path
		return f
	}
	f := l.request.known.family(set.name, s)
	if f == nil {
		key := unkeptFamily{set.name, s.Help, s.Unit, s.Type}
		if f = l.unkept[key]; f == nil {
			f = l.request.known.newFamily(set.name, l.request.text.Lasting(s.Help), l.request.text.Lasting(s.Unit), s.Type)
			l.unkept[key] = f
		}
		return f
	}
	set.family.Store(f)
	return f
}

// numbers returns the metric of a series' float samples, which it makes if needed. The target is the last one.
func (l *layout) numbers(of *target, f *family) numbers {
	if f == l.lastFamily { // fast path
		return l.lastMetric
	}
	place := l.roster.place(of, f)
	if place == nil { // there is no room
		l.crowded = true
		key := metricKey{of, f, f.shape}
		n, ok := l.metrics[key]
		if !ok {
			l.request.take(admission.MetricSize)
			n = l.request.tree.numbers(of.metrics, f)
			l.metrics[key] = n
		}
		l.lastFamily, l.lastMetric = f, n
		return n
	}
	if place.Metric == (pmetric.Metric{}) {
		l.request.take(admission.MetricSize)
		*place = l.request.tree.numbers(of.metrics, f)
		of.loose = true
	}
	l.lastFamily, l.lastMetric = f, *place
	return *place
}

// histogram returns the metric of a series' native histograms of a shape, which it makes if needed.
func (l *layout) histogram(of *target, f *family, shape pmetric.MetricType) pmetric.Metric {
	key := metricKey{of, f, shape}
	n, ok := l.metrics[key]
	if !ok {
		l.request.take(admission.MetricSize)
		n.Metric = of.metrics.AppendEmpty()
		n.Metric.Metadata().PutStr(prometheus.MetricMetadataTypeKey, f.typ.String())
		f.name(n.Metric)
		if shape == pmetric.MetricTypeHistogram {
			n.Metric.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		} else {
			n.Metric.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		}
		l.metrics[key] = n
	}
	return n.Metric
}

// passOver records that a run was placed behind the metrics of a target: what comes later of the same series must come
// after it, in metrics of its own.
func (l *layout) passOver(of *target) {
	if of.loose {
		clear(of.numbers)
		of.loose = false
	}
	l.lastFamily = nil
}

// shapeOf reports whether a float series is a Sum or a Gauge. Counters are Sums, and so are the series of a classic
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
