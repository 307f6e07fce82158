// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"hash/maphash"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// A Line is one line of a page, value aside, and what it means to the targets of a cohort. Text, kind and setting never
// change; the rest belongs to the cohort's lock, except that a plan's own lines keep their point while it lives.
type Line struct {
	text

	Point   *Point
	ID      uint32
	Epoch   uint32 // when a pass last saw the line
	Number  int32  // of its first sample in that pass
	Kind    lineKind
	Setting Setting
	Role    role
	bound   boundNumber // of a bucket or quantile
}

// hash is that of the text, unless the line is of one target only.
func (l *Line) hash() uint64 { return l.text.hash() ^ l.Name.Cond.pinned() }

type lineKind uint8

// The kinds of lines.
const (
	SeriesLine lineKind = iota
	DroppedLine
	TypeLine
	HelpLine
	UnitLine
	ReportLine
)

func (k lineKind) IsMetadata() bool { return k == TypeLine || k == HelpLine || k == UnitLine }

// A Setting is what of the page above a line can change its labels: whether the last TYPE was a histogram or a summary.
// It is anySetting for a line that has no label of a bucket or quantile. A TYPE line holds the one it sets.
type Setting uint8

// The settings.
const (
	AnySetting Setting = iota
	PlainSetting
	histogramSetting
	summarySetting
	RefusedSetting // of a line that a target may not have
)

// SettingOf returns the one that a TYPE sets.
func SettingOf(t model.MetricType) Setting {
	switch t {
	case model.MetricTypeHistogram:
		return histogramSetting
	case model.MetricTypeSummary:
		return summarySetting
	default:
		return PlainSetting
	}
}

func (c Setting) metricType() model.MetricType {
	switch c {
	case histogramSetting:
		return model.MetricTypeHistogram
	case summarySetting:
		return model.MetricTypeSummary
	default:
		return model.MetricTypeUnknown
	}
}

// A role is the part a sample plays in its data point.
type role uint8

// The roles.
const (
	NoRole role = iota // rejected: counted, but nothing comes of it
	ValueRole
	BucketRole // or a quantile
	SumRole
	CountRole
	CreatedRole
	NativeRole
	TargetInfoRole
)

// A Meta is what a line of metadata says.
type Meta struct {
	Kind lineKind
	Type model.MetricType
	Text string
}

// A Name is the name of a metric and, when relabelling changed it, the name it was exposed under.
type Name struct {
	Final, exposed string
	Cond           *Condition // on which it is the name, with all other labels; nil if they are the same for all targets
	head           string     // of texts in pieces
	Epoch          uint32
	First          int32    // of its samples in the marked plan
	base           [2]*base // in this epoch; the second is for native histograms
}

func (n *Name) hash() uint64 {
	h := maphash.String(seed, n.Final)
	if n.exposed != n.Final {
		h = (h ^ maphash.String(seed, n.exposed)) * 0x9e3779b97f4a7c15
	}
	return h ^ n.Cond.pinned()
}

// A Point is the identity of a data point: what makes samples parts of one.
type Point struct {
	Family *Family
	Form   *form
	Line   *Line // whose text has most of the values
	Epoch  uint32
	bits   uint32 // see below
}

// A form is what many points of a large page have in common.
type form struct {
	Keys   *keys
	values string // where in the line's text they are, packed: one for each key that is not the target's to fill in
}

// What a point's bits are: whether a line that is its value or count has been placed, whether more than one has, whether
// nobody has the line or the point but the page that they came with, and where a layout in the making has the point.
const (
	placedBit  = 1
	severalBit = 2
	soleBit    = 4
	orderBits  = 3 // as many are before the order
)

func (p *Point) claim() { p.bits |= p.bits&placedBit<<1 | placedBit }

// IsSeveral tells whether more than one line has been placed that is the point's value or count.
func (p *Point) IsSeveral() bool { return p.bits&severalBit != 0 }

// Order returns where a layout in the making has the point.
func (p *Point) Order() int32 { return int32(p.bits >> orderBits) }

// SetOrder notes where a layout in the making has the point.
func (p *Point) SetOrder(n int32) { p.bits = uint32(n)<<orderBits | p.bits&(1<<orderBits-1) }

// keys names the attributes of a point, in order, and says which of the target's labels, if any, holds the value.
type keys struct {
	id     uint32
	epoch  uint32
	Names  []string
	From   []int16 // -1: the point has it
	Marked bool    // some value is the target's
	// Contested says that others have the same names, and a line's own value where these have the target's.
	Contested bool
}

// A Family is a metric in the tree: a base within a scope of a resource.
type Family struct {
	ID       uint32
	Base     *base
	Resource *Resource
	Scope    *Scope
	shape    *shape // of a blank, which has no base
	Epoch    uint32
	Slot     int32
}

// A Resource is named by a job and an instance; the empty ones are the target's own.
type Resource struct {
	job, instance string
	Epoch         uint32
	Slot          int32
}

// IsNamed tells whether lines name it.
func (r *Resource) IsNamed() bool { return r.job != "" || r.instance != "" }

// A Scope is named by labels of lines, or else the default one.
type Scope struct {
	Name, Version, Schema string
	Attributes            []labels.Label
	isDefault             bool
	epoch                 uint32
}

// Value returns the value of an attribute, packed at a place unless it is the target's, and where the next one is packed.
func (p *Point) Value(i, at int, t *Identity) (v string, next int) {
	if from := p.Form.Keys.From[i]; from >= 0 {
		return t.Value(int(from)), at
	}
	s, next := unpack(p.Form.values, at)
	return p.text(s), next
}

// NativeMark ends the text of a native histogram's line, but for its representation. No other text has it.
const NativeMark = "\xff#"

// Native returns which representation of a histogram the line has.
func (l *Line) Native() Native {
	switch text := string(*l.body); { // which is whole, being the parser's
	case strings.HasSuffix(text, NativeMark+"1"):
		return Exponential
	case strings.HasSuffix(text, NativeMark+"2"):
		return Custom
	default:
		return Classic
	}
}
