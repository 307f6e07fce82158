// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rwserver

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	// More than any receiver accepts, but bounded.
	maxBody = 256 << 20
	// The number of bytes that a slow reader reads at a time.
	slowRead = 1 << 10

	protoV1 = "prometheus.WriteRequest"
	protoV2 = "io.prometheus.write.v2.Request"
)

// errUnsupported marks errors answered with 415.
var errUnsupported = errors.New("unsupported")

var zstdDecoder, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecoderConcurrency(0)) // valid options give no error

func statusOf(err error) int {
	if errors.Is(err, errUnsupported) {
		return http.StatusUnsupportedMediaType
	}
	return http.StatusBadRequest
}

func readBody(r *http.Request, pause time.Duration) ([]byte, error) {
	limited := http.MaxBytesReader(nil, r.Body, maxBody)
	if pause <= 0 {
		return io.ReadAll(limited)
	}
	var body []byte
	for {
		piece := make([]byte, slowRead)
		n, err := io.ReadFull(limited, piece)
		body = append(body, piece[:n]...)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
		if !wait.Pause(r.Context(), pause) {
			return nil, r.Context().Err()
		}
	}
}

// decode always returns a message, even if it is incomplete.
func (s *Server) decode(h http.Header, body []byte) (*message, error) {
	msg := &message{}
	var err error
	if msg.version, err = versionOf(h); err != nil {
		return msg, err
	}
	msg.encoding = h.Get("Content-Encoding")
	if len(s.opts.Versions) > 0 && !slices.Contains(s.opts.Versions, msg.version) {
		return msg, fmt.Errorf("cannot take remote write %s: %w", msg.version, errUnsupported)
	}
	if len(s.opts.Encodings) > 0 && !slices.Contains(s.opts.Encodings, msg.encoding) {
		return msg, fmt.Errorf("cannot take encoding %q: %w", msg.encoding, errUnsupported)
	}
	msg.checkHeader(h)
	raw, err := decompress(msg.encoding, body)
	if err != nil {
		return msg, err
	}
	msg.rawBytes = len(raw)
	if msg.version == V1 {
		return msg, msg.decodeV1(raw)
	}
	return msg, msg.decodeV2(raw)
}

func versionOf(h http.Header) (string, error) {
	contentType := h.Get("Content-Type")
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/x-protobuf" {
		return "", fmt.Errorf("cannot take content type %q: %w", contentType, errUnsupported)
	}
	switch params["proto"] {
	case "", protoV1:
		return V1, nil
	case protoV2:
		return V2, nil
	}
	return "", fmt.Errorf("cannot take content type %q: %w", contentType, errUnsupported)
}

func decompress(encoding string, body []byte) ([]byte, error) {
	switch encoding {
	case Snappy:
		n, err := snappy.DecodedLen(body)
		if err != nil || n > maxBody {
			return nil, fmt.Errorf("cannot decompress %d bytes of snappy to %d: %w", len(body), n, err)
		}
		return snappy.Decode(nil, body)
	case Zstd:
		return zstdDecoder.DecodeAll(body, nil)
	}
	return nil, fmt.Errorf("cannot take encoding %q: %w", encoding, errUnsupported)
}
