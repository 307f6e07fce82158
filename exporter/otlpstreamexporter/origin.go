// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/client"
	"google.golang.org/protobuf/encoding/protowire"
)

// origin is what a request takes along of the metadata of the client it came from: keys and values, encoded, so that it can
// be compared and stored. It is empty where there is nothing to take along.
type origin string

// originOf takes the values of these keys. A key that the client has not sent is left out.
func originOf(keys []string, md client.Metadata) origin {
	var b []byte
	for _, key := range keys {
		values := md.Get(key)
		if len(values) == 0 {
			continue
		}
		b = appendText(b, key)
		b = binary.AppendUvarint(b, uint64(len(values)))
		for _, value := range values {
			b = appendText(b, value)
		}
	}
	return origin(b)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errOrigin = errors.New("the metadata of its client is malformed")

// metadata is what the origin was made of.
func (o origin) metadata() (client.Metadata, error) {
	md := map[string][]string{}
	rest := []byte(o)
	for len(rest) > 0 {
		key, ok := cutText(&rest)
		n, size := binary.Uvarint(rest)
		if !ok || size <= 0 || n > uint64(len(rest)) {
			return client.Metadata{}, errOrigin
		}
		rest = rest[size:]
		for range n {
			value, ok := cutText(&rest)
			if !ok {
				return client.Metadata{}, errOrigin
			}
			md[key] = append(md[key], value)
		}
	}
	return client.NewMetadata(md), nil
}

func cutText(rest *[]byte) (string, bool) {
	n, size := binary.Uvarint(*rest)
	if size <= 0 || n > uint64(len(*rest)-size) {
		return "", false
	}
	s := string((*rest)[size : size+int(n)])
	*rest = (*rest)[size+int(n):]
	return s, true
}

// headers are the metadata as headers of requests.
func (o origin) headers() []header {
	md, err := o.metadata()
	if err != nil || o == "" {
		return nil
	}
	var all []header
	for _, key := range slices.Sorted(md.Keys()) {
		for _, value := range md.Get(key) {
			all = append(all, header{key, value})
		}
	}
	return all
}

type header struct{ key, value string }

// fits tells whether a header can have the value. HTTP/2 ends the call, not only the request, where one has not.
func (h header) fits() bool {
	return !strings.ContainsFunc(h.value, func(r rune) bool { return r < ' ' || r > '~' })
}

// On disk, the origin is the first resource of a request, in a field that OTLP has not, and will not have soon. An earlier
// version of the exporter that finds it there sends it as it is, and nobody makes anything of it: the resource is empty.
const (
	fieldResource = 1 // of a payload in OTLP form
	fieldStreamed = 2 // in stream form
	fieldOrigin   = 2000
)

// asResource is the origin as the first resource of data.
func (o origin) asResource(data []byte) []byte {
	if o == "" || len(data) == 0 {
		return nil
	}
	number, _, _ := protowire.ConsumeTag(data)
	content := protowire.AppendString(protowire.AppendTag(nil, fieldOrigin, protowire.BytesType), string(o))
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// cutOrigin parts data from the origin that asResource has put before it.
func cutOrigin(data []byte) (origin, []byte) {
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
	return origin(o), data[tag+size:]
}
