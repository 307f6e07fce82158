// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"hash/maphash"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// A line is one line of a page, value aside, and what it means to the targets of a cohort. Text, kind and setting never
// change; the rest belongs to the cohort's lock, except that a plan's own lines keep their point while it lives.
type line struct {
	text

	point   *point
	id      uint32
	epoch   uint32 // when a pass last saw the line
	number  int32  // of its first sample in that pass
	kind    lineKind
	setting setting
	role    role
	bound   boundNumber // of a bucket or quantile
}

// hash is that of the text, unless the line is of one target only.
func (l *line) hash() uint64 { return l.text.hash() ^ l.name.cond.pinned() }

type lineKind uint8

const (
	seriesLine lineKind = iota
	droppedLine
	typeLine
	helpLine
	unitLine
	reportLine
)

func (k lineKind) isMetadata() bool { return k == typeLine || k == helpLine || k == unitLine }

// A setting is what of the page above a line can change its labels: whether the last TYPE was a histogram or a summary.
// It is anySetting for a line that has no label of a bucket or quantile. A TYPE line holds the one it sets.
type setting uint8

const (
	anySetting setting = iota
	plainSetting
	histogramSetting
	summarySetting
	refusedSetting // of a line that a target may not have
)

func settingOf(t model.MetricType) setting {
	switch t {
	case model.MetricTypeHistogram:
		return histogramSetting
	case model.MetricTypeSummary:
		return summarySetting
	default:
		return plainSetting
	}
}

func (c setting) metricType() model.MetricType {
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

const (
	noRole role = iota // rejected: counted, but nothing comes of it
	valueRole
	bucketRole // or a quantile
	sumRole
	countRole
	createdRole
	nativeRole
	targetInfoRole
)

// A meta is what a line of metadata says.
type meta struct {
	kind lineKind
	typ  model.MetricType
	text string
}

// A name is the name of a metric and, when relabelling changed it, the name it was exposed under.
type name struct {
	final, exposed string
	cond           *condition // on which it is the name, with all other labels; nil if they are the same for all targets
	head           string     // of texts in pieces
	epoch          uint32
	first          int32    // of its samples in the marked plan
	base           [2]*base // in this epoch; the second is for native histograms
}

func (n *name) hash() uint64 {
	h := maphash.String(seed, n.final)
	if n.exposed != n.final {
		h = (h ^ maphash.String(seed, n.exposed)) * 0x9e3779b97f4a7c15
	}
	return h ^ n.cond.pinned()
}

// A point is the identity of a data point: what makes samples parts of one.
type point struct {
	family *family
	form   *form
	line   *line // whose text has most of the values
	epoch  uint32
	bits   uint32 // see below
}

// A form is what many points of a large page have in common.
type form struct {
	keys   *keys
	values string // where in the line's text they are, packed: one for each key that is not the target's to fill in
}

// What a point's bits are: whether a line that is its value or count has been placed, whether more than one has, and where
// a layout in the making has the point.
const (
	placedBit  = 1
	severalBit = 2
	orderBits  = 2 // as many are before the order
)

func (p *point) claim() { p.bits |= p.bits&placedBit<<1 | placedBit }

func (p *point) isSeveral() bool { return p.bits&severalBit != 0 }

func (p *point) order() int32 { return int32(p.bits >> orderBits) }

func (p *point) setOrder(n int32) { p.bits = uint32(n)<<orderBits | p.bits&(placedBit|severalBit) }

// keys names the attributes of a point, in order, and says which of the target's labels, if any, holds the value.
type keys struct {
	id     uint32
	epoch  uint32
	names  []string
	from   []int16 // -1: the point has it
	marked bool    // some value is the target's
	// contested says that others have the same names, and a line's own value where these have the target's.
	contested bool
}

// A family is a metric in the tree: a base within a scope of a resource.
type family struct {
	id       uint32
	base     *base
	resource *resource
	scope    *scope
	shape    *shape // of a blank, which has no base
	epoch    uint32
	slot     int32
}

// A resource is named by a job and an instance; the empty ones are the target's own.
type resource struct {
	job, instance string
	epoch         uint32
	slot          int32
}

// isNamed tells whether lines name it.
func (r *resource) isNamed() bool { return r.job != "" || r.instance != "" }

type scope struct {
	name, version, schema string
	attributes            []labels.Label
	isDefault             bool
	epoch                 uint32
}
