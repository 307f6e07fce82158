// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"hash/maphash"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// A cohort is the targets of a job to which a line means the same. It knows every line in use by one of them.
type cohort struct {
	asked    // under its lock, as most of it
	ownSlots // likewise

	job      *Job
	key      string
	labels   []labels.Label // the targets' public labels, with marks for what may differ
	switches switches

	targets atomic.Int32

	mu         sync.Mutex
	lines      table[line, *line]
	pieces     table[piece, *piece] // of texts, since the last sweep
	written    int64                // bytes of pieces and forms that are there, about
	metas      map[*line]meta
	bounds     bounds
	exposed    map[*line]labels.Labels // final labels of lines that are not placed yet, or
	untold     map[*line]struct{}      // whose text cannot give them again
	crowd      int                     // how many exposed has held
	names      table[name, *name]
	bases      table[base, *base]
	resources  map[[2]string]*resource
	scopes     map[string]*scope
	families   map[familyID]*family // beyond the first of a base
	keySets    map[string]*keys
	named      map[string][]*keys // by their names
	attributes map[string]string  // their names
	shapes     map[uint64]*shape  // by the hash of their keys; nil until the second line
	cast       int                // shapes, about
	points     table[point, *point]
	forms      map[string]*form
	plans      map[uint64]*plan
	pools      map[uint64]*pool // by their metrics
	report     []*line
	latest     *plan
	marked     *plan // whose lines know their number
	markEpoch  uint32
	differing  map[*Target]struct{} // from their plans
	reading    map[*Scrape]struct{} // that hold lines
	epoch      uint32
	lastID     uint32
	size       int64 // bytes of what is known, about; see memory.go
	swept      int   // lines left by the last sweep
	sweptSize  int64 // and bytes
	scratch    pass
	builder    builder
	reread     reread
	exposing   labels.ScratchBuilder
	finishing  *labels.Builder
	cuts       []int
	keying     []byte
	packing    []byte
}

// switches are what a target's labels may override.
type switches struct{ native, classic, custom bool }

type familyID struct {
	base     *base
	resource *resource
	scope    *scope
}

var seed = maphash.MakeSeed()

func newCohort(j *Job, key string, ls []labels.Label, variables int, sw switches) *cohort {
	c := &cohort{
		job: j, key: key, labels: ls, switches: sw, asked: newAsked(variables), ownSlots: newOwnSlots(),
		named: map[string][]*keys{},
		metas: map[*line]meta{}, exposed: map[*line]labels.Labels{}, untold: map[*line]struct{}{},
		resources: map[[2]string]*resource{},
		scopes:    map[string]*scope{}, families: map[familyID]*family{}, keySets: map[string]*keys{}, attributes: map[string]string{}, shapes: map[uint64]*shape{},
		forms: map[string]*form{}, plans: map[uint64]*plan{}, pools: map[uint64]*pool{}, differing: map[*Target]struct{}{},
		reading: map[*Scrape]struct{}{},
	}
	c.asking.cohort = c
	c.exposing, c.finishing = labels.NewScratchBuilder(16), labels.NewBuilder(labels.EmptyLabels())
	c.scratch = pass{cohort: c, said: map[string]metadata{}, families: map[familyKey]*base{}}
	for _, n := range j.report {
		b := labels.NewBuilder(labels.FromStrings(model.MetricNameLabel, n))
		for _, l := range ls {
			b.Set(model.ExportedLabelPrefix+l.Name, "")
			b.Set(l.Name, l.Value)
		}
		set := c.external(b.Labels())
		l := c.newLine(whole(c.name(set.Get(model.MetricNameLabel), n, nil), n+"\xff"), reportLine, anySetting)
		c.exposed[l], c.untold[l] = set, struct{}{}
		c.report = append(c.report, l)
	}
	return c
}

// newLine makes a line that is not yet known by its text.
func (c *cohort) newLine(t text, kind lineKind, in setting) *line {
	return c.makeLine(new(line), t, kind, in)
}

func (c *cohort) makeLine(l *line, t text, kind lineKind, in setting) *line {
	c.lastID++
	l.id, l.text, l.kind, l.setting = c.lastID, t, kind, in
	c.size += l.bytes()
	return l
}

// find returns a target's line of a text, if it is known.
func (c *cohort) find(t *Target, text []byte, in setting) *line {
	return c.hashed(t, maphash.Bytes(seed, text), text, in)
}

// shared returns the line of a text that means the same to all targets, if it is known.
func (c *cohort) shared(text []byte, in setting) *line {
	return c.lines.find(maphash.Bytes(seed, text), func(l *line) bool { return l.setting == in && l.name.cond == nil && l.is(text) })
}

func (c *cohort) hashed(t *Target, hash uint64, text []byte, in setting) *line {
	return c.lines.find(hash^t.pin.pinned(), func(l *line) bool { return l.setting == in && l.is(text) && t.meets(l.name.cond) })
}

// series returns the line of a sample that a scrape has read.
func (c *cohort) series(s *Scrape, e *expo.Entry, in setting) (*line, error) {
	setting := anySetting
	if e.Normalises() {
		setting = in
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	held, newest := c.held(), c.lastID
	if s.since == 0 {
		s.since = newest
	}
	if l, err := c.ownLine(s.target, e, in, setting); l != nil {
		c.charge(s, held)
		if l.id > newest {
			s.fresh++
		}
		return c.hold(s, l), nil
	} else if err != nil && !errors.Is(err, errPinned) {
		return nil, err
	}
	hash := maphash.Bytes(seed, e.Text)
	if l := c.hashed(s.target, hash, e.Text, setting); l != nil {
		return c.hold(s, l), nil
	}
	defer c.charge(s, held)
	s.fresh++
	if sh := c.shape(s.target, e, setting); sh != nil {
		l := c.mould(sh, e, setting, c.keepText(s, sh.name, e))
		c.lines.insert(l, hash)
		return c.hold(s, l), nil
	}
	exposed := c.expose(e, in)
	set, cond, err := c.final(exposed, s.target)
	if errors.Is(err, errPinned) {
		c.pin(s.target)
		if l := c.hashed(s.target, hash, e.Text, setting); l != nil {
			return c.hold(s, l), nil
		}
		set, cond, err = c.final(exposed, s.target)
	}
	if err != nil {
		return nil, err
	}
	return c.hold(s, c.addSeries(c.keepText(s, c.nameOf(exposed, set, cond), e), setting, set, true)), nil
}

// charge has a scrape pay for what the cohort holds more than it did.
func (c *cohort) charge(s *Scrape, held int64) { s.spend(c.held() - held) }

// fewLines is how many lines a page has of which what comes and goes is not worth being cut.
const fewLines = 1 << 12

// keepText keeps the text of a line that a scrape has read, in pieces where that is likely to pay.
func (c *cohort) keepText(s *Scrape, n *name, e *expo.Entry) text {
	if t := s.target; t.plan != nil && len(t.plan.lines) < fewLines {
		return whole(n, e.Text)
	}
	return c.text(n, e)
}

// expose returns the labels of an entry.
func (c *cohort) expose(e *expo.Entry, in setting) labels.Labels {
	c.exposing.Reset()
	e.AppendLabels(&c.exposing, in.metricType())
	c.exposing.Sort()
	return c.exposing.Labels()
}

// mostExposed bounds the labels that are kept from when a line is seen to when it is placed. Beyond, as on the first of a
// large page, a line is read again, if its text tells them.
const mostExposed = 1 << 12

func (c *cohort) addSeries(t text, in setting, set labels.Labels, told bool) *line {
	l := c.newLine(t, seriesLine, in)
	if !told {
		c.untold[l] = struct{}{}
	}
	if set.IsEmpty() {
		l.kind = droppedLine
	} else if !told || len(c.exposed) < mostExposed {
		c.exposed[l] = set
		c.crowd = max(c.crowd, len(c.exposed))
	}
	if !told {
		c.size += untoldBytes + int64(set.ByteSize())
	}
	c.lines.add(l)
	return l
}

// metadata returns the line of a TYPE, HELP or UNIT that a scrape has read.
func (c *cohort) metadata(s *Scrape, b, family []byte, m meta) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := anySetting
	if m.kind == typeLine {
		in = settingOf(m.typ)
	}
	l := c.shared(b, in)
	if l == nil {
		defer c.charge(s, c.held())
		l = c.newLine(whole(c.name(string(family), string(family), nil), b), m.kind, in)
		c.lines.add(l)
		c.metas[l] = m
		c.size += metaBytes + int64(len(m.text))
	}
	return c.hold(s, l)
}

// nameOf returns the name of a series: no final one if relabeling dropped it.
func (c *cohort) nameOf(exposed, set labels.Labels, cond *condition) *name {
	return c.name(set.Get(model.MetricNameLabel), exposed.Get(model.MetricNameLabel), cond)
}

func (c *cohort) name(final, exposed string, cond *condition) *name {
	asked := name{final: final, exposed: exposed, cond: cond}
	hash := asked.hash()
	n := c.names.find(hash, func(n *name) bool { return n.final == final && n.exposed == exposed && n.cond == cond })
	if n == nil {
		n = &name{final: strings.Clone(final), cond: cond}
		n.exposed = n.final
		if exposed != final {
			n.exposed = strings.Clone(exposed)
		}
		c.size += n.bytes()
		c.names.insert(n, hash)
	}
	return n
}

// place finds out which part of which point a line is.
func (c *cohort) place(l *line, b *base, as native) {
	if as == classic && c.settle(l, b) {
		return
	}
	set, ok := c.exposed[l]
	if !ok {
		set = c.again(l)
	}
	if _, untold := c.untold[l]; !untold {
		delete(c.exposed, l)
	}
	l.point, l.role = nil, noRole
	metric := set.Get(model.MetricNameLabel)
	if as == custom && !b.custom || as == exponential && b.custom {
		return // a family has one representation
	}
	r := c.resource(set, l.name.cond)
	if metric == translator.TargetInfoMetricName {
		l.role = targetInfoRole
		l.point = c.intern(c.family(b, r, nil), l, set, func(n string) bool {
			return n == model.JobLabel || n == model.InstanceLabel || n == model.MetricNameLabel
		})
		return
	}
	role := b.role(metric, as)
	if role == bucketRole {
		from := model.BucketLabel
		if b.kind == pmetric.MetricTypeSummary {
			from = model.QuantileLabel
		}
		bound, err := strconv.ParseFloat(set.Get(from), 64)
		if err != nil || math.IsNaN(bound) {
			return
		}
		c.bounds.set(l, bound)
	}
	l.role = role
	l.point = c.intern(c.family(b, r, c.scope(set)), l, set, func(n string) bool {
		switch n {
		case model.BucketLabel:
			return b.kind == pmetric.MetricTypeHistogram || b.kind == pmetric.MetricTypeExponentialHistogram
		case model.QuantileLabel:
			return b.kind == pmetric.MetricTypeSummary
		}
		return isApart(n)
	})
	l.claim()
}

// claim notes whose point it is.
func (l *line) claim() {
	if l.role == valueRole || l.role == countRole {
		l.point.claim()
	}
}

// again gives the final labels of a line that was placed before, under other metadata.
func (c *cohort) again(l *line) labels.Labels {
	e, _ := c.reread.line(l, slotMarks)
	set, err := c.finalAgain(c.expose(e, l.setting), l.name.cond)
	if err != nil { // it went well the first time
		return labels.EmptyLabels()
	}
	return set
}

func (c *cohort) resource(set labels.Labels, cond *condition) *resource {
	k := [2]string{c.own(set, model.JobLabel, cond), c.own(set, model.InstanceLabel, cond)}
	r := c.resources[k]
	if r == nil {
		r = &resource{job: strings.Clone(k[0]), instance: strings.Clone(k[1])}
		c.resources[[2]string{r.job, r.instance}] = r
		c.size += r.bytes()
	}
	return r
}

// own returns the value of a label, empty when it is the target's.
func (c *cohort) own(set labels.Labels, name string, cond *condition) string {
	v := set.Get(name)
	for _, l := range c.labels {
		if l.Name == name && cond.valueOf(l) == v {
			return ""
		}
	}
	return v
}

func (c *cohort) scope(set labels.Labels) *scope {
	isDefault := true
	set.Range(func(l labels.Label) { isDefault = isDefault && !strings.HasPrefix(l.Name, scopePrefix) })
	if kept := c.scopes[""]; isDefault && kept != nil {
		return kept
	}
	s := scope{isDefault: isDefault}
	var key []byte
	set.Range(func(l labels.Label) {
		switch {
		case !strings.HasPrefix(l.Name, scopePrefix):
			return
		case l.Name == translator.ScopeNameLabelKey:
			s.name = l.Value
		case l.Name == translator.ScopeVersionLabelKey:
			s.version = l.Value
		case l.Name == translator.ScopeSchemaURLLabelKey:
			s.schema = l.Value
		default:
			s.attributes = append(s.attributes, labels.Label{Name: strings.Clone(l.Name[len(scopePrefix):]), Value: strings.Clone(l.Value)})
		}
		key = append(append(key, strconv.Quote(l.Name)...), strconv.Quote(l.Value)...) // AppendQuote copies all that is there
	})
	k := string(key)
	if s.isDefault {
		s.name, s.version = defaultScope, c.job.cfg.Version
	}
	kept := c.scopes[k]
	if kept == nil {
		s.name, s.version, s.schema = strings.Clone(s.name), strings.Clone(s.version), strings.Clone(s.schema)
		kept = &s
		c.scopes[k] = kept
		c.size += s.bytes(len(k))
	}
	return kept
}

// defaultScope is the stock receiver's: dashboards and rules may name it.
const defaultScope = "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"

func (c *cohort) family(b *base, r *resource, s *scope) *family {
	if f := b.family; f != nil && f.resource == r && f.scope == s {
		return f
	}
	k := familyID{b, r, s}
	f := c.families[k]
	if f == nil {
		c.lastID++
		f = &family{id: c.lastID, base: b, resource: r, scope: s}
		c.size += familyBytes
		if b.family == nil {
			b.family = f
		} else {
			c.families[k] = f
			c.size += familyBytes
		}
	}
	return f
}
