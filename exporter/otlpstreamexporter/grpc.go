// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/exporter"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

type grpcTransport struct {
	signal otlpstream.Signal
	conns  []*grpc.ClientConn
}

func newGRPCTransport(ctx context.Context, cfg *Config, set exporter.Settings, host component.Host, signal otlpstream.Signal) (*grpcTransport, error) {
	reconnects := grpcbackoff.DefaultConfig
	reconnects.BaseDelay = 200 * time.Millisecond
	reconnects.MaxDelay = max(cfg.Retry.MaxInterval, reconnects.BaseDelay)
	t := &grpcTransport{signal: signal}
	for range cfg.Connections {
		cc, err := cfg.Client.ToClientConn(ctx, host.GetExtensions(), set.TelemetrySettings,
			configgrpc.WithGrpcDialOption(grpc.WithUserAgent(userAgent(set))),
			configgrpc.WithGrpcDialOption(grpc.WithConnectParams(grpc.ConnectParams{
				Backoff: reconnects, MinConnectTimeout: 5 * time.Second,
			})))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot set up the connection to %q: %w", cfg.Client.Endpoint, err), t.close())
		}
		t.conns = append(t.conns, cc)
	}
	return t, nil
}

func userAgent(set exporter.Settings) string {
	return fmt.Sprintf("%s/%s (%s/%s)", set.BuildInfo.Description, set.BuildInfo.Version, runtime.GOOS, runtime.GOARCH)
}

func (t *grpcTransport) open(ctx context.Context, slot int) (conn, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, otlpstream.HeaderCaps, otlpstream.AllCaps.String())
	stream, err := t.conns[slot%len(t.conns)].NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
		t.signal.StreamMethod(),
		grpc.ForceCodecV2(otlpstream.Codec()),
		grpc.MaxRetryRPCBufferSize(0)) // we resend; the library need not keep what it has sent
	if err != nil {
		return nil, err
	}
	return grpcConn{stream}, nil
}

func (t *grpcTransport) unary(ctx context.Context, data []byte) ([]byte, error) {
	var response otlpstream.Raw
	err := t.conns[0].Invoke(ctx, t.signal.OTLPMethod(), otlpstream.Raw(data), &response, grpc.ForceCodecV2(otlpstream.Codec()))
	return response, err
}

func (t *grpcTransport) close() error {
	var errs []error
	for _, cc := range t.conns {
		errs = append(errs, cc.Close())
	}
	return errors.Join(errs...)
}

type grpcConn struct{ stream grpc.ClientStream }

func (c grpcConn) send(r *otlpstream.Request) error { return c.stream.SendMsg(r) }

func (c grpcConn) closeSend() error { return c.stream.CloseSend() }

func (c grpcConn) limits() otlpstream.Limits {
	md, err := c.stream.Header()
	if err != nil {
		return otlpstream.Limits{}
	}
	return otlpstream.ParseLimits(func(name string) string {
		if values := md.Get(name); len(values) > 0 {
			return values[0]
		}
		return ""
	})
}

func (c grpcConn) recv(r *otlpstream.Response) error {
	err := c.stream.RecvMsg(r)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return err
}
