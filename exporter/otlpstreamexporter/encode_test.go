// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

func TestTelemetryIsEncodedAsItEncodesItself(t *testing.T) {
	e, err := newEncoder()
	require.NoError(t, err)
	defer func() { require.NoError(t, e.close()) }()

	for _, size := range []int{1, 5000} {
		td := spans(strings.Repeat("x", size), 3)
		td.MarkReadOnly()
		want, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		require.NoError(t, err)
		got, err := e.encodeTraces(td)
		require.NoError(t, err)
		require.Equal(t, want, got.Bytes())
	}

	md := pmetric.NewMetrics()
	md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetName("m")
	want, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	got, err := e.encodeMetrics(md)
	require.NoError(t, err)
	require.Equal(t, want, got.Bytes())

	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("l")
	want, err = (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	require.NoError(t, err)
	got, err = e.encodeLogs(ld)
	require.NoError(t, err)
	require.Equal(t, want, got.Bytes())

	_, err = e.encodeTraces(ptrace.NewTraces())
	require.NoError(t, err, "nothing is something, too")
}

func TestMemoryOfPayloadsIsUsedAgain(t *testing.T) {
	e, err := newEncoder()
	require.NoError(t, err)
	defer func() { require.NoError(t, e.close()) }()
	td := spans(strings.Repeat("x", 1000), 100)
	perRun := alloctest.PerRun(func() {
		m, err := e.encodeTraces(td)
		require.NoError(t, err)
		m.Release()
	})
	require.LessOrEqual(t, perRun, 4.0, "two more are memory that is not used again")
}

// What is used again too early would arrive as something else.
func TestPayloadsStayTheirOwnThroughBreaks(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		const n = 300
		s := run(t, &server{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				if rand.IntN(20) == 0 {
					return status.Error(codes.Unavailable, "gone")
				}
				p.ack(r.id)
				p.ack(r.id + 1) // which may be on its way
			}
		}}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Client.Compression = "none"; cfg.Streams = 3 })
		sent := map[string]bool{}
		for i := range n {
			name := batch(i) + strings.Repeat(string(rune('a'+i%26)), 2000+rand.IntN(4000))
			sent[name] = true
			require.NoError(t, e.ConsumeTraces(context.Background(), spans(name, 1)))
		}
		e.settled()
		for name := range s.names() {
			require.True(t, sent[name], "%.40q was never sent", name)
		}
	})
}
