// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"hash/maphash"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/memo"
	"github.com/godwit-otel/godwit/internal/reuse"
)

// Lists are attributes by their encoded bytes: what comes again is not decoded again, but shared.
type Lists struct {
	seed  maphash.Seed
	table *memo.Table[list]
}

type list struct {
	raw        string
	attributes reuse.Attributes
}

const (
	// maxList limits the bytes of attributes that are remembered: longer ones hardly come twice.
	maxList = 2 << 10
	// listSize is the size of a list besides its bytes, and listFactor that of each byte: strings, and one attribute
	// for some ten bytes.
	listSize, listFactor = 160, 6
)

// NewLists makes lists of at most the given number of bytes.
func NewLists(bytes int) *Lists {
	return &Lists{maphash.MakeSeed(), memo.New(bytes, func(l *list) int { return listSize + listFactor*len(l.raw) })}
}

// Age forgets what has not come for a while.
func (l *Lists) Age(now time.Time) { l.table.Age(now) }

// Bytes is how much memory they take.
func (l *Lists) Bytes() int {
	_, bytes, _ := l.table.Stats()
	return bytes
}

// list returns attributes that are encoded as fields with a tag, nil if there is no room for them or they are unusual.
func (d *Decoder) list(tag byte, raw []byte) (reuse.Attributes, bool) {
	if len(raw) > maxList {
		return reuse.Attributes{}, false
	}
	h := maphash.Bytes(d.lists.seed, raw)
	is := func(l *list) bool { return l.raw == string(raw) }
	if l := d.lists.table.Find(h, is); l != nil { // fast path
		return l.attributes, true
	}
	if d.lists.table.Full() {
		return reuse.Attributes{}, false
	}
	attributes := pcommon.NewMap()
	c := cursor{message: raw}
	for c.more() {
		if c.tag() != tag || !d.attribute(c.bytes(), attributes) {
			return reuse.Attributes{}, false
		}
	}
	l := d.lists.table.Add(h, &list{string(raw), reuse.Seal(attributes)}, is)
	if l == nil || c.bad {
		return reuse.Attributes{}, false
	}
	return l.attributes, true
}

// MetricsAgain is Metrics in reused memory. If it returns false, that has unspecified content.
func (d *Decoder) MetricsAgain(payload []byte, again *reuse.Metrics, lists *Lists) bool {
	d.again, d.lists = again, lists
	defer func() {
		again.Weighs(d.weight)
		d.again, d.lists = nil, nil
	}()
	d.begin(payload)
	return each(payload, func(message []byte) bool {
		return d.fit(message, resourceWeight) && d.resourceMetrics(message, again.Resource())
	})
}

// sharedResource decodes a Resource that has only attributes which came before.
func (d *Decoder) sharedResource(message []byte, into pcommon.Resource) bool {
	if d.again == nil || len(message) == 0 {
		return false
	}
	attributes, ok := d.list(1<<3|length, message)
	if ok {
		d.again.Share(into.Attributes(), attributes)
	}
	return ok
}

// kindOf is the field of a metric with its type, 0 if there is none.
func kindOf(message []byte) byte {
	c := cursor{message: message}
	for c.more() {
		switch tag := c.tag(); tag {
		case 5<<3 | length, 7<<3 | length, 9<<3 | length, 10<<3 | length, 11<<3 | length:
			return tag
		case 1<<3 | length, 2<<3 | length, 3<<3 | length, 12<<3 | length:
			c.bytes()
		default:
			return 0
		}
	}
	return 0
}

// numberAgain decodes a number point: first all of it, and then into known memory.
func (d *Decoder) numberAgain(message []byte, to pmetric.NumberDataPointSlice) bool {
	const none, double, integer = 0, 1, 2
	var (
		c           = cursor{message: message}
		start, at   pcommon.Timestamp
		flags, bits uint64
		kind        = none
		raw         []byte
	)
	for c.more() {
		switch c.tag() {
		case 2<<3 | fixed64:
			start = c.time()
		case 3<<3 | fixed64:
			at = c.time()
		case 4<<3 | fixed64:
			kind, bits = double, c.fixed64()
		case 6<<3 | fixed64:
			kind, bits = integer, c.fixed64()
		case 7<<3 | length:
			if raw != nil { // they are in several places
				return d.numberPoint(message, d.slabs.AppendNumber(to))
			}
			begin := c.at - 1
			c.bytes()
			for c.more() && c.message[c.at] == 7<<3|length {
				c.at++
				c.bytes()
			}
			raw = c.message[begin:c.at]
		case 8<<3 | varint:
			flags = c.number()
		default:
			return d.numberPoint(message, d.slabs.AppendNumber(to))
		}
	}
	if c.bad || kind == none {
		return d.numberPoint(message, d.slabs.AppendNumber(to))
	}
	attributes, known := reuse.None, true
	if raw != nil {
		if attributes, known = d.list(7<<3|length, raw); !known {
			attributes = reuse.None
		}
	}
	var p pmetric.NumberDataPoint
	if kind == double {
		p = d.again.Double(to, attributes, math.Float64frombits(bits), &d.slabs)
	} else {
		p = d.again.Integer(to, attributes, int64(bits), &d.slabs)
	}
	p.SetStartTimestamp(start)
	p.SetTimestamp(at)
	p.SetFlags(pmetric.DataPointFlags(flags))
	for c = (cursor{message: raw}); !known && c.more(); {
		c.tag() // it is the only one
		if !d.itemAttribute(c.bytes(), p.Attributes()) {
			return false
		}
	}
	return true
}
