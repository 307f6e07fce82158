// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/godwit-otel/godwit/e2e/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func someMetrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("up")
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
	m.Gauge().DataPoints().AppendEmpty().SetIntValue(0)
	return md
}

func someTraces() ptrace.Traces {
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("walk")
	return td
}

func someLogs() plog.Logs {
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("hello")
	return ld
}

func dial(t *testing.T, s *Server, opts ...grpc.CallOption) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(s.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(opts...))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestGRPCKeepsEverySignalInEveryEncoding(t *testing.T) {
	s := New(t, Options{})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "a")
	for _, opts := range [][]grpc.CallOption{nil, {grpc.UseCompressor("gzip")}, {grpc.UseCompressor("zstd")}} {
		c := dial(t, s, opts...)
		_, err := pmetricotlp.NewGRPCClient(c).Export(ctx, pmetricotlp.NewExportRequestFromMetrics(someMetrics()))
		require.NoError(t, err)
		_, err = ptraceotlp.NewGRPCClient(c).Export(ctx, ptraceotlp.NewExportRequestFromTraces(someTraces()))
		require.NoError(t, err)
		_, err = plogotlp.NewGRPCClient(c).Export(ctx, plogotlp.NewExportRequestFromLogs(someLogs()))
		require.NoError(t, err)
	}
	assert.Equal(t, Totals{Requests: 9, DataPoints: 6, Spans: 3, LogRecords: 3}, s.Totals())
	assert.Equal(t, []pmetric.Metrics{someMetrics(), someMetrics(), someMetrics()}, s.Metrics())
	assert.Equal(t, []ptrace.Traces{someTraces(), someTraces(), someTraces()}, s.Traces())
	assert.Equal(t, []plog.Logs{someLogs(), someLogs(), someLogs()}, s.Logs())
	require.Len(t, s.Requests(), 9)
	assert.Equal(t, "a", s.Requests()[0].Header.Get("X-Tenant"))
	assert.Equal(t, Metrics, s.Requests()[0].Signal)
	assert.Equal(t, 2, s.Requests()[0].Items)
	assert.Positive(t, s.WireBytes())
}

func TestGRPCFollowsTheScript(t *testing.T) {
	pause := 1500 * time.Millisecond
	s := New(t, Options{CountOnly: true})
	s.Then(
		Step{Code: codes.ResourceExhausted, Message: "slowly", RetryInfo: &pause},
		Step{Rejected: 1, RejectedMessage: "one was odd"},
		Step{Code: codes.Unavailable, Keep: true},
		Step{Delay: 20 * time.Millisecond},
	)
	client := pmetricotlp.NewGRPCClient(dial(t, s))
	send := func(ctx context.Context) (pmetricotlp.ExportResponse, error) {
		return client.Export(ctx, pmetricotlp.NewExportRequestFromMetrics(someMetrics()))
	}
	_, err := send(t.Context())
	st := status.Convert(err)
	assert.Equal(t, codes.ResourceExhausted, st.Code())
	assert.Equal(t, "slowly", st.Message())
	require.Len(t, st.Details(), 1)
	assert.Equal(t, pause, st.Details()[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration())
	assert.Zero(t, s.Totals())

	resp, err := send(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(1), resp.PartialSuccess().RejectedDataPoints())
	assert.Equal(t, "one was odd", resp.PartialSuccess().ErrorMessage())

	_, err = send(t.Context())
	assert.Equal(t, codes.Unavailable, status.Code(err))
	assert.Equal(t, 4, s.Totals().DataPoints, "kept although refused")
	assert.Empty(t, s.Metrics(), "only counted")

	start := time.Now()
	_, err = send(t.Context())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(start), 20*time.Millisecond)
}

func TestGRPCFaults(t *testing.T) {
	s := New(t, Options{})
	s.Then(Step{Fault: Hang}, Step{Fault: Reset})
	client := plogotlp.NewGRPCClient(dial(t, s))
	ctx := wait.Context(t, func() bool { return len(s.Requests()) == 1 })
	_, err := client.Export(ctx, plogotlp.NewExportRequestFromLogs(someLogs()))
	assert.Equal(t, codes.Canceled, status.Code(err))
	_, err = client.Export(t.Context(), plogotlp.NewExportRequestFromLogs(someLogs()))
	assert.Equal(t, codes.Unavailable, status.Code(err))
	_, err = client.Export(t.Context(), plogotlp.NewExportRequestFromLogs(someLogs()))
	require.NoError(t, err)
	assert.Equal(t, 1, s.Totals().LogRecords, "a request without an answer is not kept")
	s.ResetAll()
	assert.Zero(t, s.grpc.Open())
}

// post sends without net/http's own compression.
func post(t *testing.T, url, contentType, encoding string, body []byte) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", contentType)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, answer
}

func TestHTTPKeepsEverySignalInEveryEncoding(t *testing.T) {
	s := New(t, Options{})
	must := func(b []byte, err error) []byte {
		require.NoError(t, err)
		return b
	}
	var gz bytes.Buffer
	zw := gzip.NewWriter(&gz)
	_, _ = zw.Write(must(ptraceotlp.NewExportRequestFromTraces(someTraces()).MarshalProto()))
	require.NoError(t, zw.Close())
	zs, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer zs.Close()
	logs := zs.EncodeAll(must(plogotlp.NewExportRequestFromLogs(someLogs()).MarshalProto()), nil)

	f := func(path, contentType, encoding string, body []byte, want int) {
		t.Helper()
		resp, _ := post(t, s.HTTPURL()+path, contentType, encoding, body)
		assert.Equal(t, want, resp.StatusCode)
	}
	f("/v1/metrics", jsonType, "", must(pmetricotlp.NewExportRequestFromMetrics(someMetrics()).MarshalJSON()), 200)
	f("/v1/traces", protobufType, "gzip", gz.Bytes(), 200)
	f("/v1/logs", protobufType, "zstd", logs, 200)
	f("/v1/logs", protobufType, "br", logs, 400)
	f("/v1/logs", protobufType, "gzip", logs, 400)
	f("/v1/logs", protobufType, "", logs, 400)
	f("/v1/logs", "text/plain", "", logs, 415)
	f("/v1/nothing", protobufType, "", logs, 404)
	assert.Equal(t, Totals{Requests: 3, DataPoints: 2, Spans: 1, LogRecords: 1}, s.Totals())
	assert.Equal(t, []ptrace.Traces{someTraces()}, s.Traces())
}

func TestHTTPFollowsTheScript(t *testing.T) {
	pause := 1500 * time.Millisecond
	s := New(t, Options{})
	s.Then(
		Step{Code: codes.Unavailable, Message: "slowly", RetryInfo: &pause},
		Step{HTTPStatus: 502},
		Step{Rejected: 2, RejectedMessage: "odd"},
	)
	body, err := pmetricotlp.NewExportRequestFromMetrics(someMetrics()).MarshalProto()
	require.NoError(t, err)

	resp, answer := post(t, s.HTTPURL()+"/v1/metrics", protobufType, "", body)
	assert.Equal(t, 503, resp.StatusCode)
	assert.Equal(t, "2", resp.Header.Get("Retry-After"), "whole seconds, rounded up")
	var st spb.Status
	require.NoError(t, proto.Unmarshal(answer, &st))
	assert.Equal(t, "slowly", st.GetMessage())

	resp, _ = post(t, s.HTTPURL()+"/v1/metrics", protobufType, "", body)
	assert.Equal(t, 502, resp.StatusCode)
	assert.Zero(t, s.Totals())

	_, answer = post(t, s.HTTPURL()+"/v1/metrics", protobufType, "", body)
	partial := pmetricotlp.NewExportResponse()
	require.NoError(t, partial.UnmarshalProto(answer))
	assert.Equal(t, int64(2), partial.PartialSuccess().RejectedDataPoints())
	assert.Equal(t, "odd", partial.PartialSuccess().ErrorMessage())
}

func TestHTTPFaults(t *testing.T) {
	s := New(t, Options{})
	s.Then(Step{Fault: Reset}, Step{Fault: Hang})
	for range 2 {
		ctx := wait.Context(t, func() bool { return len(s.Requests()) == 2 })
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.HTTPURL()+"/v1/logs", http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Content-Type", protobufType)
		_, err = (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		require.Error(t, err)
	}
	assert.Len(t, s.Requests(), 2)
	assert.Zero(t, s.Totals())
}
