// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func TestTheSpanOfARequestTellsWhichItIsAndWhatBecameOfIt(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		tel := componenttest.NewTelemetry()
		defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
		traces, err := NewFactory().CreateTraces(context.Background(),
			receiver.Settings{ID: settings().ID, TelemetrySettings: tel.NewTelemetrySettings()}, testConfig(), &pipeline{do: choosy})
		require.NoError(t, err)
		r := traces.(*sharedReceiver)
		require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()))
		c := dial(t, r, 0)
		require.NoError(t, c.send(&otlpstream.Request{ID: 1, Attempt: 2, Data: payload(t, "good")}))
		c.answer()
		require.NoError(t, c.send(&otlpstream.Request{ID: 2, Data: payload(t, "busy")}))
		c.answer()
		malformed := []byte{0x12, 2, 0xff, 0xff}
		require.NoError(t, c.send(&otlpstream.Request{ID: 3, Data: malformed}))
		c.answer()
		require.NoError(t, c.finish())
		c.end()
		require.NoError(t, r.Shutdown(context.Background()))

		type told struct {
			id, attempt, bytes, accepted, refused int64
			status                                codes.Code
		}
		var got []told
		for _, span := range tel.SpanRecorder.Ended() {
			if !strings.HasSuffix(span.Name(), "/TraceDataReceived") {
				continue
			}
			set := attribute.NewSet(span.Attributes()...)
			number := func(key attribute.Key) int64 {
				v, ok := set.Value(key)
				require.True(t, ok, key)
				return v.AsInt64()
			}
			got = append(got, told{
				number("id"), number("attempt"), number("bytes"), number("accepted_spans"), number("refused_spans"), span.Status().Code,
			})
		}
		size := int64(len(payload(t, "good")))
		require.ElementsMatch(t, []told{
			{1, 2, size, 1, 0, codes.Unset},
			{2, 0, size, 0, 1, codes.Error},
			{3, 0, int64(len(malformed)), 0, 0, codes.Error},
		}, got)
	})
}

func TestASpanThatNobodyRecordsCostsNothing(t *testing.T) {
	ctx, request := context.Background(), &otlpstream.Request{ID: 1, Data: payload(t, "x")}
	require.Zero(t, testing.AllocsPerRun(100, func() { describe(ctx, request) }))
}
