// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Header names and values that both ends of the protocol write.
const (
	HeaderVersion           = "X-Prometheus-Remote-Write-Version"
	HeaderSamplesWritten    = "X-Prometheus-Remote-Write-Samples-Written"
	HeaderHistogramsWritten = "X-Prometheus-Remote-Write-Histograms-Written"
	HeaderExemplarsWritten  = "X-Prometheus-Remote-Write-Exemplars-Written"
	// HeaderVictoriaMetricsVersion takes the place of HeaderVersion when 1.0 is sent with zstd,
	// which is what VictoriaMetrics calls its own protocol.
	HeaderVictoriaMetricsVersion = "X-VictoriaMetrics-Remote-Write-Version"

	ContentTypeV1 = mediaType
	ContentTypeV2 = mediaType + ";proto=" + messageV2

	mediaType = "application/x-protobuf"
	messageV1 = "prometheus.WriteRequest"
	messageV2 = "io.prometheus.write.v2.Request"

	unknown = "unknown"
)

// Version is a version of the protocol, which decides the message in the body.
type Version uint8

// The versions.
const (
	V1 Version = iota + 1 // prometheus.WriteRequest
	V2                    // io.prometheus.write.v2.Request
)

// String returns the value of HeaderVersion.
func (v Version) String() string {
	switch v {
	case V1:
		return "0.1.0"
	case V2:
		return "2.0.0"
	}
	return unknown
}

// ContentType returns the value of Content-Type.
func (v Version) ContentType() string {
	if v == V2 {
		return ContentTypeV2
	}
	return ContentTypeV1
}

// ParseContentType returns the version of the message in a body. Only the proto parameter decides: without the
// parameter, or without the header, it is 1.0, whose senders need neither.
func ParseContentType(header string) (Version, error) {
	switch header { // fast path
	case "", mediaType:
		return V1, nil
	case ContentTypeV2:
		return V2, nil
	}
	media, params, err := mime.ParseMediaType(header)
	if err != nil {
		return 0, fmt.Errorf("cannot read Content-Type %q: %w", header, err)
	}
	if media != mediaType {
		return 0, fmt.Errorf("cannot accept Content-Type %q: only %s is", header, mediaType)
	}
	switch params["proto"] {
	case "", messageV1:
		return V1, nil
	case messageV2:
		return V2, nil
	}
	return 0, fmt.Errorf("cannot accept message %q: only %s and %s are", params["proto"], messageV1, messageV2)
}

// Encoding is the compression of a body.
type Encoding uint8

// The encodings a Decompressor understands.
const (
	Snappy   Encoding = iota // block format, which the specification demands
	Zstd                     // an extension: VictoriaMetrics for 1.0, Godwit for both
	Identity                 // an extension: no compression
)

// String returns the value of Content-Encoding.
func (e Encoding) String() string {
	switch e {
	case Snappy:
		return "snappy"
	case Zstd:
		return "zstd"
	case Identity:
		return "identity"
	}
	return unknown
}

// ParseContentEncoding returns the compression of a body. No header means snappy, as for Prometheus: the specification
// allows nothing else, so senders that forget the header still compress.
func ParseContentEncoding(header string) (Encoding, error) {
	switch strings.ToLower(header) {
	case "", "snappy":
		return Snappy, nil
	case "zstd":
		return Zstd, nil
	case "identity":
		return Identity, nil
	}
	return 0, fmt.Errorf("cannot accept Content-Encoding %q: only snappy, zstd and identity are", header)
}

// Written is what a receiver reports as stored of one request.
type Written struct {
	Samples, Histograms, Exemplars int
}

// SetHeaders sets the headers for w. A 2.0 receiver must send them with every answer; a 1.0 sender ignores them.
func (w Written) SetHeaders(h http.Header) {
	h.Set(HeaderSamplesWritten, strconv.Itoa(w.Samples))
	h.Set(HeaderHistogramsWritten, strconv.Itoa(w.Histograms))
	h.Set(HeaderExemplarsWritten, strconv.Itoa(w.Exemplars))
}

// ParseWritten parses what SetHeaders wrote. Without any of the headers, ok is false: for a 2.0 request this means that
// the receiver did not understand it. A header that is not a count is treated as absent.
func ParseWritten(h http.Header) (w Written, ok bool) {
	read := func(name string) int {
		n, err := strconv.Atoi(h.Get(name))
		if err != nil || n < 0 {
			return 0
		}
		ok = true
		return n
	}
	w.Samples = read(HeaderSamplesWritten)
	w.Histograms = read(HeaderHistogramsWritten)
	w.Exemplars = read(HeaderExemplarsWritten)
	return w, ok
}
