// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"bytes"
	"fmt"
	"iter"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// A payload is a list of resources, but for profiles: see profiles.go. Standard OTLP keeps it in field 1, a stream in field 2, whose field 1 is the ID.
// Both tags are one byte long, so either form becomes the other by changing one byte per resource.
const (
	otlpField = 1
	otlpTag   = otlpField<<3 | byte(protowire.BytesType)
	streamTag = fieldData<<3 | byte(protowire.BytesType)
)

// ToStream turns a freshly marshalled OTLP request into stream form, in place.
func ToStream(payload []byte) error { return retag(payload, otlpTag, streamTag) }

// InStreamForm returns a payload in stream form, and InOTLPForm in OTLP form: the payload itself if it has that form
// already, otherwise a copy.
func InStreamForm(payload []byte) ([]byte, error) { return inForm(payload, otlpTag, streamTag) }

// InOTLPForm is described at InStreamForm.
func InOTLPForm(payload []byte) ([]byte, error) { return inForm(payload, streamTag, otlpTag) }

func inForm(payload []byte, from, to byte) ([]byte, error) {
	if len(payload) == 0 || payload[0] == to {
		return payload, nil
	}
	changed := bytes.Clone(payload)
	return changed, retag(changed, from, to)
}

// Rejected returns how many items a response of standard OTLP says were rejected permanently, and its message. The
// message may also be a warning although none were.
func Rejected(response []byte) (items int, message string) {
	const fieldPartialSuccess, fieldRejected, fieldErrorMessage = 1, 1, 2
	var rejected uint64
	for partial := range field(response, fieldPartialSuccess, protowire.BytesType) {
		partial, _ = protowire.ConsumeBytes(partial)
		for value := range field(partial, fieldRejected, protowire.VarintType) {
			rejected, _ = protowire.ConsumeVarint(value)
		}
		for value := range field(partial, fieldErrorMessage, protowire.BytesType) {
			text, _ := protowire.ConsumeBytes(value)
			message = string(text)
		}
	}
	return int(min(rejected, math.MaxInt32)), message
}

// field iterates over the values of one field, up to the first error.
func field(message []byte, number protowire.Number, kind protowire.Type) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(message) > 0 {
			n, k, tag := protowire.ConsumeTag(message)
			if tag < 0 {
				return
			}
			size := protowire.ConsumeFieldValue(n, k, message[tag:])
			if size < 0 || n == number && k == kind && !yield(message[tag:tag+size]) {
				return
			}
			message = message[tag+size:]
		}
	}
}

func retag(payload []byte, from, to byte) error {
	for rest := payload; len(rest) > 0; {
		if rest[0] != from {
			return fmt.Errorf("cannot change the form of a payload: tag %#x at byte %d, expected %#x",
				rest[0], len(payload)-len(rest), from)
		}
		_, n := protowire.ConsumeBytes(rest[1:])
		if n < 0 {
			return fmt.Errorf("cannot change the form of a payload at byte %d: %w",
				len(payload)-len(rest), protowire.ParseError(n))
		}
		rest[0] = to
		rest = rest[1+n:]
	}
	return nil
}
