// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"encoding/binary"
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

// A shape is what lines have in common that differ only in the values of labels which cannot change what becomes of a
// line. It is worked out once, with marks in place of those values; for the next such line only the values are filled
// in.
type shape struct {
	key    string
	cond   *Condition
	other  *shape // the line's shape under another condition
	plain  bool   // else lines of this shape are worked out one by one
	kind   lineKind
	name   *Name
	keys   *keys
	values []shapedValue // one for each key that the target does not fill in
	blank  Family        // stands for the family of points whose lines are not placed yet
	limit  string        // the label that is a bound or quantile, if there is one
	bound  float64
	alone  bool // each line most likely has a point of its own
}

// A shapedValue is the value of one of the line's labels, or a constant if label is -1.
type shapedValue struct {
	label int
	fixed string
}

// shapes are those seen since the last sweep.
type shapes struct {
	known map[uint64]*shape // by the hash of their keys; nil until a line of the shape came twice
	count int               // of keys and conditions; an estimate
	held  int64             // in bytes; an estimate
	key   []byte            // memory for later calls
}

func newShapes() shapes { return shapes{known: map[uint64]*shape{}} }

// mostShapes limits the shapes that a cohort keeps. Lines of other shapes are worked out one by one.
const mostShapes = 1 << 12

// mostShapedLabels is the most labels that a line with a shape has. With more, working a shape out takes long: each
// label is compared with all others.
const mostShapedLabels = 64

// shape returns the shape of a line, nil if it came for the first time: a shape is worked out when it comes again.
// isSlotted says that some values of the line are the target's own.
func (c *Catalog) shape(t *Identity, e *expo.Entry, in Setting, isSlotted bool) *shape {
	if c.Rules.opaque || t.Pin != nil || e.Labels() > mostShapedLabels || bytes.IndexByte(e.Text, '\\') >= 0 {
		return nil
	}
	shs := &c.shapes
	key := append(append(append(shs.key[:0], byte(in)), e.Metric()...), 0xff)
	for i := range e.Labels() {
		name, value := e.Label(i)
		key = append(append(key, name...), 0xff)
		if isSlotted {
			if slot := c.Own.of(t, name, value); slot >= 0 {
				key = append(binary.BigEndian.AppendUint16(append(key, 0xfe), uint16(slot)), 0xff)
				continue
			}
		}
		if len(value) == 0 || c.Rules.fixes(string(name)) { // a label without a value does not exist
			key = append(append(key, value...), 0xff)
		}
	}
	shs.key = key
	h := maphash.Bytes(seed, key)
	first, seen := shs.known[h]
	if !seen {
		if shs.count < c.Rules.MostShapes {
			shs.known[h] = nil
			shs.count++
		}
		return nil
	}
	for sh := first; sh != nil; sh = sh.other {
		switch {
		case sh.key != string(key):
			return nil
		case t.meets(sh.cond):
			if !sh.plain {
				return nil
			}
			return sh
		default:
		}
	}
	if first != nil {
		if shs.count >= c.Rules.MostShapes {
			return nil
		}
		shs.count++
	}
	sh, err := c.shapeOf(t, e, in, isSlotted)
	if err != nil {
		return nil
	}
	sh.key, sh.other = string(shs.key), first
	shs.known[h] = sh
	shs.held += shapeBytes + int64(len(sh.key)) + shapedValueBytes*int64(len(sh.values))
	if !sh.plain {
		return nil
	}
	return sh
}

// shapeOf works out a shape. It is not plain if a shape cannot describe the line.
func (c *Catalog) shapeOf(t *Identity, e *expo.Entry, in Setting, isSlotted bool) (*shape, error) {
	sh := &shape{}
	exposed := c.expose(e, in)
	b := labels.NewBuilder(exposed)
	for i := range e.Labels() {
		name, value := e.Label(i)
		slot := -1
		if isSlotted {
			slot = c.Own.of(t, name, value)
		}
		switch {
		case slot >= 0:
			b.Set(string(name), OfTarget.Of(ownBase+slot))
		case len(value) > 0 && !c.Rules.fixes(string(name)):
			b.Set(string(name), ofLine.Of(i))
		default:
		}
	}
	set, cond, err := c.final(b.Labels(), t)
	sh.cond = cond
	switch {
	case errors.Is(err, errPinned):
		return nil, err
	case err != nil:
		return sh, nil //nolint:nilerr // lines of it take the long way, which tells of the error
	}
	sh.name = c.nameOf(exposed, set, cond)
	if sh.plain = true; set.IsEmpty() {
		sh.kind = DroppedLine
		return sh, nil
	}
	metric := set.Get(model.MetricNameLabel)
	sh.plain = metric != translator.TargetInfoMetricName
	var kept []labels.Label
	set.Range(func(l labels.Label) {
		at := ofLine.number(l.Value)
		switch {
		case l.Value == "":
			return
		case isApart(l.Name):
			sh.plain = sh.plain && at < 0
			return
		case l.Name == model.BucketLabel || l.Name == model.QuantileLabel:
			sh.bound, err = strconv.ParseFloat(l.Value, 64)
			sh.plain = sh.plain && sh.limit == "" && err == nil && !math.IsNaN(sh.bound)
			sh.limit = strings.Clone(l.Name)
			return
		}
		kept = append(kept, l)
		if marked(l.Value) < 0 {
			v := shapedValue{label: at}
			if at < 0 {
				v.fixed = strings.Clone(l.Value)
			}
			sh.values = append(sh.values, v)
		}
	})
	_, suffix := stem(metric)
	sh.alone = sh.limit == "" && suffix != sumSuffix && suffix != countSuffix && suffix != createdSuffix
	if sh.plain {
		sh.keys = c.points.keysOf(kept)
		sh.blank = Family{Resource: c.resource(set, cond), Scope: c.metrics.scope(set, c.Rules.Version), shape: sh}
	}
	return sh, nil
}

// isApart reports whether a label says more about a point than an attribute.
func isApart(name string) bool {
	switch name {
	case model.MetricNameLabel, model.InstanceLabel, model.JobLabel, model.SchemeLabel, model.MetricsPathLabel:
		return true
	}
	return strings.HasPrefix(name, scopePrefix)
}

// mould makes a line of a shape. Its point is complete except for the family.
func (c *Catalog) mould(sh *shape, e *expo.Entry, in Setting, t text) *Line {
	if sh.kind == DroppedLine {
		return c.NewLine(t, sh.kind, in)
	}
	l, p := sh.allocate()
	return c.fill(sh, e, c.makeLine(l, t, sh.kind, in), p)
}

// mouldSole makes a line of a shape with a point that is most likely no other line's, and a text in one piece, with
// slots or without. Many such lines are seen only once.
func (c *Catalog) mouldSole(sh *shape, e *expo.Entry, in Setting, t text) *Line {
	l, p := sh.allocate()
	p.bits = soleBit
	return c.fill(sh, e, c.makeLine(l, t, sh.kind, in), p)
}

// isSole reports whether a line of the shape most likely has a point of its own.
func (sh *shape) isSole() bool { return sh.alone && sh.kind == SeriesLine }

// fill sets the point of a line of a shape, except for the family.
func (c *Catalog) fill(sh *shape, e *expo.Entry, l *Line, p *Point) *Line {
	b := sh.keys.start(c.points.packing[:0])
	begin := len(b)
	for _, v := range sh.values {
		if v.label < 0 {
			b = append(binary.AppendUvarint(b, uint64(len(v.fixed))<<1|1), v.fixed...)
			continue
		}
		at, end := e.Span(v.label)
		size, piece := end-at, bodyPiece
		switch {
		case l.IsSlotted():
			kept := c.Own.template.places[v.label]
			piece, at = kept.piece, kept.at
		case !l.isWhole(): // cut at the same offset as the text
			piece, at = c.pieces.place(at)
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(size)<<1), uint64(piece))
		b = binary.AppendUvarint(b, uint64(at))
	}
	c.points.packing = b
	p.Family, p.Form, p.Line = &sh.blank, c.points.form(sh.keys, b, begin), l
	l.Point = p
	return l
}

// allocate allocates a line and its point, together if they live equally long.
func (sh *shape) allocate() (*Line, *Point) {
	if !sh.alone {
		return new(Line), new(Point)
	}
	var both struct {
		line  Line
		point Point
	}
	return &both.line, &both.point
}

// settle places a line as its shape says. It returns false if the shape does not say.
func (c *Catalog) settle(l *Line, b *base) bool {
	p := l.Point
	if p == nil || p.Family.shape == nil {
		return false
	}
	sh := p.Family.shape
	limit := ""
	switch b.Kind {
	case pmetric.MetricTypeHistogram, pmetric.MetricTypeExponentialHistogram:
		limit = model.BucketLabel
	case pmetric.MetricTypeSummary:
		limit = model.QuantileLabel
	default:
	}
	role := b.role(l.Name.Final, Classic, sh.limit == model.QuantileLabel)
	if sh.limit != "" && sh.limit != limit || sh.limit == "" && role == BucketRole || b.Custom {
		return false
	}
	if l.Role = role; role == BucketRole {
		c.Bounds.set(l, sh.bound)
	}
	p.Family = c.metrics.family(b, p.Family.Resource, p.Family.Scope)
	l.Point = c.points.intern(p)
	l.claim()
	return true
}
