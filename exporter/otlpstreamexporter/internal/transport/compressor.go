// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"io"
	"sync"

	"go.opentelemetry.io/collector/config/configcompression"
	"google.golang.org/grpc"
)

// compressor compresses gRPC calls. Those that gRPC knows by these names take much longer, and what they make of telemetry is
// no smaller with zstd, and a sixth smaller with gzip.
type compressor struct{ name configcompression.Type }

// withCompressor gives calls a compressor that is not everyone's; there is no other way to.
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
	_, err = w.Write((*buf)[1:]) // without the byte that says what compressed it
	return err
}

var frames = sync.Pool{New: func() any { return new([]byte) }}
