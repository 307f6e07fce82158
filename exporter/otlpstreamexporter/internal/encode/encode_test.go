// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

func spansNamed(name string, n int) ptrace.Traces {
	td := ptrace.NewTraces()
	all := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for range n {
		all.AppendEmpty().SetName(name)
	}
	return td
}

func TestTelemetryIsEncodedAsItEncodesItself(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()

	for _, size := range []int{1, 5000} {
		td := spansNamed(strings.Repeat("x", size), 3)
		td.MarkReadOnly()
		want, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		require.NoError(t, err)
		got, err := e.Traces(td)
		require.NoError(t, err)
		require.Equal(t, want, got.Bytes())
	}

	md := pmetric.NewMetrics()
	md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetName("m")
	want, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	got, err := e.Metrics(md)
	require.NoError(t, err)
	require.Equal(t, want, got.Bytes())

	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("l")
	want, err = (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	require.NoError(t, err)
	got, err = e.Logs(ld)
	require.NoError(t, err)
	require.Equal(t, want, got.Bytes())

	_, err = e.Traces(ptrace.NewTraces())
	require.NoError(t, err, "nothing is something, too")
}

func TestMemoryOfPayloadsIsUsedAgain(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	td := spansNamed(strings.Repeat("x", 1000), 100)
	perRun := alloctest.PerRun(func() {
		m, err := e.Traces(td)
		require.NoError(t, err)
		m.Release()
	})
	require.LessOrEqual(t, perRun, 4.0, "two more are memory that is not used again")
}
