// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// Codec is the gRPC codec of a client: it sends payloads without copying them. Servers need none, as the messages
// have the methods that the codec of the Collector's own OTLP messages looks for.
func Codec() encoding.CodecV2 { return codec{} }

type codec struct{}

// Name returns the name of the content subtype, by which servers recognise the messages: protobuf.
func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *Request:
		header := mem.SliceBuffer(m.AppendHeader(make([]byte, 0, maxHeader)))
		if len(m.Data) == 0 {
			return mem.BufferSlice{header}, nil
		}
		if m.Memory != nil {
			return mem.BufferSlice{header, m.Memory.buffer()}, nil
		}
		return mem.BufferSlice{header, mem.SliceBuffer(m.Data)}, nil
	case Payload:
		if m.Memory != nil {
			return mem.BufferSlice{m.Memory.buffer()}, nil
		}
		return mem.BufferSlice{mem.SliceBuffer(m.Data)}, nil
	case Raw:
		return mem.BufferSlice{mem.SliceBuffer(m)}, nil
	}
	return nil, fmt.Errorf("cannot marshal a %T", v)
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	message := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer message.Free()
	switch m := v.(type) {
	case *Response:
		return m.Parse(message.ReadOnlyData())
	case *Raw:
		*m = append((*m)[:0], message.ReadOnlyData()...)
		return nil
	}
	return fmt.Errorf("cannot unmarshal into a %T", v)
}

// maxHeader is the size of the largest header that has no trace context: six numbers, with tags of one and two bytes.
// Numbers are mostly small, so usually there is room for a trace context, too.
const maxHeader = 1 + 10 + 5*(2+10)

// Payload is a message that is already encoded, and its Memory, if it has one.
type Payload struct {
	Data   []byte
	Memory *Memory
}

// Raw is a message that is already encoded, or is to remain so.
type Raw []byte

// SizeProto is part of how the Collector's codec knows a message that marshals itself.
func (r *Raw) SizeProto() int { return len(*r) }

// MarshalProto writes the message to a buffer of SizeProto bytes.
func (r *Raw) MarshalProto(buf []byte) int { return copy(buf, *r) }

// UnmarshalProto keeps a copy.
func (r *Raw) UnmarshalProto(buf []byte) error {
	*r = append((*r)[:0], buf...)
	return nil
}

// SizeProto is part of how the Collector's codec knows a message that marshals itself.
func (r *Request) SizeProto() int {
	var header [maxHeader]byte
	return len(r.AppendHeader(header[:0])) + len(r.Data)
}

// MarshalProto writes the message to a buffer of SizeProto bytes.
func (r *Request) MarshalProto(buf []byte) int {
	return len(append(r.AppendHeader(buf[:0]), r.Data...))
}

// UnmarshalProto parses a message that is not kept.
func (r *Request) UnmarshalProto(buf []byte) error { return r.Parse(buf) }

// SizeProto is part of how the Collector's codec knows a message that marshals itself.
func (r *Response) SizeProto() int { return len(r.Append(nil)) }

// MarshalProto writes the message to a buffer of SizeProto bytes.
func (r *Response) MarshalProto(buf []byte) int { return len(r.Append(buf[:0])) }

// UnmarshalProto parses a message that is not kept.
func (r *Response) UnmarshalProto(buf []byte) error { return r.Parse(buf) }
