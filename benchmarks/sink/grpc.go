// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"io"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // registers gzip
	"google.golang.org/grpc/mem"
)

// newGRPC serves OTLP's metrics service without generated code: messages stay
// bytes, which the ledger walks.
func newGRPC(l *Ledger) *grpc.Server {
	srv := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(maxMessage))
	export := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var message []byte
		err := decode(&message)
		if err == nil {
			e := newEntry(len(message))
			if err = otlp(message, e); err == nil {
				l.add(e)
				return &[]byte{}, nil
			}
		}
		l.failed()
		return nil, err
	}
	srv.RegisterService(&grpc.ServiceDesc{
		ServiceName: "opentelemetry.proto.collector.metrics.v1.MetricsService",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Export", Handler: export}},
	}, l)
	return srv
}

// rawCodec passes messages as *[]byte.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (rawCodec) Name() string { return "proto" }

func init() { encoding.RegisterCompressor(zstdCodec{}) }

// zstdCodec lets gRPC clients compress with zstd.
type zstdCodec struct{}

func (zstdCodec) Name() string { return "zstd" }

func (zstdCodec) Compress(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }

func (zstdCodec) Decompress(r io.Reader) (io.Reader, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxMessage))
	if err != nil {
		return nil, err
	}
	return closeAtEnd{d}, nil
}

// closeAtEnd frees the decoder when the message has been read.
type closeAtEnd struct{ d *zstd.Decoder }

func (c closeAtEnd) Read(p []byte) (int, error) {
	n, err := c.d.Read(p)
	if err != nil {
		c.d.Close()
	}
	return n, err
}
