// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/origin"
)

// On disk, the origin is the first resource of a request, in a field number that OTLP does not use and will not soon.
// An earlier version of the exporter sends it as it is, and nobody interprets it: the resource is empty.
const (
	fieldResource = 1 // of a payload in OTLP form
	fieldStreamed = 2 // in stream form
	fieldOrigin   = 2000
)

// asResource encodes an origin as the first resource of data.
func asResource(o origin.Origin, data []byte) []byte {
	if o == "" || len(data) == 0 {
		return nil
	}
	number, _, _ := protowire.ConsumeTag(data)
	content := protowire.AppendString(protowire.AppendTag(nil, fieldOrigin, protowire.BytesType), string(o))
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// cutOrigin removes the origin that asResource has put before data.
func cutOrigin(data []byte) (origin.Origin, []byte) {
	number, kind, tag := protowire.ConsumeTag(data)
	if tag < 0 || kind != protowire.BytesType || number != fieldResource && number != fieldStreamed {
		return "", data
	}
	content, size := protowire.ConsumeBytes(data[tag:])
	if size < 0 {
		return "", data
	}
	number, kind, inner := protowire.ConsumeTag(content)
	if inner < 0 || number != fieldOrigin || kind != protowire.BytesType {
		return "", data
	}
	o, n := protowire.ConsumeBytes(content[inner:])
	if n != len(content)-inner {
		return "", data
	}
	return origin.Origin(o), data[tag+size:]
}
