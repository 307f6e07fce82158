// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package decode decodes OTLP payloads, and gives equal names and attribute
// values one string across messages.
//
// What it returns belongs to the caller; the payload is not kept. It knows
// what telemetry usually holds, and leaves the rest to who knows all of it:
// false means that the payload has something unusual, or is malformed. Each
// Decoder remembers a bounded number of short strings.
package decode

import (
	"encoding/binary"
	"math"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/reuse"
	"github.com/godwit-otel/godwit/internal/slab"
)

const (
	// usual is how much the messages of a payload weigh at the most for each of its bytes, if they hold what is of use, and little
	// is how much more they may weigh in all.
	usual, little = 8, 16 << 10
)

// Room is the most that the messages of a payload may weigh: a multiple that leaves room for points with a time and nothing
// else, and not for those that have nothing at all.
func Room(size int) int { return 1<<20 + 32*size }

// Charge is of how many bytes a payload usually is whose messages weigh that much.
func Charge(weight int) int { return max(0, weight-little) / usual }

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

// fit weighs a message before it is decoded. What weighs more than what is of use, up to the end of the message, is not for here: it is
// noticed before much is made of it. The message is a part of the payload which has all that follows it in its capacity.
func (d *Decoder) fit(message []byte, weight int) bool {
	d.weight += weight
	return d.fits(message, 0)
}

// fits tells whether what is in a message may weigh that much.
func (d *Decoder) fits(message []byte, weight int) bool {
	return d.weight+weight <= little+usual*(d.end-cap(message)+len(message))
}

// ahead makes room for all messages of a field of a message at once.
func ahead[L interface{ EnsureCapacity(n int) }](d *Decoder, message []byte, tag uint64, weight int, list L) (ok bool) {
	c := cursor{message: message}
	n := c.count(tag)
	if !d.fits(message, n*weight) {
		return false
	}
	list.EnsureCapacity(n)
	return true
}

// pair is an attribute: its value only if that is a string, and not too long, else nil.
type pair struct {
	key   string
	value *slab.Text
}

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

// table remembers strings, each in the one place that its hash names. Its length is a power of two.
type table []string

// maxInterned is the longest string that is remembered: longer ones hardly come twice.
const maxInterned = 64

// maxHeaders is how many headers are remembered, and maxHeader the longest of them: descriptions are sentences.
const maxHeaders, maxHeader = 2 << 10, 256

// header is a string of a metric's own.
func (d *Decoder) header(b []byte) string {
	at := d.next
	if at == maxHeaders || len(b) > maxHeader {
		return d.names.get(b)
	}
	d.next++
	if at == len(d.headers) {
		d.headers = append(d.headers, d.names.get(b))
	} else if d.headers[at] != string(b) {
		d.headers[at] = d.names.get(b)
	}
	return d.headers[at]
}

func (t table) get(b []byte) string {
	if len(b) == 0 || len(b) > maxInterned {
		return string(b)
	}
	s := &t[hash(b)&uint32(len(t)-1)]
	if *s != string(b) {
		*s = string(b)
	}
	return *s
}

// texts are a table of what attributes have as their values.
type texts []*slab.Text

// get returns what is remembered of a string that is not empty, or remembers it; nil if it is too long.
func (t texts) get(b []byte) *slab.Text {
	if len(b) > maxInterned {
		return nil
	}
	s := &t[hash(b)&uint32(len(t)-1)]
	if *s == nil || (*s).String() != string(b) {
		*s = slab.NewText(string(b))
	}
	return *s
}

// string is get of who needs the string alone, of any length.
func (t texts) string(b []byte) string {
	if len(b) == 0 || len(b) > maxInterned {
		return string(b)
	}
	return t.get(b).String()
}

// hash mixes the length and up to three words of eight bytes. Strings that collide cost time, not correctness.
func hash(b []byte) uint32 {
	const prime = 0x9e3779b97f4a7c15
	h := uint64(len(b)) * prime
	if n := len(b); n >= 8 {
		h ^= binary.LittleEndian.Uint64(b)
		h = h*prime ^ binary.LittleEndian.Uint64(b[n/2-4:])
		h = h*prime ^ binary.LittleEndian.Uint64(b[n-8:])
	} else {
		for _, c := range b {
			h = h*31 + uint64(c)
		}
	}
	h = (h ^ h>>32) * prime // what differs in high bits only is to show in low ones
	return uint32(h >> 40)
}

// Wire types, which a tag has in its lowest bits, after the number of the field.
const (
	varint  = 0
	fixed64 = 1
	length  = 2
	fixed32 = 5
)

// cursor reads a message. After a fault there is nothing more to read, and bad is set. To go on moves a number only:
// to move a slice would trouble the garbage collector at each step.
type cursor struct {
	message []byte
	at      int
	bad     bool
}

func (c *cursor) more() bool { return c.at < len(c.message) }

func (c *cursor) fail() { c.at, c.bad = len(c.message), true }

// tag reads a tag where there is more. Those of more than one byte come out as none that is known here.
func (c *cursor) tag() byte {
	c.at++
	return c.message[c.at-1]
}

// number reads a varint: a length or a value, or a tag.
func (c *cursor) number() uint64 {
	if c.at < len(c.message) && c.message[c.at] < 0x80 { // fast path: one byte covers most
		c.at++
		return uint64(c.message[c.at-1])
	}
	return c.longNumber()
}

func (c *cursor) longNumber() uint64 {
	v, n := protowire.ConsumeVarint(c.message[c.at:])
	if n < 0 {
		c.fail()
		return 0
	}
	c.at += n
	return v
}

// bytes reads what is valid until the payload is reused.
func (c *cursor) bytes() []byte {
	n := c.number()
	if n > uint64(len(c.message)-c.at) {
		c.fail()
		return nil
	}
	c.at += int(n)
	return c.message[c.at-int(n) : c.at]
}

func (c *cursor) fixed64() uint64 {
	if len(c.message)-c.at < 8 {
		c.fail()
		return 0
	}
	c.at += 8
	return binary.LittleEndian.Uint64(c.message[c.at-8:])
}

func (c *cursor) fixed32() uint32 {
	if len(c.message)-c.at < 4 {
		c.fail()
		return 0
	}
	c.at += 4
	return binary.LittleEndian.Uint32(c.message[c.at-4:])
}

func (c *cursor) double() float64 { return math.Float64frombits(c.fixed64()) }

func (c *cursor) time() pcommon.Timestamp { return pcommon.Timestamp(c.fixed64()) }

// signed reads a number in zigzag form.
func (c *cursor) signed() int32 {
	v := c.number()
	if v > math.MaxUint32 {
		c.fail()
	}
	return int32(protowire.DecodeZigZag(v))
}

func (c *cursor) traceID() (id pcommon.TraceID) {
	if b := c.bytes(); len(b) == len(id) {
		id = pcommon.TraceID(b)
	} else if len(b) > 0 {
		c.fail()
	}
	return id
}

func (c *cursor) spanID() (id pcommon.SpanID) {
	if b := c.bytes(); len(b) == len(id) {
		id = pcommon.SpanID(b)
	} else if len(b) > 0 {
		c.fail()
	}
	return id
}

// count is how often a field comes in the rest of a message, as far as that is well-formed.
func (c *cursor) count(tag uint64) (n int) {
	for ahead := *c; ahead.more(); {
		t := ahead.number()
		if t == tag {
			n++
		}
		switch t & 7 {
		case varint:
			ahead.number()
		case fixed64:
			ahead.fixed64()
		case length:
			ahead.bytes()
		case fixed32:
			ahead.fixed32()
		default:
			return n
		}
	}
	return n
}

// maxAttributes is the most that a map may have here: to put one in, all others are looked at.
const maxAttributes = 128

// keyValue splits a KeyValue.
func keyValue(message []byte) (key, value []byte, ok bool) {
	if len(message) > 1 && message[0] == 1<<3|length && message[1] < 0x80 {
		at := 2 + int(message[1])
		if value, ok = alone(message[min(at, len(message)):], 2<<3|length); ok { // fast path: a key and a value, both short
			return message[2:at], value, true
		}
	}
	return longKeyValue(message)
}

// alone reads a field that is all of a message, if it is short.
func alone(message []byte, tag byte) ([]byte, bool) {
	if len(message) > 1 && message[0] == tag && message[1] < 0x80 && int(message[1]) == len(message)-2 {
		return message[2:], true
	}
	return nil, false
}

func longKeyValue(message []byte) (key, value []byte, ok bool) {
	c := cursor{message: message}
	found := false
	for c.more() {
		switch c.tag() {
		case 1<<3 | length:
			key = c.bytes()
		case 2<<3 | length:
			if found {
				return nil, nil, false
			}
			value, found = c.bytes(), true
		default:
			return nil, nil, false
		}
	}
	return key, value, !c.bad
}

// attribute reads a KeyValue into a map. There must not be two of the same key.
func (d *Decoder) attribute(message []byte, into pcommon.Map) bool {
	key, value, ok := keyValue(message)
	p := pair{key: d.names.get(key)}
	if _, twice := into.Get(p.key); twice {
		return false
	}
	return ok && into.Len() < maxAttributes && d.put(&p, value, into)
}

// itemAttribute is attribute for what there are many of.
func (d *Decoder) itemAttribute(message []byte, into pcommon.Map) bool {
	key, value, ok := keyValue(message)
	at := into.Len()
	if !ok || at >= maxAttributes {
		return false
	}
	if at == 0 {
		d.slabs.Reserve(into, max(1, d.attributes))
	}
	d.attributes = at + 1
	if at < len(d.before) && d.before[at].key == string(key) { // fast path: as before
		return d.put(&d.before[at], value, into)
	}
	p := pair{key: d.names.get(key)}
	if _, twice := into.Get(p.key); twice {
		return false
	}
	d.before = d.before[:min(at, len(d.before))]
	if len(d.before) < at || len(p.key) > maxInterned {
		return d.put(&p, value, into)
	}
	d.before = append(d.before, p)
	return d.put(&d.before[at], value, into)
}

// put puts an AnyValue under the key of a pair, which is not in the map. Strings and numbers come first: they are most of
// all.
func (d *Decoder) put(p *pair, message []byte, into pcommon.Map) bool {
	if text, ok := alone(message, 1<<3|length); ok { // fast path
		d.text(p, text, into)
		return true
	}
	if len(message) == 0 || message[0] != 3<<3|varint {
		return d.value(message, into.PutEmpty(p.key), 0)
	}
	c := cursor{message: message, at: 1}
	d.slabs.PutInt(into, p.key, int64(c.number()))
	return !c.bad && !c.more()
}

// text puts a string under the key of a pair, whose value it may be.
func (d *Decoder) text(p *pair, b []byte, into pcommon.Map) {
	if p.value == nil || p.value.String() != string(b) {
		p.value = nil
		if len(b) > 0 {
			p.value = d.values.get(b)
		}
	}
	switch {
	case p.value == nil:
		d.slabs.PutStr(into, p.key, string(b))
	case d.pooled:
		d.slabs.PutStr(into, p.key, p.value.String())
	default:
		d.slabs.PutText(into, p.key, p.value)
	}
}

// maxDepth is how deep values may hold values here.
const maxDepth = 8

// value reads an AnyValue.
func (d *Decoder) value(message []byte, into pcommon.Value, depth int) bool {
	if len(message) == 0 {
		return true
	}
	c := cursor{message: message}
	ok := true
	switch c.tag() {
	case 1<<3 | length:
		into.SetStr(d.values.string(c.bytes()))
	case 2<<3 | varint:
		into.SetBool(c.number() != 0)
	case 3<<3 | varint:
		into.SetInt(int64(c.number()))
	case 4<<3 | fixed64:
		into.SetDouble(c.double())
	case 5<<3 | length:
		list := into.SetEmptySlice()
		ok = depth < maxDepth && each(c.bytes(), func(message []byte) bool {
			return d.fit(message, elementWeight) && d.value(message, list.AppendEmpty(), depth+1)
		})
	case 6<<3 | length:
		m := into.SetEmptyMap()
		ok = depth < maxDepth && each(c.bytes(), func(message []byte) bool {
			return d.fit(message, elementWeight) && d.nested(message, m, depth+1)
		})
	case 7<<3 | length:
		into.SetEmptyBytes().FromRaw(c.bytes())
	default:
		return false
	}
	return ok && !c.bad && !c.more()
}

// nested is attribute for a map within a value.
func (d *Decoder) nested(message []byte, into pcommon.Map, depth int) bool {
	key, value, ok := keyValue(message)
	before := into.Len()
	return ok && before < maxAttributes && d.value(value, into.PutEmpty(d.names.get(key)), depth) && into.Len() > before
}

// each reads a message that has nothing but field 1.
func each(message []byte, f func([]byte) bool) bool {
	c := cursor{message: message}
	for c.more() {
		if c.tag() != 1<<3|length {
			return false
		}
		if b := c.bytes(); c.bad || !f(b) {
			return false
		}
	}
	return !c.bad
}

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
