// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"hash/maphash"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// A Line is one line of a page, except its value, with its meaning to the targets of a cohort. Text, kind and setting
// never change; the rest is guarded by the cohort's lock, except that the lines of a plan keep their point while the
// plan exists.
type Line struct {
	text

	Point   *Point
	ID      uint32
	Epoch   uint32 // the last pass that saw the line
	Number  int32  // number of its first sample in that pass
	Kind    lineKind
	Setting Setting
	Role    role
	bound   boundNumber // of a bucket or quantile
}

// hash is the hash of the text, made specific if the line is of one target only.
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

// A Setting is the part of the page above a line that can change its labels: whether the last TYPE was a histogram or a
// summary. It is anySetting for a line without a label of a bucket or quantile. A TYPE line has the setting that it
// makes.
type Setting uint8

// The settings.
const (
	AnySetting Setting = iota
	PlainSetting
	histogramSetting
	summarySetting
	RefusedSetting // of a line that drops a series over the limit
)

// SettingOf returns the setting that a TYPE makes.
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
	NoRole role = iota // rejected: counted, but not in the metrics
	ValueRole
	BucketRole // or a quantile
	SumRole
	CountRole
	CreatedRole
	NativeRole
	TargetInfoRole
)

// A Meta is the content of a line of metadata.
type Meta struct {
	Kind lineKind
	Type model.MetricType
	Text string
}

// A Name is the name of a metric and, when relabelling changed it, the name it was exposed under.
type Name struct {
	Final, exposed string
	Cond           *Condition // under which it has this name and labels; nil if all targets have them
	head           string     // shared start of texts in pieces
	Epoch          uint32
	First          int32    // number of its first sample in the marked plan
	base           [2]*base // of this epoch; the second is for native histograms
}

func (n *Name) hash() uint64 {
	h := maphash.String(seed, n.Final)
	if n.exposed != n.Final {
		h = (h ^ maphash.String(seed, n.exposed)) * 0x9e3779b97f4a7c15
	}
	return h ^ n.Cond.pinned()
}

// A Point is the identity of a data point, which one or more samples make up.
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
	values string // where the values are in the line's text, packed, one for each key that the target does not fill in
}

// The bits of a point: whether a line that is its value or count has been placed, whether more than one has, whether
// only the page that they came with has the line or the point, and the point's place in a layout being built.
const (
	placedBit  = 1
	severalBit = 2
	soleBit    = 4
	orderBits  = 3 // the number of flags before the order
)

func (p *Point) claim() { p.bits |= p.bits&placedBit<<1 | placedBit }

// IsSeveral reports whether more than one line was placed as the point's value or count.
func (p *Point) IsSeveral() bool { return p.bits&severalBit != 0 }

// Order returns the point's place in a layout being built.
func (p *Point) Order() int32 { return int32(p.bits >> orderBits) }

// SetOrder sets the point's place in a layout being built.
func (p *Point) SetOrder(n int32) { p.bits = uint32(n)<<orderBits | p.bits&(1<<orderBits-1) }

// keys are the names of a point's attributes, in order, with the number of the target's label that has the value, if
// any.
type keys struct {
	id     uint32
	epoch  uint32
	Names  []string
	From   []int16 // -1: the point has the value
	Marked bool    // some value is the target's
	// Contested says that there are keys with the same names where a line has a value of its own that the target fills
	// in here.
	Contested bool
}

// A Family is a metric: a base within a scope of a resource.
type Family struct {
	ID       uint32
	Base     *base
	Resource *Resource
	Scope    *Scope
	shape    *shape // of a placeholder, which has no base
	Epoch    uint32
	Slot     int32
}

// A Resource is named by a job and an instance; empty ones stand for the target's own.
type Resource struct {
	job, instance string
	Epoch         uint32
	Slot          int32
}

// IsNamed reports whether lines name it.
func (r *Resource) IsNamed() bool { return r.job != "" || r.instance != "" }

// A Scope is named by labels of lines, or else the default one.
type Scope struct {
	Name, Version, Schema string
	Attributes            []labels.Label
	isDefault             bool
	epoch                 uint32
}

// Value returns the value of an attribute, which is packed at the offset at unless it is the target's, and the offset
// of the next one.
func (p *Point) Value(i, at int, t *Identity) (v string, next int) {
	if from := p.Form.Keys.From[i]; from >= 0 {
		return t.Value(int(from)), at
	}
	s, next := unpack(p.Form.values, at)
	return p.text(s), next
}

// NativeMark ends the text of a native histogram's line, followed by the kind of histogram. No other text contains it.
const NativeMark = "\xff#"

// Native returns which kind of native histogram the line is.
func (l *Line) Native() Native {
	switch text := l.first(); { // always whole, since the parser returned it so
	case strings.HasSuffix(text, NativeMark+"1"):
		return Exponential
	case strings.HasSuffix(text, NativeMark+"2"):
		return Custom
	default:
		return Classic
	}
}
