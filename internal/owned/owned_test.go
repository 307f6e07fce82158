// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package owned

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/xpdata/pref"
)

// fanOut does what the Collector does behind a receiver with several exporters: each of them is behind a consumer that
// frees metrics of which it is the first owner.
type fanOut struct {
	seen []int
	err  error
}

func (f *fanOut) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	for range 2 {
		func() {
			if pref.MarkPipelineOwnedMetrics(md) {
				defer pref.UnrefMetrics(md)
			}
			f.seen = append(f.seen, md.DataPointCount())
		}()
	}
	return f.err
}

func (f *fanOut) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	for range 2 {
		func() {
			if pref.MarkPipelineOwnedLogs(ld) {
				defer pref.UnrefLogs(ld)
			}
			f.seen = append(f.seen, ld.LogRecordCount())
		}()
	}
	return f.err
}

func (f *fanOut) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	for range 2 {
		func() {
			if pref.MarkPipelineOwnedTraces(td) {
				defer pref.UnrefTraces(td)
			}
			f.seen = append(f.seen, td.SpanCount())
		}()
	}
	return f.err
}

func metrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
	return md
}

func logs() plog.Logs {
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	return ld
}

func traces() ptrace.Traces {
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	return td
}

// With and without the gate, all consumers see all of the data.
func TestAllConsumersSeeAll(t *testing.T) {
	const gate = "pdata.useProtoPooling"
	defer func() { require.NoError(t, featuregate.GlobalRegistry().Set(gate, false)) }()
	for _, on := range []bool{false, true} {
		require.NoError(t, featuregate.GlobalRegistry().Set(gate, on))
		for _, err := range []error{nil, errors.New("refused")} {
			for name, hand := range map[string]func(*fanOut) error{
				"metrics": func(f *fanOut) error { return Metrics(t.Context(), f, metrics()) },
				"logs":    func(f *fanOut) error { return Logs(t.Context(), f, logs()) },
				"traces":  func(f *fanOut) error { return Traces(t.Context(), f, traces()) },
			} {
				f := &fanOut{err: err}
				require.Equal(t, err, hand(f), name)
				require.Equal(t, []int{1, 1}, f.seen, name)
			}
		}
	}
}

// Metrics that are passed on repeatedly, like a scraper's, stay unchanged while the gate is off.
func TestHandsOutTheSameAgain(t *testing.T) {
	f, md := &fanOut{}, metrics()
	for range 3 {
		require.NoError(t, Metrics(t.Context(), f, md))
	}
	require.Equal(t, []int{1, 1, 1, 1, 1, 1}, f.seen)
}

// Metrics with an owner are freed by the owner.
func TestLeavesTheDataOfOthersAlone(t *testing.T) {
	const gate = "pdata.useProtoPooling"
	require.NoError(t, featuregate.GlobalRegistry().Set(gate, true))
	defer func() { require.NoError(t, featuregate.GlobalRegistry().Set(gate, false)) }()
	md := metrics()
	require.True(t, pref.MarkPipelineOwnedMetrics(md))
	f := &fanOut{}
	require.NoError(t, Metrics(t.Context(), f, md))
	require.Equal(t, 1, md.DataPointCount())
	pref.UnrefMetrics(md)
}
