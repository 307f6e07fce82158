// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// threeOf returns three items of each signal, and twoOf the error of a pipeline that has refused two of them.
func threeOf() (ptrace.Traces, pmetric.Metrics, plog.Logs) { return items(3) }

func items(n int) (ptrace.Traces, pmetric.Metrics, plog.Logs) {
	td, md, ld := ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	metric := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName("some")
	points := metric.SetEmptyGauge().DataPoints()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range n {
		spans.AppendEmpty().SetName("some")
		points.AppendEmpty()
		records.AppendEmpty().Body().SetStr("some")
	}
	return td, md, ld
}

type fussy struct{ *pipeline }

func (fussy) ConsumeTraces(context.Context, ptrace.Traces) error {
	two, _, _ := items(2)
	return consumererror.NewPermanent(consumererror.NewTraces(errors.New("too old \xff"), two))
}

func (fussy) ConsumeMetrics(context.Context, pmetric.Metrics) error {
	_, two, _ := items(2)
	return fmt.Errorf("a processor: %w", consumererror.NewMetrics(consumererror.NewPermanent(errors.New("too old \xff")), two))
}

func (fussy) ConsumeLogs(context.Context, plog.Logs) error {
	_, _, two := items(2)
	return consumererror.NewPermanent(consumererror.NewLogs(errors.New("too old \xff"), two))
}

func startFussy(t *testing.T) *sharedReceiver {
	r := prepare(t, &pipeline{})
	r.pipelines.traces, r.pipelines.metrics, r.pipelines.logs = fussy{}, fussy{}, fussy{}
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	return r
}

func TestAPartThatIsRefusedIsToldToStreams(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		r := startFussy(t)
		c := dial(t, r, otlpstream.AllCaps)
		td, _, _ := threeOf()
		data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		require.NoError(t, err)
		require.NoError(t, otlpstream.ToStream(data))
		const n = 10
		for id := uint64(1); id <= n; id++ {
			require.NoError(t, c.send(&otlpstream.Request{ID: id, Items: 3, Data: data}))
		}
		for range n {
			answer := c.answer()
			require.Equal(t, otlpstream.Success, answer.Code)
			require.Empty(t, answer.IDs, "each has a part of its own")
			require.Equal(t, uint64(2), answer.Rejected)
			require.Contains(t, answer.Message, "too old \uFFFD")
		}
		f := r.inspection().Flow()
		require.Equal(t, []int64{3 * n, n, 2 * n}, []int64{f.In, f.Out, f.Dropped[reasonPipeline]})
		require.Contains(t, r.inspection().Intake().Last.Text, "took all but 2 items")
	})
}

func TestAPartThatIsRefusedIsToldToStandardClients(t *testing.T) {
	r := startFussy(t)
	cc := grpcClient(t, r)
	td, md, ld := threeOf()
	traces, metrics, logs := ptraceotlp.NewExportRequestFromTraces(td), pmetricotlp.NewExportRequestFromMetrics(md), plogotlp.NewExportRequestFromLogs(ld)
	gotTraces, err := ptraceotlp.NewGRPCClient(cc).Export(testContext(t), traces)
	require.NoError(t, err)
	gotMetrics, err := pmetricotlp.NewGRPCClient(cc).Export(testContext(t), metrics)
	require.NoError(t, err)
	gotLogs, err := plogotlp.NewGRPCClient(cc).Export(testContext(t), logs)
	require.NoError(t, err)
	is := func(rejected int64, message string) {
		t.Helper()
		require.Equal(t, int64(2), rejected)
		require.Contains(t, message, "too old \uFFFD")
	}
	is(gotTraces.PartialSuccess().RejectedSpans(), gotTraces.PartialSuccess().ErrorMessage())
	is(gotMetrics.PartialSuccess().RejectedDataPoints(), gotMetrics.PartialSuccess().ErrorMessage())
	is(gotLogs.PartialSuccess().RejectedLogRecords(), gotLogs.PartialSuccess().ErrorMessage())

	data, err := metrics.MarshalProto()
	require.NoError(t, err)
	code, _, body := post(t, r, "/v1/metrics", "application/x-protobuf", data)
	require.Equal(t, 200, code)
	over := pmetricotlp.NewExportResponse()
	require.NoError(t, over.UnmarshalProto([]byte(body)))
	is(over.PartialSuccess().RejectedDataPoints(), over.PartialSuccess().ErrorMessage())

	data, err = logs.MarshalJSON()
	require.NoError(t, err)
	code, _, body = post(t, r, "/v1/logs", "application/json", data)
	require.Equal(t, 200, code)
	asJSON := plogotlp.NewExportResponse()
	require.NoError(t, asJSON.UnmarshalJSON([]byte(body)))
	is(asJSON.PartialSuccess().RejectedLogRecords(), asJSON.PartialSuccess().ErrorMessage())

	var response otlpstream.Response
	data, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	require.NoError(t, otlpstream.ToStream(data))
	require.NoError(t, cc.Invoke(testContext(t), "/"+otlpstream.UnaryService+"/ExportTraces", &otlpstream.Request{ID: 7, Data: data}, &response, grpc.ForceCodecV2(otlpstream.Codec())))
	is(int64(response.Rejected), response.Message)
}

// Items that one consumer loses may be retried for another one, and items that are retried are not lost.
func TestOnlyWhatIsLostForGoodIsAPart(t *testing.T) {
	two, _, _ := items(2)
	three, _, _ := items(3)
	none, _, _ := items(0)
	some := consumererror.NewTraces(errors.New("no"), two)
	lost := consumererror.NewPermanent(some)
	is := func(want int, err error) {
		t.Helper()
		require.Equal(t, want, partOf(err, 3).items)
	}
	is(2, lost)
	is(2, fmt.Errorf("wrapped: %w", lost))
	is(0, some)
	is(0, errors.Join(lost, errors.New("another branch")))
	is(0, errors.Join(lost, consumererror.NewPermanent(errors.New("another branch"))))
	is(0, consumererror.NewPermanent(consumererror.NewTraces(errors.New("all"), three)))
	is(0, consumererror.NewPermanent(consumererror.NewTraces(errors.New("none"), none)))
	is(0, consumererror.NewPermanent(errors.New("all")))
	is(0, nil)
	require.Len(t, partOf(consumererror.NewPermanent(consumererror.NewTraces(errors.New(strings.Repeat("x", 1<<20)), two)), 3).message, maxText)
	_, err := protojson.Marshal(statusOf(errors.New("broken \xff")).Proto())
	require.NoError(t, err, "whatever an error says can be sent")
}
