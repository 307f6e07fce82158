// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"errors"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/borrow"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/replicas"
)

// translator turns the series of one request into metrics. Points are grouped by resource, then by the metric they
// belong to, each in order of first appearance; the points of a series keep their order.
//
// Texts of a request are borrowed: metrics contain known texts or copies.
type translator struct {
	batch
	recognition
	runLearning

	known    *known
	replicas *replicas.Rules // nil unless replicas are told apart
	scoped   bool            // whether labels identify the scope of a series
	asker    asker           // for the content of target_info
	text     *borrow.Text    // of the request
	held     *admission.Hold // memory for targets and metrics; nil if there is no limit
	measured bool            // whether the request was measured, and has memory for its points
	room     int             // unused part of held
	index    int             // index of the current series
	// Functions that a decoder calls for each series, made once.
	each, collect func(*promwrite.Series) error

	targets   map[resourceKey]*target
	resources map[resourceKey]pmetric.ScopeMetricsSlice // without a scope
	roster    roster
	metrics   map[metricKey]numbers // metrics for which the roster has no room
	crowded   bool                  // whether there are such metrics with numbers
	exemplars exemplars
	buckets   bucketScratch
	slabs     slab.Slabs

	// Of the current series.
	last    pmetric.ExemplarSlice
	hasLast bool // whether last is where exemplars of its last point belong

	lastTarget *target
	// A series mostly belongs to the metric of the previous one, which saves a look-up.
	lastFamily *family
	lastMetric numbers // of lastTarget
	// unkept are families that are not known for lack of room.
	unkept map[unkeptFamily]*family
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

// prepare makes what all requests use.
func (t *translator) prepare() {
	t.each = t.series
	t.collect = func(s *promwrite.Series) error {
		t.exemplars.collect(s)
		return nil
	}
	t.recognition.prepare()
}

// batch is the result of a request.
type batch struct {
	metrics pmetric.Metrics
	tree    *tree             // that contains metrics
	written promwrite.Written // the content of metrics
	left    promwrite.Written // left out because another replica sends it
	learnt  promwrite.Written // turned into attributes of resources
	rejects rejects
	plain   int              // bytes of its body, decoded
	ballot  *replicas.Ballot // nil if replicas are not told apart
}

// translate translates a request, and only borrows it and its text. size is the measured content of the request, or
// nil: then it is translated as long as it has the usual form, and held has memory for its points. The batch does not
// refer to the translator.
func (t *translator) translate(
	text *borrow.Text, d *promwrite.Decoder, version promwrite.Version, size *promwrite.Size, held *admission.Hold, b *replicas.Ballot, into *tree,
) (batch, error) {
	t.reset()
	defer t.reset()
	defer d.Reset() // its data is borrowed
	t.text, t.held, t.ballot, t.tree, t.measured = text, held, b, into, size != nil
	t.batch.metrics, into.slabs = into.metrics, &t.slabs
	t.begin(d, version)
	if err := t.all(d, version, size); err != nil {
		return batch{}, err
	}
	t.endStretch()
	t.rejects.add(reasonOrphanExemplar, t.exemplars.left(), 0, "", nil)
	return t.batch, nil
}

// all translates all series of a request.
func (t *translator) all(d *promwrite.Decoder, version promwrite.Version, size *promwrite.Size) error {
	msg := t.text.String()
	if size == nil {
		return d.EachUsual(version, msg, t.each)
	}
	if t.asker.infos == nil {
		if size.Exemplars > 0 {
			if err := d.Each(version, msg, *size, t.collect); err != nil {
				return err
			}
		}
		return d.Each(version, msg, *size, t.each)
	}
	// target_info applies to the whole request.
	if err := d.DecodeMeasured(version, msg, *size); err != nil {
		return err
	}
	var series []promwrite.Series
	series, t.learnt = t.asker.learn(d.Series, t.ballot)
	for i := range series {
		t.exemplars.collect(&series[i])
	}
	for i := range series {
		if err := t.series(&series[i]); err != nil {
			return err
		}
	}
	return nil
}

// series translates a series. An error refuses the request as a whole.
func (t *translator) series(s *promwrite.Series) error {
	i := t.index
	t.index++
	if len(s.Samples)+len(s.Histograms) == 0 {
		return nil
	}
	s.Type = knownType(s.Type)
	set, of, err := t.recognise(s)
	if t.fault != nil {
		return t.fault
	}
	if err != nil {
		t.endStretch()
		t.rejects.add(reasonLabels, len(s.Samples)+len(s.Histograms)+len(s.Exemplars), i, set.name, err)
		return nil
	}
	follows := t.follows()
	if follows && t.takeRun(s, set, of) { // fast path
		return nil
	}
	if !t.measured {
		t.take(len(s.Samples) * (admission.PointSize + (len(set.own)+targetLabels)*admission.AttributeSize))
		if t.fault != nil {
			return t.fault
		}
	}
	if len(t.exemplars) > 0 && s.Labels == nil { // some may belong to this series
		if err := t.decoder.DecodeLabels(t.version, s); err != nil {
			return err
		}
	}
	switch t.ballot.Vote(set.replica) {
	case replicas.Take:
	case replicas.Leave:
		t.leave(s)
		return nil
	case replicas.Full:
		t.rejects.add(reasonClusters, len(s.Samples)+len(s.Histograms)+len(s.Exemplars), i, set.name, replicas.ErrClusters)
		return nil
	case replicas.Long:
		t.rejects.add(reasonLabels, len(s.Samples)+len(s.Histograms)+len(s.Exemplars), i, set.name, replicas.ErrLong)
		return nil
	}
	t.hasLast = false
	// The specification forbids both in one series, but nothing is wrong with either.
	t.samples(i, s, set, of)
	if follows {
		t.learn(s, set, of)
	}
	t.histograms(i, s, set, of)
	t.addExemplars(i, s)
	return t.fault
}

const (
	// targetLabels is the number of labels that do not become attributes of a series' points: name, job and instance.
	targetLabels = 3
	// someRoom is how much memory is taken at a time for further points.
	someRoom = 16 << 10
)

// errShort is the error of a request that must be measured first, to wait for memory.
var errShort = errors.New("memory is short")

// take takes memory for the request's further content. If it is not free at once, the request must stop: waiting for
// more while holding some would block others that do the same.
func (t *translator) take(n int) {
	if t.room < n && t.held != nil {
		more := max(n, someRoom)
		switch {
		case t.held.More(more):
			t.room += more
		case t.measured:
			t.fault = t.held.Short(more)
		default:
			t.fault = errShort
		}
	}
	t.room -= n
}

// knownType returns the type, or Unknown for an undefined one.
func knownType(t promwrite.MetricType) promwrite.MetricType {
	if t < 0 || int(t) >= types {
		return promwrite.Unknown
	}
	return t
}

// maxRetained limits the entries of a map that is kept for the next request.
const maxRetained = 1 << 16

func (t *translator) reset() {
	t.batch = batch{}
	t.targets = emptyMap(t.targets)
	t.resources = emptyMap(t.resources)
	t.metrics = emptyMap(t.metrics)
	t.exemplars = emptyMap(t.exemplars)
	t.unkept = emptyMap(t.unkept)
	t.lastTarget, t.lastFamily, t.lastMetric = nil, nil, numbers{}
	t.last, t.hasLast = pmetric.ExemplarSlice{}, false
	t.roster.reset()
	t.recognition.reset()
	t.runLearning.reset()
	t.text, t.index, t.crowded = nil, 0, false
	t.held, t.room, t.measured = nil, 0, false
}

func emptyMap[M ~map[K]V, K comparable, V any](m M) M {
	if m == nil || len(m) > maxRetained {
		return M{}
	}
	clear(m)
	return m
}

// target returns a resource with a scope, which it makes if needed. Unless labels identify the scope, it has no name:
// an exporter would add that to each series as a label that the sender never wrote.
func (t *translator) target(key resourceKey) (*target, error) {
	before := t.lastTarget
	if before != nil {
		if before.key == key { // fast path
			return before, nil
		}
		if before.next != nil && before.next.key == key {
			t.turnTo(before.next)
			return before.next, nil
		}
	}
	of := t.targets[key]
	if of == nil {
		known := t.known.target(key.job, key.instance)
		if known == nil && (!utf8.ValidString(key.job) || !utf8.ValidString(key.instance)) {
			return nil, errLabelUTF8
		}
		t.take(admission.TargetSize)
		of = t.roster.target()
		of.key, of.number, of.metrics = key, t.roster.used, t.scope(key, t.resource(known, key))
		t.targets[key] = of
	}
	if before != nil {
		before.next = of
	}
	t.turnTo(of)
	return of, nil
}

// turnTo makes a target the one of the current series.
func (t *translator) turnTo(of *target) { t.lastTarget, t.lastFamily = of, nil }

// resource returns a resource, which it makes if needed.
func (t *translator) resource(known *knownTarget, key resourceKey) pmetric.ScopeMetricsSlice {
	key.scope = ""
	scopes, ok := t.resources[key]
	if !ok {
		if t.asker.infos != nil { // its attributes change from request to request
			known = nil
		}
		scopes = t.tree.resource(known, &key, t.text, &t.asker)
		t.resources[key] = scopes
	}
	return scopes
}

func (t *translator) scope(key resourceKey, in pmetric.ScopeMetricsSlice) pmetric.MetricSlice {
	sm := t.tree.scope(in)
	if key.scope != "" {
		setScope(sm, strings.Clone(key.scope))
	}
	return sm.Metrics()
}

// samples adds a series' float samples.
func (t *translator) samples(index int, s *promwrite.Series, set *labelSet, of *target) {
	var last pmetric.NumberDataPoint
	written := 0
	for i := range s.Samples {
		sample := &s.Samples[i]
		at, ok := timeOf(sample.Timestamp)
		if !ok {
			t.rejects.add(reasonTimestamp, 1, index, set.name, errTimestamp)
			continue
		}
		n := t.numbers(of, t.family(set, s))
		if math.Float64bits(sample.Value) == promwrite.StaleNaN {
			last = n.Points.AppendEmpty() // without memory for a value
			set.put(&t.slabs, last.Attributes())
			last.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		} else {
			last = t.tree.number(n.Points, set, sample.Value)
		}
		last.SetTimestamp(at)
		start, _ := nanoseconds(sample.StartTimestamp)
		last.SetStartTimestamp(start)
		written++
	}
	if written > 0 {
		t.written.Samples += written
		t.last, t.hasLast = last.Exemplars(), true
	}
}

// leave leaves out a series that another replica sends. It counts as written, because it is available from that
// replica.
func (t *translator) leave(s *promwrite.Series) {
	t.left.Samples += len(s.Samples)
	t.left.Histograms += len(s.Histograms)
	t.left.Exemplars += len(s.Exemplars)
	if len(t.exemplars) > 0 {
		key := exemplarKeyOf(s.Labels)
		t.left.Exemplars += len(t.exemplars[key])
		delete(t.exemplars, key)
	}
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

// family returns the family of a series, which is mostly the same as last time.
func (t *translator) family(set *labelSet, s *promwrite.Series) *family {
	if f := set.family.Load(); f != nil && f.is(s) { // fast path
		return f
	}
	f := t.known.family(set.name, s)
	if f == nil {
		key := unkeptFamily{set.name, s.Help, s.Unit, s.Type}
		if f = t.unkept[key]; f == nil {
			f = t.known.newFamily(set.name, t.text.Lasting(s.Help), t.text.Lasting(s.Unit), s.Type)
			t.unkept[key] = f
		}
		return f
	}
	set.family.Store(f)
	return f
}

// numbers returns the metric of a series' float samples, which it makes if needed. The target is the last one.
func (t *translator) numbers(of *target, f *family) numbers {
	if f == t.lastFamily { // fast path
		return t.lastMetric
	}
	place := t.roster.place(of, f)
	if place == nil { // there is no room
		t.crowded = true
		key := metricKey{of, f, f.shape}
		n, ok := t.metrics[key]
		if !ok {
			t.take(admission.MetricSize)
			n = t.tree.numbers(of.metrics, f)
			t.metrics[key] = n
		}
		t.lastFamily, t.lastMetric = f, n
		return n
	}
	if place.Metric == (pmetric.Metric{}) {
		t.take(admission.MetricSize)
		*place = t.tree.numbers(of.metrics, f)
		of.loose = true
	}
	t.lastFamily, t.lastMetric = f, *place
	return *place
}

// histogram returns the metric of a series' native histograms of a shape, which it makes if needed.
func (t *translator) histogram(of *target, f *family, shape pmetric.MetricType) pmetric.Metric {
	key := metricKey{of, f, shape}
	n, ok := t.metrics[key]
	if !ok {
		t.take(admission.MetricSize)
		n.Metric = of.metrics.AppendEmpty()
		n.Metric.Metadata().PutStr(prometheus.MetricMetadataTypeKey, f.typ.String())
		f.name(n.Metric)
		if shape == pmetric.MetricTypeHistogram {
			n.Metric.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		} else {
			n.Metric.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		}
		t.metrics[key] = n
	}
	return n.Metric
}

var errTimestamp = errors.New("timestamp is not between 1970 and 2262")

// timeOf returns the time of a point. Zero is not valid in OTLP: exporters would drop such a point after the sender was
// told that it is written.
func timeOf(ms int64) (at pcommon.Timestamp, ok bool) {
	at, ok = nanoseconds(ms)
	return at, ok && at != 0
}

// nanoseconds converts a time that fits into OTLP's unsigned range and the signed range in which others compute.
func nanoseconds(ms int64) (pcommon.Timestamp, bool) {
	if ms < 0 || ms > math.MaxInt64/1_000_000 {
		return 0, false
	}
	return pcommon.Timestamp(ms * 1_000_000), true
}
