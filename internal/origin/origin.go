// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package origin is the metadata of the client that requests carry with them,
// in a form that can be compared and stored.
package origin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/client"
)

// Origin is encoded keys and values. It is empty if there are none.
type Origin string

// Of returns the values of these keys. Keys that the client did not send are left out.
func Of(keys []string, md client.Metadata) Origin {
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
	return Origin(b)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errMalformed = errors.New("the metadata of its client is malformed")

// Metadata returns the metadata that the origin was made of.
func (o Origin) Metadata() (client.Metadata, error) {
	md := map[string][]string{}
	rest := []byte(o)
	for len(rest) > 0 {
		key, ok := cutText(&rest)
		n, size := binary.Uvarint(rest)
		if !ok || size <= 0 || n > uint64(len(rest)) {
			return client.Metadata{}, errMalformed
		}
		rest = rest[size:]
		for range n {
			value, ok := cutText(&rest)
			if !ok {
				return client.Metadata{}, errMalformed
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

// Headers returns the metadata as headers of a request, none for a malformed origin.
func (o Origin) Headers() []Header {
	md, err := o.Metadata()
	if err != nil || o == "" {
		return nil
	}
	var all []Header
	for _, key := range slices.Sorted(md.Keys()) {
		for _, value := range md.Get(key) {
			all = append(all, Header{key, value})
		}
	}
	return all
}

// SetHeaders replaces the headers of a request by those of the origin. It returns an error if a value cannot be a
// header.
func (o Origin) SetHeaders(h http.Header) error {
	if _, err := o.Metadata(); err != nil {
		return err
	}
	headers := o.Headers()
	for _, header := range headers {
		if !header.Fits() {
			return fmt.Errorf("cannot put the value of %q into a header: it has other characters than ASCII that can be printed", header.Key)
		}
	}
	for _, header := range headers {
		h.Del(header.Key)
	}
	for _, header := range headers {
		h.Add(header.Key, header.Value)
	}
	return nil
}

// String formats the origin for people.
func (o Origin) String() string {
	var parts []string
	for _, h := range o.Headers() {
		parts = append(parts, fmt.Sprintf("%s=%q", h.Key, h.Value))
	}
	return strings.Join(parts, " ")
}

// Header is one header of a request.
type Header struct{ Key, Value string }

// Fits reports whether a header can have the value. Otherwise, HTTP/2 would end the whole call.
func (h Header) Fits() bool {
	return !strings.ContainsFunc(h.Value, func(r rune) bool { return r < ' ' || r > '~' })
}
