// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/metadatatest"
)

func TestMetricsTellWhatWasAnswered(t *testing.T) {
	for transport, dial := range map[string]dialer{"grpc_stream": dialGRPC, "websocket": dialWebSocket} {
		t.Run(transport, func(t *testing.T) {
			tel := componenttest.NewTelemetry()
			defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
			id := settings().ID
			p := &pipeline{do: func(_ context.Context, name string) error {
				return map[string]error{
					"bad": consumererror.NewPermanent(errors.New("bad")), "busy": errors.New("busy"),
				}[name]
			}}
			traces, err := NewFactory().CreateTraces(context.Background(),
				receiver.Settings{ID: id, TelemetrySettings: tel.NewTelemetrySettings()}, testConfig(), p)
			require.NoError(t, err)
			r := traces.(*sharedReceiver)
			require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()))
			c := dial(t, r, 0)
			for i, name := range []string{"good", "bad", "busy"} {
				require.NoError(t, c.send(&otlpstream.Request{ID: uint64(i + 1), Attempt: uint64(i), Data: payload(t, name)}))
			}
			c.answers(3)
			point := func(n int64, more ...attribute.KeyValue) metricdata.DataPoint[int64] {
				return metricdata.DataPoint[int64]{
					Value: n, Attributes: attribute.NewSet(append(more, attribute.String("transport", transport), attribute.String("receiver", id.String()))...),
				}
			}
			result := func(name string) attribute.KeyValue { return attribute.String("result", name) }
			ignore, exemplars := metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars()
			metadatatest.AssertEqualReceiverOtlpstreamStreams(t, tel, []metricdata.DataPoint[int64]{point(1)}, ignore, exemplars)
			require.NoError(t, c.finish())
			st, _ := c.end()
			require.Nil(t, st)
			require.NoError(t, r.Shutdown(context.Background()))
			metadatatest.AssertEqualReceiverOtlpstreamRequests(t, tel, []metricdata.DataPoint[int64]{
				point(1, result("success")), point(1, result("failed_none_retryable")), point(1, result("failed_retryable")),
			}, ignore, exemplars)
			metadatatest.AssertEqualReceiverOtlpstreamResentRequests(t, tel, []metricdata.DataPoint[int64]{point(2)}, ignore, exemplars)
			metadatatest.AssertEqualReceiverOtlpstreamStreams(t, tel, []metricdata.DataPoint[int64]{point(0)}, ignore, exemplars)
			metadatatest.AssertEqualReceiverOtlpstreamStreamsClosed(t, tel, []metricdata.DataPoint[int64]{
				point(1, attribute.String("reason", "client")),
			}, ignore, exemplars)
		})
	}
}
