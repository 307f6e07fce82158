// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpserver

import (
	"io"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc/encoding"
)

// gRPC knows gzip only; zstd is what exporters that care use.
func init() { encoding.RegisterCompressor(zstdCompressor{}) }

type zstdCompressor struct{}

func (zstdCompressor) Name() string { return "zstd" }

func (zstdCompressor) Compress(w io.Writer) (io.WriteCloser, error) {
	return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
}

func (zstdCompressor) Decompress(r io.Reader) (io.Reader, error) {
	// One goroutine less per message, and nothing to close.
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
}
