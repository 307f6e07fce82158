// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"io"
	"sync"

	"go.opentelemetry.io/collector/config/configcompression"
	"google.golang.org/grpc"
)

// compressor compresses gRPC calls. gRPC's own compressors of these names are much slower, and telemetry compresses no
// better with zstd, and only a sixth better with gzip.
type compressor struct{ name configcompression.Type }

// withCompressor sets a compressor for calls that is not registered globally; there is no other way.
func withCompressor(c configcompression.Type) grpc.DialOption {
	return grpc.WithCompressor(compressor{c}) //nolint:staticcheck // see above
}

// Type is the name of the encoding.
func (c compressor) Type() string { return string(c.name) }

// Do compresses a message.
func (c compressor) Do(w io.Writer, message []byte) error {
	buf := frames.Get().(*[]byte)
	defer frames.Put(buf)
	var err error
	if *buf, err = framesOf(c.name).AppendFrame((*buf)[:0], message); err != nil {
		return err
	}
	_, err = w.Write((*buf)[1:]) // without the byte that names the compression
	return err
}

var frames = sync.Pool{New: func() any { return new([]byte) }}
