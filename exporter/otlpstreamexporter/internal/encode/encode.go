// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package encode turns telemetry into OTLP bytes in reused memory.
package encode

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/internal/otlpstream/minuszero"
	"github.com/godwit-otel/godwit/internal/otlpstream/stencil"
)

// stencilShare is the share of memory for known metrics.
var stencilShare = memlimit.Share{Part: 64, Least: 1 << 20, Most: 32 << 20}

// Encoder encodes telemetry into reused memory. Telemetry's own marshalers allocate each time, which soon becomes
// garbage; only the codec of a gRPC client may use its own memory. So these are clients, whose calls end with the
// encoding, and whose connection never connects. Known metrics are copied from their last encoding.
type Encoder struct {
	known    *stencil.Encoder
	cc       *grpc.ClientConn
	traces   ptraceotlp.GRPCClient
	metrics  pmetricotlp.GRPCClient
	logs     plogotlp.GRPCClient
	profiles pprofileotlp.GRPCClient
}

// New returns an encoder.
func New() (*Encoder, error) {
	cc, err := grpc.NewClient("passthrough:nowhere",
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(encode))
	if err != nil {
		return nil, fmt.Errorf("cannot set up the encoder: %w", err)
	}
	return &Encoder{
		known: stencil.NewEncoder(stencilShare.Of(memlimit.Available())),
		cc:    cc, traces: ptraceotlp.NewGRPCClient(cc), metrics: pmetricotlp.NewGRPCClient(cc), logs: plogotlp.NewGRPCClient(cc),
		profiles: pprofileotlp.NewGRPCClient(cc),
	}, nil
}

// Close frees what the encoder has.
func (e *Encoder) Close() error { return e.cc.Close() }

// Traces encodes traces.
func (e *Encoder) Traces(td ptrace.Traces) (m *otlpstream.Memory, err error) {
	_, err = e.traces.Export(into(&m), ptraceotlp.NewExportRequestFromTraces(td))
	return m, err
}

// Metrics encodes metrics.
func (e *Encoder) Metrics(md pmetric.Metrics) (m *otlpstream.Memory, err error) {
	if m = e.known.Encode(md); m != nil {
		return m, nil
	}
	marked, encoded := minuszero.Mark(md), md
	if marked != nil {
		encoded = marked.Metrics
	}
	if _, err = e.metrics.Export(into(&m), pmetricotlp.NewExportRequestFromMetrics(encoded)); err != nil {
		return m, err
	}
	if marked != nil {
		marked.Restore(m.Bytes())
	}
	e.known.Learn(md, m.Bytes())
	return m, nil
}

// Logs encodes logs.
func (e *Encoder) Logs(ld plog.Logs) (m *otlpstream.Memory, err error) {
	_, err = e.logs.Export(into(&m), plogotlp.NewExportRequestFromLogs(ld))
	return m, err
}

// Profiles encodes profiles, with the whole request as the only element of the payload.
func (e *Encoder) Profiles(pd pprofile.Profiles) (m *otlpstream.Memory, err error) {
	_, err = e.profiles.Export(context.WithValue(into(&m), wrappedKey{}, true), pprofileotlp.NewExportRequestFromProfiles(pd))
	return m, err
}

type intoKey struct{}

// wrappedKey is set if a payload begins with a tag of its own.
type wrappedKey struct{}

// into returns a context that tells encode where its result goes.
func into(m **otlpstream.Memory) context.Context {
	return context.WithValue(context.Background(), intoKey{}, m)
}

// encode replaces the network call.
func encode(ctx context.Context, _ string, request, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
	message, ok := request.(interface {
		SizeProto() int
		MarshalProto(buf []byte) int
	})
	if !ok {
		return fmt.Errorf("cannot encode a %T", request)
	}
	size, before := message.SizeProto(), 0
	if ctx.Value(wrappedKey{}) != nil {
		before = otlpstream.ProfilesOverhead(size)
	}
	m := otlpstream.NewMemory(before + size)
	if before > 0 {
		otlpstream.AppendProfilesTag(m.Bytes()[:0], size)
	}
	message.MarshalProto(m.Bytes()[before:])
	*ctx.Value(intoKey{}).(**otlpstream.Memory) = m
	return nil
}
