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
	// Values that never come again are not to displace names.
	names  table
	values texts
	// pooled says that the Collector frees data piece by piece: equal values have one string then, and not the memory that pdata has around it.
	pooled bool
	// before are attributes of the last items, by their position: those that follow are alike. No two have the same key, and
	// up to where the item at hand has got, the keys are its own.
	before []pair
	// headers are what the metrics of the last payload are called and described by, in order, and next is where the payload at hand is.
	// Those of another target are the same, mostly.
	headers []string
	next    int
	// attributes is how many the last item had.
	attributes int
	slabs      slab.Slabs
	// Memory that was used before, and attributes that are known, if metrics are decoded into such.
	again *reuse.Metrics
	lists *Lists
	// weight is that of the messages up to here, and end the capacity of their payload, by which it is known how far that is.
	weight, end int
}

// begin begins a payload.
func (d *Decoder) begin(payload []byte) { d.weight, d.end, d.next = 0, cap(payload), 0 }

var decoders = sync.Pool{New: func() any {
	return &Decoder{names: make(table, 1<<10), values: make(texts, 1<<12)}
}}

// Get takes a decoder that nobody else uses, and Put gives it back.
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
