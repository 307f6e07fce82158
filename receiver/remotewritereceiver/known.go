// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/internal/memo"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/reuse"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/replicas"
)

// known is what senders send again and again, so that it is checked, sorted, copied and made into attributes once,
// rather than for each sample. It is independent of requests, and owns its texts.
type known struct {
	seed     maphash.Seed
	sets     *memo.Table[labelSet]
	targets  *memo.Table[knownTarget]
	families *memo.Table[family]
	runs     runs
	unkept   atomic.Int64 // sets without room when it was last read
	// shared says that points use the attributes here directly, since no component modifies them.
	shared bool
	// metadata of metrics, by type, if shared.
	metadata [types]reuse.Attributes
}

// labelSet is the result for the labels of series without job and instance, the same for different targets.
type labelSet struct {
	raw     *rawLabels        // as encoded in 1.0
	labels  []promwrite.Label // or as decoded
	text    int               // bytes of these
	own     []promwrite.Label // those that become attributes of points, sorted
	name    string
	scope   string
	replica replicas.Key

	attributes reuse.Attributes       // made of own, if shared
	family     atomic.Pointer[family] // of the last series; a guess
	next       atomic.Uint64          // hash of the set that followed last time; a guess
	self       uint64                 // hash in the table; 0 if it is not there

	runs  atomic.Pointer[[]*run] // that begin with it
	began [2]atomic.Uint64       // hashes of the last stretches that did
}

// knownTarget is a job and an instance.
type knownTarget struct {
	job, instance string
	attributes    reuse.Attributes // if shared
}

// family is what the series of a metric have in common besides labels.
type family struct {
	metric, help, unit string // as they came
	typ                promwrite.MetricType
	description, ucum  string
	shape              pmetric.MetricType // for float series
	metadata           reuse.Attributes   // if shared
	self               uint64             // hash in the table; 0 if it is not there
}

// knownShare is the share of the memory for what is known: one part in 64, mostly for label sets.
var knownShare = memlimit.Share{Part: 64, Least: 4 << 20, Most: 64 << 20}

// maxKnownText limits the text of what is remembered: longer texts are not worth looking up.
const maxKnownText = 2 << 10

func newKnown(bytes int, shared bool) *known {
	k := &known{
		seed:   maphash.MakeSeed(),
		shared: shared,
		runs:   runs{limit: bytes / 8},
		sets: memo.New(bytes/8*5, func(s *labelSet) int {
			return labelSetSize + len(s.labels)*labelSize + len(s.own)*ownLabelSize + s.text + len(s.scope)
		}),
		targets:  memo.New(bytes/8, func(t *knownTarget) int { return knownTargetSize + 3*(len(t.job)+len(t.instance)) }),
		families: memo.New(bytes/8, func(f *family) int { return familySize + len(f.metric) + 2*len(f.help) + 2*len(f.unit) }),
	}
	for typ := range k.metadata {
		if shared {
			list := pcommon.NewMap()
			list.PutStr(prometheus.MetricMetadataTypeKey, promwrite.MetricType(typ).String())
			k.metadata[typ] = reuse.Seal(list)
		}
	}
	return k
}

// isIntact reports whether shared metadata is unchanged. Other attributes are checked when metrics are taken back.
func (k *known) isIntact() bool {
	for i := range k.metadata {
		if !k.metadata[i].Intact() {
			return false
		}
	}
	return true
}

// Sizes of things in bytes, without texts.
const (
	labelSetSize    = 376               // with rawLabels
	labelSize       = 32                // as it was decoded
	ownLabelSize    = 32 + 40 + 16 + 32 // sorted, as an attribute, its value, and as texts
	knownTargetSize = 320
	familySize      = 200
)

func textOf(labels []promwrite.Label) (n int) {
	for i := range labels {
		n += len(labels[i].Name) + len(labels[i].Value)
	}
	return n
}

// age drops what was not received for a while.
func (k *known) age(now time.Time) {
	k.sets.Age(now)
	k.targets.Age(now)
	k.families.Age(now)
	_, _, unkept := k.sets.Stats()
	k.runs.age(k.has, k.unkept.Swap(unkept) != unkept)
}

// has reports whether all of a run is still known, and marks it as used.
func (k *known) has(r *run) bool {
	if !r.used.Load() {
		return true
	}
	for i := range r.steps {
		st := &r.steps[i]
		if k.sets.Find(st.set.self, func(o *labelSet) bool { return o == st.set }) == nil {
			return false
		}
		if f := st.family; (i == 0 || r.steps[i-1].family != f) && k.families.Find(f.self, func(o *family) bool { return o == f }) == nil {
			return false
		}
	}
	return true
}

// stats returns how many bytes are in use, and how many label sets found no room so far.
func (k *known) stats() (bytes int, unkept int64) {
	_, sets, unkept := k.sets.Stats()
	_, targets, _ := k.targets.Stats()
	_, families, _ := k.families.Stats()
	return sets + targets + families + k.runs.bytes(), unkept
}

// mix combines the hash of a whole with that of a part.
func mix(h, part uint64) uint64 {
	h = (h ^ part) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// outline is what a quick look at labels tells.
type outline struct {
	job, instance string
	others        int    // number of labels besides these two
	hash          uint64 // of those
	odd           bool   // something is too large to be looked up
}

func (k *known) outline(labels []promwrite.Label) (o outline) {
	text, jobs, instances := 0, 0, 0
	if o.odd = len(labels) > maxLabels; o.odd {
		return o
	}
	for i := range labels {
		l := &labels[i]
		switch l.Name {
		case labelJob:
			o.job = l.Value
			jobs++
			continue
		case labelInstance:
			o.instance = l.Value
			instances++
			continue
		}
		o.others++
		if text += len(l.Name) + len(l.Value); text > maxKnownText {
			continue
		}
		o.hash = mix(mix(o.hash, maphash.String(k.seed, l.Name)), maphash.String(k.seed, l.Value))
	}
	o.odd = jobs > 1 || instances > 1 || text > maxKnownText
	return o
}

// is reports whether labels are those of the set, in the same order; others is their number without job and instance.
func (s *labelSet) is(labels []promwrite.Label, others int) bool {
	if len(s.labels) != others {
		return false
	}
	at := 0
	for i := range labels {
		l := &labels[i]
		if l.Name == labelJob || l.Name == labelInstance {
			continue
		}
		if s.labels[at] != *l {
			return false
		}
		at++
	}
	return true
}

// keep copies a set whose texts belong to a request, if that is worthwhile.
func (k *known) keep(s *labelSet, labels []promwrite.Label) *labelSet {
	kept := &labelSet{scope: strings.Clone(s.scope), labels: make([]promwrite.Label, 0, len(labels))}
	var text strings.Builder
	for _, l := range labels {
		if l.Name != labelJob && l.Name != labelInstance {
			kept.labels = append(kept.labels, l)
		}
	}
	text.Grow(textOf(kept.labels))
	for _, l := range kept.labels {
		text.WriteString(l.Name)
		text.WriteString(l.Value)
	}
	rest := text.String()
	kept.text = len(rest)
	byName := make(map[string]promwrite.Label, len(kept.labels))
	for i := range kept.labels {
		l := &kept.labels[i]
		n, end := len(l.Name), len(l.Name)+len(l.Value)
		*l = promwrite.Label{Name: rest[:n], Value: rest[n:end]}
		rest = rest[end:]
		byName[l.Name] = *l
	}
	kept.name = byName[labelName].Value
	if s.replica != (replicas.Key{}) {
		kept.replica = s.replica.Clone()
	}
	for i := range s.own {
		kept.own = append(kept.own, byName[s.own[i].Name])
	}
	k.share(kept)
	return kept
}

// share makes the attributes of a set, if attributes are shared.
func (k *known) share(s *labelSet) {
	if !k.shared {
		return
	}
	list := pcommon.NewMap()
	list.EnsureCapacity(len(s.own))
	for i := range s.own {
		list.PutStr(s.own[i].Name, s.own[i].Value)
	}
	s.attributes = reuse.Seal(list)
}

// target returns the entry of a target, which it makes if needed; nil if there is no room, or it is not valid.
func (k *known) target(job, instance string) *knownTarget {
	if len(job)+len(instance) > maxKnownText {
		return nil
	}
	h := mix(maphash.String(k.seed, job), maphash.String(k.seed, instance))
	is := func(t *knownTarget) bool { return t.job == job && t.instance == instance }
	if t := k.targets.Find(h, is); t != nil {
		return t
	}
	if !utf8.ValidString(job) || !utf8.ValidString(instance) || k.targets.Full() {
		return nil
	}
	t := &knownTarget{job: strings.Clone(job), instance: strings.Clone(instance)}
	if k.shared {
		list := pcommon.NewMap()
		setTarget(list, t.job, t.instance)
		t.attributes = reuse.Seal(list)
	}
	return k.targets.Add(h, t, is)
}

// family returns the entry of a family, which it makes if needed; nil if there is no room.
func (k *known) family(name string, s *promwrite.Series) *family {
	if len(name)+len(s.Help)+len(s.Unit) > maxKnownText {
		return nil
	}
	h := mix(mix(maphash.String(k.seed, name), maphash.String(k.seed, s.Help)), mix(maphash.String(k.seed, s.Unit), uint64(s.Type)))
	is := func(f *family) bool { return f.is(s) && f.metric == name }
	if f := k.families.Find(h, is); f != nil {
		return f
	}
	if k.families.Full() {
		return nil
	}
	f := k.newFamily(strings.Clone(name), strings.Clone(s.Help), strings.Clone(s.Unit), s.Type)
	f.self = h
	return k.families.Add(h, f, is)
}

func (k *known) newFamily(name, help, unit string, typ promwrite.MetricType) *family {
	return &family{
		metric: name, help: help, unit: unit, typ: typ, metadata: k.metadata[typ],
		description: validUTF8(help), ucum: prometheus.UnitWordToUCUM(validUTF8(unit)), shape: shapeOf(name, typ),
	}
}

// name sets the name of a metric.
func (f *family) name(m pmetric.Metric) {
	m.SetName(f.metric)
	m.SetUnit(f.ucum)
	m.SetDescription(f.description)
}

// describe sets everything of a metric of float series, except its metadata.
func (f *family) describe(m pmetric.Metric) {
	if f.shape == pmetric.MetricTypeSum {
		sum := m.Sum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		sum.SetIsMonotonic(f.typ != promwrite.Info && f.typ != promwrite.Stateset)
	}
	f.name(m)
}

// is reports whether the series has the type and the texts of the family.
func (f *family) is(s *promwrite.Series) bool {
	return f.typ == s.Type && f.help == s.Help && f.unit == s.Unit
}
