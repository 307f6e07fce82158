// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/binary"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"google.golang.org/protobuf/encoding/protowire"
)

// Wire types, which a tag has in its lowest bits, after the number of the field.
const (
	varint  = 0
	fixed64 = 1
	length  = 2
	fixed32 = 5
)

// cursor reads a message. After an error there is nothing more to read, and bad is set. Advancing changes a number
// only: changing a slice would cost a write barrier at each step.
type cursor struct {
	message []byte
	at      int
	bad     bool
}

func (c *cursor) more() bool { return c.at < len(c.message) }

func (c *cursor) fail() { c.at, c.bad = len(c.message), true }

// tag reads the next tag. Tags of more than one byte are returned as one that no message knows.
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

// bytes returns a slice that is valid until the payload is reused.
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

// count is how often a field occurs in the rest of a message, as far as that is well-formed.
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
