// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"errors"
	"math"

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
// Each series goes through its stages: recognition finds the set of its labels and its target, runs translates it
// together with those that usually follow it, and otherwise layout has the metric for its points.
//
// Texts of a request are borrowed: metrics contain known texts or copies.
type translator struct {
	batch

	request     request
	recognition recognition
	runs        runFinder
	layout      layout

	index     int // of the current series
	exemplars exemplars
	buckets   bucketScratch
	slabs     slab.Slabs

	// Of the current series.
	last    pmetric.ExemplarSlice
	hasLast bool // whether last is where exemplars of its last point belong

	// Functions that a decoder calls for each series, made once.
	each, collect func(*promwrite.Series) error
}

// prepare makes what all requests use.
func (t *translator) prepare() {
	t.each = t.series
	t.collect = func(s *promwrite.Series) error {
		t.exemplars.collect(s)
		return nil
	}
	t.layout.request, t.runs.request, t.runs.encodings.request = &t.request, &t.request, &t.request
	t.recognition.prepare(&t.request, &t.layout)
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
	t.request = request{
		known: t.request.known, text: text, decoder: d, version: version, tree: into, held: held, measured: size != nil,
	}
	t.metrics, t.tree, t.ballot, into.slabs = into.metrics, into, b, &t.slabs
	if err := t.all(d, version, size); err != nil {
		return batch{}, err
	}
	t.runs.endStretch()
	t.rejects.add(reasonOrphanExemplar, t.exemplars.left(), 0, "", nil)
	return t.batch, nil
}

// all translates all series of a request.
func (t *translator) all(d *promwrite.Decoder, version promwrite.Version, size *promwrite.Size) error {
	msg := t.request.text.String()
	if size == nil {
		return d.EachUsual(version, msg, t.each)
	}
	if t.layout.asker.infos == nil {
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
	series, t.learnt = t.layout.asker.learn(d.Series, t.ballot)
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
	set, of, err := t.recognition.recognise(s)
	if t.request.fault != nil {
		return t.request.fault
	}
	if err != nil {
		t.runs.endStretch()
		t.rejects.add(reasonLabels, len(s.Samples)+len(s.Histograms)+len(s.Exemplars), i, set.name, err)
		return nil
	}
	follows := t.follows()
	if follows && t.takeRuns(s, set, of) { // fast path
		return nil
	}
	if !t.request.measured {
		t.request.take(len(s.Samples) * (admission.PointSize + (len(set.own)+targetLabels)*admission.AttributeSize))
		if t.request.fault != nil {
			return t.request.fault
		}
	}
	if len(t.exemplars) > 0 && s.Labels == nil { // some may belong to this series
		if err := t.request.decoder.DecodeLabels(t.request.version, s); err != nil {
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
		t.runs.learn(s, set, of)
	}
	t.histograms(i, s, set, of)
	t.addExemplars(i, s)
	return t.request.fault
}

// targetLabels is the number of labels that do not become attributes of a series' points: name, job and instance.
const targetLabels = 3

// follows reports whether runs are looked for: not if the request has other data about its series or metrics.
func (t *translator) follows() bool {
	return t.tree.again != nil && t.request.known.shared && t.recognition.replicas == nil && len(t.exemplars) == 0 && !t.layout.crowded
}

// takeRuns translates the runs that begin with a series. It returns false if there are none.
func (t *translator) takeRuns(s *promwrite.Series, set *labelSet, of *target) bool {
	n, last := t.runs.take(s, set, of, t.index, &t.recognition.near)
	if n == 0 {
		return false
	}
	t.layout.passOver(of)
	t.recognition.before = last
	t.written.Samples += n
	t.index += n - 1
	return true
}

// knownType returns the type, or Unknown for an undefined one.
func knownType(t promwrite.MetricType) promwrite.MetricType {
	if t < 0 || int(t) >= types {
		return promwrite.Unknown
	}
	return t
}

func (t *translator) reset() {
	t.batch = batch{}
	t.request.reset()
	t.recognition.reset()
	t.runs.reset()
	t.layout.reset()
	t.exemplars = emptyMap(t.exemplars)
	t.last, t.hasLast = pmetric.ExemplarSlice{}, false
	t.index = 0
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
		n := t.layout.numbers(of, t.layout.family(set, s))
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
