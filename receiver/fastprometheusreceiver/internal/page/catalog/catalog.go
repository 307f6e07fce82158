// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"hash/maphash"
	"math"
	"strconv"
	"strings"

	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// A Catalog knows the meaning of the lines that its targets use. The caller must hold a lock to use it.
type Catalog struct {
	asked

	Rules       *Rules
	labels      []labels.Label // the targets' public labels, with marks in place of values that may differ
	ReportLines []*Line        // lines of the series that a scrape reports about itself

	Lines    table[Line, *Line]
	metas    map[*Line]Meta
	Bounds   Bounds
	unplaced unplaced
	pieces   pieces
	shapes   shapes
	metrics  metrics
	points   points
	Own      OwnValues

	epoch      uint32 // incremented by Mark
	LinesEpoch uint32 // the epoch of the last call of MarkLines
	LastID     uint32 // of the last line
	size       int64  // of lines in bytes, without their pieces and what they refer to; an estimate
	unused     unused

	// Memory for later calls.
	reread    reread
	exposing  labels.ScratchBuilder
	finishing *labels.Builder
}

var seed = maphash.MakeSeed()

// Init initializes an empty catalog for targets with these labels, of which variables values may differ.
func (c *Catalog) Init(r *Rules, ls []labels.Label, variables int) {
	*c = Catalog{
		Rules: r, labels: ls, asked: newAsked(variables), Own: newOwnValues(c),
		metas: map[*Line]Meta{}, unplaced: newUnplaced(), shapes: newShapes(), metrics: newMetrics(), points: newPoints(),
		exposing: labels.NewScratchBuilder(16), finishing: labels.NewBuilder(labels.EmptyLabels()),
	}
	c.asking.Catalog = c
	for _, n := range r.Report {
		b := labels.NewBuilder(labels.FromStrings(model.MetricNameLabel, n))
		for _, l := range ls {
			b.Set(model.ExportedLabelPrefix+l.Name, "")
			b.Set(l.Name, l.Value)
		}
		set := c.external(b.Labels())
		l := c.NewLine(Whole(c.metrics.name(set.Get(model.MetricNameLabel), n, nil), n+"\xff"), ReportLine, AnySetting)
		c.unplaced.keepUnspelled(l, set)
		c.ReportLines = append(c.ReportLines, l)
	}
}

// Mark starts a new epoch for marking what is in use, and returns it.
func (c *Catalog) Mark() uint32 {
	c.epoch++
	return c.epoch
}

// MarkLines starts a new epoch for marking lines of pages and their names. Such marks are reliable only while
// LinesEpoch is the epoch returned here.
func (c *Catalog) MarkLines() uint32 {
	c.LinesEpoch = c.Mark()
	return c.LinesEpoch
}

// NewLine makes a line that is not known by its text yet.
func (c *Catalog) NewLine(t text, kind lineKind, in Setting) *Line {
	return c.makeLine(new(Line), t, kind, in)
}

func (c *Catalog) makeLine(l *Line, t text, kind lineKind, in Setting) *Line {
	c.LastID++
	l.ID, l.text, l.Kind, l.Setting = c.LastID, t, kind, in
	c.size += l.bytes()
	return l
}

// Find returns the line for a target's text, nil if it is not known.
func (c *Catalog) Find(t *Identity, text []byte, in Setting) *Line {
	return c.hashed(t, maphash.Bytes(seed, text), text, in)
}

// shared returns the line of a text that has the same meaning for all targets, nil if it is not known.
func (c *Catalog) shared(text []byte, in Setting) *Line {
	return c.Lines.find(maphash.Bytes(seed, text), func(l *Line) bool { return l.Setting == in && l.Name.Cond == nil && l.Is(text) })
}

func (c *Catalog) hashed(t *Identity, hash uint64, text []byte, in Setting) *Line {
	return c.Lines.find(hash^t.Pin.pinned(), func(l *Line) bool { return l.Setting == in && l.Is(text) && t.meets(l.Name.Cond) }).share()
}

// Series returns the line of a sample, for those who may have a text of its own for each line or texts in pieces. A
// line that was not known has an ID above the previous LastID.
func (c *Catalog) Series(t *Identity, e *expo.Entry, in Setting, isWhole bool) (*Line, error) {
	setting := AnySetting
	if e.Normalises() {
		setting = in
	}
	if l, err := c.ownLine(t, e, in, setting, isWhole); l != nil || err != nil && !errors.Is(err, errPinned) {
		return l, err
	}
	hash := maphash.Bytes(seed, e.Text)
	if l := c.hashed(t, hash, e.Text, setting); l != nil {
		return l, nil
	}
	if sh := c.shape(t, e, setting, false); sh != nil {
		if isWhole && sh.isSole() {
			body, tail := c.pieces.alone(sh.name, e)
			l := c.mouldSole(sh, e, setting, text{Name: sh.name, body: body, tail: tail})
			c.Lines.insert(l, hash)
			return l, nil
		}
		l := c.mould(sh, e, setting, c.text(sh.name, e, isWhole))
		c.Lines.insert(l, hash)
		return l, nil
	}
	exposed := c.expose(e, in)
	set, cond, had, err := c.finalOrPinned(t, exposed, hash, e.Text, setting)
	if had != nil || err != nil {
		return had, err
	}
	return c.addSeries(c.text(c.nameOf(exposed, set, cond), e, isWhole), setting, set, true), nil
}

// text keeps the text of an entry.
func (c *Catalog) text(n *Name, e *expo.Entry, isWhole bool) text {
	if c.isKeptWhole(e, isWhole) {
		return Whole(n, e.Text)
	}
	return c.pieces.text(n, e)
}

// isKeptWhole reports whether the text of an entry is kept in one piece: where that is wanted, or there are few lines and it is not long.
func (c *Catalog) isKeptWhole(e *expo.Entry, isWhole bool) bool {
	return isWhole || c.Lines.count < c.Rules.MostWhole && len(e.Text) < longText
}

// Refused returns the line that drops a series because the target has reached its series limit.
func (c *Catalog) Refused(t *Identity, l *Line) *Line {
	asShown := l.text
	if l.IsSlotted() {
		asShown = Whole(l.Name, l.AppendSpelled(nil, t.Own))
	}
	refused := c.Find(t, []byte(asShown.String()), RefusedSetting)
	if refused == nil {
		refused = c.NewLine(asShown, DroppedLine, RefusedSetting)
		c.Lines.Add(refused)
	}
	return refused
}

// finalOrPinned returns the final labels of a sample. If rules depend on too many of the target's labels, the target is
// pinned, and may have a line of that text already.
func (c *Catalog) finalOrPinned(t *Identity, exposed labels.Labels, hash uint64, text []byte, in Setting) (labels.Labels, *Condition, *Line, error) {
	set, cond, err := c.final(exposed, t)
	if !errors.Is(err, errPinned) {
		return set, cond, nil, err
	}
	c.Pin(t)
	if l := c.hashed(t, hash, text, in); l != nil {
		return set, nil, l, nil
	}
	set, cond, err = c.final(exposed, t)
	return set, cond, nil, err
}

// Parsed returns the line of a sample that Prometheus' parser has read, with its labels.
func (c *Catalog) Parsed(t *Identity, b []byte, in Setting, exposed labels.Labels) (*Line, error) {
	setting := AnySetting
	if exposed.Has(model.BucketLabel) || exposed.Has(model.QuantileLabel) {
		setting = in
	}
	hash := maphash.Bytes(seed, b)
	if l := c.hashed(t, hash, b, setting); l != nil {
		return l, nil
	}
	set, cond, had, err := c.finalOrPinned(t, exposed, hash, b, setting)
	if had != nil || err != nil {
		return had, err
	}
	return c.addSeries(Whole(c.nameOf(exposed, set, cond), b), setting, set, false), nil
}

// expose returns the labels of an entry.
func (c *Catalog) expose(e *expo.Entry, in Setting) labels.Labels {
	c.exposing.Reset()
	e.AppendLabels(&c.exposing, in.metricType())
	c.exposing.Sort()
	return c.exposing.Labels()
}

func (c *Catalog) addSeries(t text, in Setting, set labels.Labels, isSpelled bool) *Line {
	l := c.NewLine(t, SeriesLine, in)
	if set.IsEmpty() {
		l.Kind = DroppedLine
	}
	switch {
	case !isSpelled:
		c.unplaced.keepUnspelled(l, set)
		c.size += unspelledBytes + int64(set.ByteSize())
	case l.Kind == SeriesLine:
		c.unplaced.keep(l, set)
	default:
	}
	c.Lines.Add(l)
	return l
}

// Metadata returns the line of a TYPE, HELP or UNIT.
func (c *Catalog) Metadata(b, family []byte, m Meta) *Line {
	in := AnySetting
	if m.Kind == TypeLine {
		in = SettingOf(m.Type)
	}
	l := c.shared(b, in)
	if l == nil {
		l = c.NewLine(Whole(c.metrics.name(string(family), string(family), nil), b), m.Kind, in)
		c.Lines.Add(l)
		if line := l.first(); m.Text != "" {
			if at := strings.LastIndex(line, m.Text); at >= 0 { // nearly always, unless something is escaped
				m.Text = line[at : at+len(m.Text)]
			}
		}
		c.metas[l] = m
		c.size += MetaBytes + int64(len(m.Text))
	}
	return l
}

// nameOf returns the name of a series; it has no final name if relabeling dropped the series.
func (c *Catalog) nameOf(exposed, set labels.Labels, cond *Condition) *Name {
	return c.metrics.name(set.Get(model.MetricNameLabel), exposed.Get(model.MetricNameLabel), cond)
}

// Place determines which part of which point a line is.
func (c *Catalog) Place(l *Line, b *base, as Native) {
	if as == Classic && c.settle(l, b) {
		return
	}
	set, ok := c.unplaced.take(l)
	if !ok {
		set = c.again(l)
	}
	l.Point, l.Role = nil, NoRole
	metric := set.Get(model.MetricNameLabel)
	if as == Custom && !b.Custom || as == Exponential && b.Custom {
		return // a family has one kind of histogram
	}
	r := c.resource(set, l.Name.Cond)
	if metric == translator.TargetInfoMetricName {
		l.Role = TargetInfoRole
		l.Point = c.points.of(c.metrics.family(b, r, nil), l, set, func(n string) bool {
			return n == model.JobLabel || n == model.InstanceLabel || n == model.MetricNameLabel
		})
		return
	}
	role := b.role(metric, as, set.Has(model.QuantileLabel))
	if role == BucketRole {
		from := model.BucketLabel
		if b.Kind == pmetric.MetricTypeSummary {
			from = model.QuantileLabel
		}
		bound, err := strconv.ParseFloat(set.Get(from), 64)
		if err != nil || math.IsNaN(bound) {
			return
		}
		c.Bounds.set(l, bound)
	}
	l.Role = role
	l.Point = c.points.of(c.metrics.family(b, r, c.metrics.scope(set, c.Rules.Version)), l, set, func(n string) bool {
		switch n {
		case model.BucketLabel:
			return b.Kind == pmetric.MetricTypeHistogram || b.Kind == pmetric.MetricTypeExponentialHistogram
		case model.QuantileLabel:
			return b.Kind == pmetric.MetricTypeSummary
		}
		return isApart(n)
	})
	l.claim()
}

// claim makes the line one of its point's.
func (l *Line) claim() {
	if l.Role == ValueRole || l.Role == CountRole {
		l.Point.claim()
	}
}

// again returns the final labels of a line that was placed before, under other metadata.
func (c *Catalog) again(l *Line) labels.Labels {
	e, _ := c.reread.line(l, slotMarks)
	set, err := c.finalAgain(c.expose(e, l.Setting), l.Name.Cond)
	if err != nil { // it succeeded the first time
		return labels.EmptyLabels()
	}
	return set
}

// resource returns the resource that labels name.
func (c *Catalog) resource(set labels.Labels, cond *Condition) *Resource {
	return c.metrics.resource(c.own(set, model.JobLabel, cond), c.own(set, model.InstanceLabel, cond))
}

// own returns the value of a label, empty when it is the target's.
func (c *Catalog) own(set labels.Labels, name string, cond *Condition) string {
	v := set.Get(name)
	for _, l := range c.labels {
		switch {
		case l.Name != name:
		case cond.valueOf(l) == v:
			return ""
		case v == "" && c.Rules.KeepIdentity:
			return noLabel
		default:
		}
	}
	return v
}
