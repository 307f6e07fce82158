// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the messages. 1 and 2 are the specification's; those from 16 are extensions that its peers skip.
const (
	fieldID      = 1
	fieldData    = 2 // of a request: repeated ResourceSpans, ResourceMetrics or ResourceLogs
	fieldCode    = 2 // of a response
	fieldItems   = 16
	fieldAttempt = 17
	fieldTrace   = 18
	fieldPacked  = 20
	fieldSize    = 21
	fieldDelta   = 22
	fieldDelay   = 16
	fieldMessage = 17
	fieldIDs     = 18
	fieldDrain   = 19
	fieldWorking = 20
	fieldReject  = 21
)

// Request carries one batch of telemetry.
type Request struct {
	// ID is the number of the request on its stream slot, from 1. It is 0 if the transport matches answers to requests
	// itself.
	ID uint64
	// Data is the payload. It must have stream form to be sent, and has OTLP form after a parse.
	Data []byte
	// Items counts spans, data points or log records, so that a server can count what it refuses undecoded.
	Items uint64
	// Attempt is how often the same data was sent before.
	Attempt uint64
	// Trace is the span that sends the request, if the client is traced.
	Trace TraceContext
	// Packed is the size that Data had, in stream form, before a Packer packed it; 0 if it is not packed.
	Packed uint64
	// Delta is the size of the delta that the payload was turned into before it was packed; 0 if it was not.
	Delta uint64
	// Memory holds Data, and nothing else, if the memory is to be reused.
	Memory *Memory
	// Buffer holds the Data of a parsed message. Once done with the message, it may be used for another.
	Buffer []byte
}

// AppendHeader appends all of the message but its payload. Header and payload together are the message.
func (r *Request) AppendHeader(dst []byte) []byte {
	dst = appendUint(dst, fieldID, r.ID)
	dst = appendUint(dst, fieldItems, r.Items)
	dst = appendUint(dst, fieldAttempt, r.Attempt)
	if !r.Trace.IsZero() {
		dst = protowire.AppendBytes(protowire.AppendTag(dst, fieldTrace, protowire.BytesType), r.Trace[:])
	}
	if r.Packed == 0 {
		return dst
	}
	dst = appendUint(dst, fieldSize, r.Packed)
	dst = appendUint(dst, fieldDelta, r.Delta)
	return protowire.AppendVarint(protowire.AppendTag(dst, fieldPacked, protowire.BytesType), uint64(len(r.Data)))
}

// Parse reads a message, of which it keeps a copy in r.Buffer.
func (r *Request) Parse(message []byte) error {
	r.Buffer = append(r.Buffer[:0], message...)
	return r.ParseInPlace(r.Buffer)
}

// ParseInPlace reads a message that becomes the request's own. The payload ends up in one piece and in OTLP form, or
// unchanged if it is packed.
func (r *Request) ParseInPlace(message []byte) error {
	*r = Request{Buffer: r.Buffer}
	plain, packed := false, false
	begin, end := 0, 0 // of the payload
	for rest := message; len(rest) > 0; {
		number, kind, n, err := consumeTag(rest)
		if err != nil {
			return fmt.Errorf("cannot parse request at byte %d: %w", len(message)-len(rest), err)
		}
		rest = rest[n:]
		at := len(message) - len(rest)
		switch {
		case number == fieldData && kind == protowire.BytesType:
			_, n := protowire.ConsumeBytes(rest)
			if n < 0 {
				return fmt.Errorf("cannot parse data of request %d: %w", r.ID, protowire.ParseError(n))
			}
			rest = rest[n:]
			if !plain {
				begin, end, plain = at-1, at-1, true
			}
			if end < at-1 { // there are other fields in between
				copy(message[end+1:], message[at:at+n])
			}
			message[end] = otlpTag
			end += 1 + n
		case number == fieldPacked && kind == protowire.BytesType:
			data, n := protowire.ConsumeBytes(rest)
			if n < 0 {
				return fmt.Errorf("cannot parse packed data of request %d: %w", r.ID, protowire.ParseError(n))
			}
			rest = rest[n:]
			begin, end, packed = at+n-len(data), at+n, true
		case number == fieldTrace && kind == protowire.BytesType:
			data, n := protowire.ConsumeBytes(rest)
			if n < 0 {
				return fmt.Errorf("cannot parse trace context of request %d: %w", r.ID, protowire.ParseError(n))
			}
			if len(data) == len(r.Trace) { // otherwise it is of a later version
				r.Trace = TraceContext(data)
			}
			rest = rest[n:]
		default:
			v, n, err := consumeUint(rest, number, kind)
			if err != nil {
				return fmt.Errorf("cannot parse field %d of request %d: %w", number, r.ID, err)
			}
			rest = rest[n:]
			if kind != protowire.VarintType {
				continue
			}
			switch number {
			case fieldID:
				r.ID = v
			case fieldItems:
				r.Items = v
			case fieldAttempt:
				r.Attempt = v
			case fieldSize:
				r.Packed = v
			case fieldDelta:
				r.Delta = v
			}
		}
	}
	r.Data = message[begin:end]
	if packed != (r.Packed > 0) || packed && plain || r.Delta > 0 && !packed {
		return fmt.Errorf("cannot parse request %d: packed data comes with its size, and alone", r.ID)
	}
	return nil
}

// ResultCode is the outcome of a request.
type ResultCode uint8

// The results of the specification.
const (
	Success ResultCode = iota
	FailedNoneRetryable
	FailedRetryable
)

func (c ResultCode) String() string {
	switch c {
	case Success:
		return "success"
	case FailedNoneRetryable:
		return "failed_none_retryable"
	case FailedRetryable:
		return "failed_retryable"
	}
	return fmt.Sprintf("result_code_%d", uint8(c))
}

// Response acknowledges requests. One without any ID is a notice about the stream itself.
type Response struct {
	ID   uint64
	Code ResultCode
	// Delay asks the client to send nothing to this destination for so long. Whole milliseconds travel.
	Delay time.Duration
	// Message says why, for people.
	Message string
	// IDs are further requests with the same result. It is only for clients that announced CapCoalesce.
	IDs []uint64
	// Drain announces that the server will end the stream: the client is to half-close it, to use another, and to keep
	// reading this one. It is only for clients that announced CapDrain.
	Drain bool
	// Working means that this is not an answer: the server has read the requests with these IDs and is still working on
	// them. It is only for clients that announced CapWorking.
	Working bool
	// Rejected is how many items of an otherwise successful request were refused permanently; Message says why. It is
	// about ID alone.
	Rejected uint64
}

// Append appends the message.
func (r *Response) Append(dst []byte) []byte {
	dst = appendUint(dst, fieldID, r.ID)
	dst = appendUint(dst, fieldCode, uint64(r.Code))
	dst = appendUint(dst, fieldDelay, uint64(max(0, r.Delay.Milliseconds())))
	if r.Message != "" {
		dst = protowire.AppendString(protowire.AppendTag(dst, fieldMessage, protowire.BytesType), strings.ToValidUTF8(r.Message, "\uFFFD"))
	}
	if len(r.IDs) > 0 {
		size := 0
		for _, id := range r.IDs {
			size += protowire.SizeVarint(id)
		}
		dst = protowire.AppendVarint(protowire.AppendTag(dst, fieldIDs, protowire.BytesType), uint64(size))
		for _, id := range r.IDs {
			dst = protowire.AppendVarint(dst, id)
		}
	}
	if r.Drain {
		dst = appendUint(dst, fieldDrain, 1)
	}
	if r.Working {
		dst = appendUint(dst, fieldWorking, 1)
	}
	return appendUint(dst, fieldReject, r.Rejected)
}

// maxDelay keeps a delay in the range of a time.Duration whatever the peer sends. Real delays are far smaller.
const maxDelay = 24 * time.Hour

// Parse reads a message. IDs are appended to r.IDs[:0].
func (r *Response) Parse(message []byte) error {
	*r = Response{IDs: r.IDs[:0]}
	for rest := message; len(rest) > 0; {
		number, kind, n, err := consumeTag(rest)
		if err != nil {
			return fmt.Errorf("cannot parse response at byte %d: %w", len(message)-len(rest), err)
		}
		rest = rest[n:]
		if kind == protowire.BytesType {
			field, n := protowire.ConsumeBytes(rest)
			if n < 0 {
				return fmt.Errorf("cannot parse field %d of response %d: %w", number, r.ID, protowire.ParseError(n))
			}
			rest = rest[n:]
			switch number {
			case fieldMessage:
				r.Message = string(field)
			case fieldIDs:
				for len(field) > 0 {
					id, n := protowire.ConsumeVarint(field)
					if n < 0 {
						return fmt.Errorf("cannot parse ids of response %d: %w", r.ID, protowire.ParseError(n))
					}
					r.IDs, field = append(r.IDs, id), field[n:]
				}
			}
			continue
		}
		v, n, err := consumeUint(rest, number, kind)
		if err != nil {
			return fmt.Errorf("cannot parse field %d of response %d: %w", number, r.ID, err)
		}
		rest = rest[n:]
		if kind == protowire.VarintType {
			r.set(number, v)
		}
	}
	return nil
}

func (r *Response) set(number protowire.Number, v uint64) {
	switch number {
	case fieldID:
		r.ID = v
	case fieldCode:
		// Results that are not yet defined count as failures that may pass.
		r.Code = FailedRetryable
		if v <= uint64(FailedRetryable) {
			r.Code = ResultCode(v)
		}
	case fieldDelay:
		r.Delay = time.Duration(min(v, uint64(maxDelay/time.Millisecond))) * time.Millisecond
	case fieldIDs: // packed or not, a parser must accept both
		r.IDs = append(r.IDs, v)
	case fieldDrain:
		r.Drain = v != 0
	case fieldWorking:
		r.Working = v != 0
	case fieldReject:
		r.Rejected = v
	}
}

// appendUint omits zeros, as proto3 does.
func appendUint(dst []byte, number protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, number, protowire.VarintType), v)
}

func consumeTag(rest []byte) (number protowire.Number, kind protowire.Type, n int, err error) {
	number, kind, n = protowire.ConsumeTag(rest)
	if n < 0 {
		return 0, 0, 0, protowire.ParseError(n)
	}
	if !number.IsValid() {
		return 0, 0, 0, fmt.Errorf("no field has the number %d", number)
	}
	return number, kind, n, nil
}

// consumeUint reads the value of a field, or skips it if it is not a varint.
func consumeUint(rest []byte, number protowire.Number, kind protowire.Type) (v uint64, n int, err error) {
	if kind == protowire.VarintType {
		v, n = protowire.ConsumeVarint(rest)
	} else {
		n = protowire.ConsumeFieldValue(number, kind, rest)
	}
	if n < 0 {
		return 0, 0, protowire.ParseError(n)
	}
	return v, n, nil
}
