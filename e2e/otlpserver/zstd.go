// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpserver

import (
	"io"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc/encoding"
)

// gRPC itself knows only gzip; many exporters use zstd.
func init() { encoding.RegisterCompressor(zstdCompressor{}) }

type zstdCompressor struct{}

func (zstdCompressor) Name() string { return "zstd" }

func (zstdCompressor) Compress(w io.Writer) (io.WriteCloser, error) {
	return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
}

func (zstdCompressor) Decompress(r io.Reader) (io.Reader, error) {
	// It starts no goroutine, and there is nothing to close.
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
}
