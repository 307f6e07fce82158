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
// Texts of a request are borrowed: what goes into metrics is known, or made to last.
type translator struct {
	batch
	recognition
	runLearning

	known    *known
	replicas *replicas.Rules // nil unless they are told apart
	scoped   bool            // whether labels say what a series' scope is
	asker    asker           // for what target_info says of targets
	text     *borrow.Text    // of the request
	held     *admission.Hold // what targets and metrics take memory from; nil if there is no limit
	measured bool            // the request was, and has memory for its points
	room     int             // of what is held, for what is to come
	index    int             // of the series at hand
	// What a decoder calls for each series, made once.
	each, collect func(*promwrite.Series) error

	targets   map[resourceKey]*target
	resources map[resourceKey]pmetric.ScopeMetricsSlice // without a scope
	roster    roster
	metrics   map[metricKey]numbers // those that the roster has no room for
	crowded   bool                  // there are such, of numbers
	exemplars exemplars
	buckets   bucketScratch
	slabs     slab.Slabs

	// Of the series at hand.
	last    pmetric.ExemplarSlice
	hasLast bool // whether last is the place for exemplars on its last point

	lastTarget *target
	// A series mostly belongs to the metric of the one before it, which saves the look-up.
	lastFamily *family
	lastMetric numbers // of lastTarget
	// unkept are families that there is no room to know.
	unkept map[unkeptFamily]*family
}

// resourceKey is a resource and, where labels say what that is, a scope of it.
type resourceKey struct{ job, instance, scope string }

// last makes the texts of a resource last.
func (key *resourceKey) last(text *borrow.Text) (job, instance string) {
	return text.Lasting(key.job), text.Lasting(key.instance)
}

// target is a resource, and a scope of it, in the request at hand.
type target struct {
	key     resourceKey
	number  int // of it in the request
	metrics pmetric.MetricSlice
	next    *target   // which came after it last time: senders may go through targets for each metric
	numbers []numbers // by the number that the roster has for their family
	loose   bool      // it has numbers
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

// prepare makes what all requests need.
func (t *translator) prepare() {
	t.each = t.series
	t.collect = func(s *promwrite.Series) error {
		t.exemplars.collect(s)
		return nil
	}
	t.recognition.prepare()
}

// batch is what became of one request.
type batch struct {
	metrics pmetric.Metrics
	tree    *tree             // metrics are in
	written promwrite.Written // what metrics holds
	left    promwrite.Written // what another replica sends
	learnt  promwrite.Written // what became attributes of resources
	rejects rejects
	plain   int              // bytes of its body, decoded
	ballot  *replicas.Ballot // nil where replicas are not told apart
}

// translate borrows a request and its text. It was measured, and size says what it has; or else it is translated as long as it is as most are,
// and held has memory for its points. The batch holds nothing of the translator.
func (t *translator) translate(
	text *borrow.Text, d *promwrite.Decoder, version promwrite.Version, size *promwrite.Size, held *admission.Hold, b *replicas.Ballot, into *tree,
) (batch, error) {
	t.reset()
	defer t.reset()
	defer d.Reset() // what it refers to is borrowed
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
	// What target_info says is for all of the request.
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

// series translates one. The error is for the request as a whole.
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
	if len(t.exemplars) > 0 && s.Labels == nil { // some may be of this series
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
	// targetLabels are those of a series that are no attributes of its own: its name, its job and its instance.
	targetLabels = 3
	// someRoom is how much is taken at a time for points to come.
	someRoom = 16 << 10
)

// errShort is of a request that has to be measured, to wait for memory.
var errShort = errors.New("memory is short")

// take takes memory for what the request turns out to have. Where that is not free at once the request cannot go on: who holds some and waited
// for more would hold up others who do the same.
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

// knownType is a type that there is.
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

// target finds or makes a resource and a scope of it. Unless labels say what that is, the scope has no name: an
// exporter would add it to each series as a label that the sender never wrote.
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

// turnTo makes a target the one whose series come.
func (t *translator) turnTo(of *target) { t.lastTarget, t.lastFamily = of, nil }

// resource finds or makes a resource.
func (t *translator) resource(known *knownTarget, key resourceKey) pmetric.ScopeMetricsSlice {
	key.scope = ""
	scopes, ok := t.resources[key]
	if !ok {
		if t.asker.infos != nil { // its attributes are others each time
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
			last = n.Points.AppendEmpty() // without the memory of a value
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

// leave leaves a series out that another replica sends. It counts as written: that is where it will be found.
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

// family is that of a series, mostly as it was last time.
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

// numbers finds or makes the metric that a series' float samples belong to. The target is the last one.
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

// histogram finds or makes the metric that a series' native histograms of a shape belong to.
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

// timeOf is the time of a point. Zero is no time in OTLP: exporters would leave such a point out, which the sender had been told is written.
func timeOf(ms int64) (at pcommon.Timestamp, ok bool) {
	at, ok = nanoseconds(ms)
	return at, ok && at != 0
}

// nanoseconds converts what OTLP can hold: unsigned, and within the signed range that others compute in.
func nanoseconds(ms int64) (pcommon.Timestamp, bool) {
	if ms < 0 || ms > math.MaxInt64/1_000_000 {
		return 0, false
	}
	return pcommon.Timestamp(ms * 1_000_000), true
}
