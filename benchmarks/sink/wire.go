// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

var errWireType = errors.New("unexpected wire type")

// field is one field of a protobuf message: bytes for a message, a string or a packed list, otherwise number. It is a
// view of the message.
type field struct {
	id     protowire.Number
	bytes  []byte
	number uint64
	packed bool
}

func (f *field) float() float64 { return math.Float64frombits(f.number) }

// walk calls do for each field of a message.
func walk(message []byte, do func(f *field) error) error {
	var f field
	for len(message) > 0 {
		id, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		f = field{id: id}
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
			f.packed = true
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			f.number, n = protowire.ConsumeFixed64(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			f.number = uint64(v)
		default:
			return fmt.Errorf("cannot read field %d of type %d: %w", id, kind, errWireType)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if err := do(&f); err != nil {
			return err
		}
	}
	return nil
}

// each calls do for each field of a message with this ID. If one field determines how to read another one, a message is
// read twice: writers may order fields as they like.
func each(message []byte, id protowire.Number, do func(f *field) error) error {
	return walk(message, func(f *field) error {
		if f.id != id {
			return nil
		}
		return do(f)
	})
}

// uint64s appends a repeated fixed64 field, packed or not.
func (f *field) uint64s(dst []uint64) ([]uint64, error) {
	if !f.packed {
		return append(dst, f.number), nil
	}
	for b := f.bytes; len(b) > 0; b = b[8:] {
		v, n := protowire.ConsumeFixed64(b)
		if n < 0 {
			return dst, protowire.ParseError(n)
		}
		dst = append(dst, v)
	}
	return dst, nil
}
