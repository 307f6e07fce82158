// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package decode decodes OTLP payloads, and gives equal names and attribute
// values one string across messages.
//
// What it returns belongs to the caller; the payload is not kept. It decodes
// what telemetry usually contains, and leaves the rest to a complete decoder:
// false means that the payload has something unusual, or is malformed. Each
// Decoder remembers a limited number of short strings.
package decode

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/reuse"
	"github.com/godwit-otel/godwit/internal/slab"
)

// Decoder decodes payloads of any signal, one at a time.
type Decoder struct {
	// Separate tables, so that values which never come again do not displace names.
	names  table
	values texts
	// pooled says that the Collector frees data piece by piece: equal values then share their string, but not pdata's
	// memory around it.
	pooled bool
	// before are the attributes of the last items, by position, since the following ones are similar. Their keys
	// differ; up to the current position, they are those of the current item.
	before []pair
	// headers are the names and descriptions of the metrics of the last payload, in order, and next is the position of
	// the current payload. Those of another target are usually the same.
	headers []string
	next    int
	// attributes is the number of attributes of the last item.
	attributes int
	slabs      slab.Slabs
	// Reused memory, and known attributes, for metrics that are decoded into these.
	again *reuse.Metrics
	lists *Lists
	// weight is the weight of the messages so far, and end the capacity of their payload, which shows how far that is.
	weight, end int
}

// begin begins a payload.
func (d *Decoder) begin(payload []byte) { d.weight, d.end, d.next = 0, cap(payload), 0 }

var decoders = sync.Pool{New: func() any {
	return &Decoder{names: make(table, 1<<10), values: make(texts, 1<<12)}
}}

// Get returns a decoder for exclusive use, and Put takes it back.
func Get() *Decoder {
	d := decoders.Get().(*Decoder)
	d.pooled = handback.Pooled()
	return d
}

// Put is described at Get.
func Put(d *Decoder) { decoders.Put(d) }

// resource reads a Resource.
func (d *Decoder) resource(message []byte, into pcommon.Resource) bool {
	c := cursor{message: message}
	for c.more() {
		switch c.tag() {
		case 1<<3 | length:
			if !d.attribute(c.bytes(), into.Attributes()) {
				return false
			}
		case 2<<3 | varint:
			into.SetDroppedAttributesCount(uint32(c.number()))
		default:
			return false
		}
	}
	return !c.bad
}

// scope reads an InstrumentationScope.
func (d *Decoder) scope(message []byte, into pcommon.InstrumentationScope) bool {
	c := cursor{message: message}
	for c.more() {
		switch c.tag() {
		case 1<<3 | length:
			into.SetName(d.names.get(c.bytes()))
		case 2<<3 | length:
			into.SetVersion(d.names.get(c.bytes()))
		case 3<<3 | length:
			if !d.attribute(c.bytes(), into.Attributes()) {
				return false
			}
		case 4<<3 | varint:
			into.SetDroppedAttributesCount(uint32(c.number()))
		default:
			return false
		}
	}
	return !c.bad
}
