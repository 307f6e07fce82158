// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // registers gzip
	"google.golang.org/grpc/mem"
)

// newGRPC serves OTLP's metrics service, unary and streaming, without generated code: messages stay bytes, which the
// ledger parses.
func newGRPC(l *Ledger) *grpc.Server {
	srv := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(maxMessage),
		grpc.InitialWindowSize(streamBytes), grpc.InitialConnWindowSize(streamBytes)) // HTTP/2 must not limit a stream below what it is granted
	export := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		_ = grpc.SetSendCompressor(ctx, encoding.Identity) // responses are empty
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
	srv.RegisterService(streamService(l), l)
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
	d, _ := decoders.Get().(*zstd.Decoder)
	if d == nil {
		var err error
		if d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxMessage)); err != nil {
			return nil, err
		}
	}
	if err := d.Reset(r); err != nil {
		return nil, err
	}
	return &decoded{d}, nil
}

var decoders sync.Pool

// decoded returns the decoder to the pool once the message is read.
type decoded struct{ d *zstd.Decoder }

func (m *decoded) Read(p []byte) (int, error) {
	if m.d == nil {
		return 0, io.EOF
	}
	n, err := m.d.Read(p)
	if err != nil {
		_ = m.d.Reset(nil)
		decoders.Put(m.d)
		m.d = nil
	}
	return n, err
}
