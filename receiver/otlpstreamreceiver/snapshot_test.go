// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/receiver"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func TestASnapshotTellsWhoStreamsAndWhatBecameOfIt(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		gate := make(chan struct{})
		release := sync.OnceFunc(func() { close(gate) })
		p := &pipeline{do: func(_ context.Context, name string) error {
			switch name {
			case "bad":
				return consumererror.NewPermanent(errors.New("bad"))
			case "busy":
				return errors.New("busy")
			case "slow":
				<-gate
			}
			return nil
		}}
		r := start(t, p, func(cfg *Config) { cfg.InFlight.Bytes = 200 })
		t.Cleanup(release)
		require.Empty(t, r.Snapshot().Clients)
		first := dial(t, r, otlpstream.AllCaps)
		for i, name := range []string{"good", "bad", "busy"} {
			require.NoError(t, first.send(&otlpstream.Request{ID: uint64(i + 1), Attempt: 1, Data: payload(t, name)}))
		}
		first.answers(3)
		second := dial(t, r, otlpstream.CapDelay)
		second.export(1, "slow")
		eventually(t, func() bool { return r.Snapshot().InFlightBytes > 0 }, "it is in")
		second.export(2, string(make([]byte, 200)))
		second.answer()

		// A response is sent shortly before its request is no longer in flight.
		eventually(t, func() bool {
			clients := r.Snapshot().Clients
			return len(clients) == 1 && clients[0].Total.InFlight == 1
		}, "the slow one is in flight")

		s := r.Snapshot()
		require.Equal(t, r.grpcAddr, s.GRPC)
		require.Equal(t, r.httpAddr, s.HTTP)
		require.False(t, s.Stopping)
		require.Equal(t, 2, s.Streams)
		require.Equal(t, 1000, s.MaxStreams)
		require.Equal(t, 200, s.MaxInFlightBytes)
		require.Equal(t, int64(3), s.Resent)
		require.Len(t, s.Requests, 4)
		require.Len(t, s.Clients, 1)
		c := s.Clients[0]
		require.Equal(t, "127.0.0.1", c.Host)
		require.Equal(t, Answers{InFlight: 1, Acked: 1, Failed: 1, Retry: 1, Refused: 1, Resent: 3}, c.Total)
		require.Len(t, c.Streams, 2)
		require.Equal(t, Answers{Acked: 1, Failed: 1, Retry: 1, Resent: 3}, c.Streams[0].Answers)
		require.Equal(t, "traces", c.Streams[0].Signal)
		require.Equal(t, "delay", c.Streams[1].Caps)
		require.WithinDuration(t, time.Now(), c.Streams[1].Since, patience)
		_, err := json.Marshal(s)
		require.NoError(t, err)

		release()
		second.answer()
		for _, c := range []*testClient{first, second} {
			require.NoError(t, c.finish())
			c.end()
		}
		eventually(t, func() bool { return r.Snapshot().Streams == 0 }, "they have gone")
		require.Empty(t, r.Snapshot().Clients)
	})
}

func TestEachRequestOnAStreamHasASpanOfItsOwn(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		tel := componenttest.NewTelemetry()
		defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
		traces, err := NewFactory().CreateTraces(context.Background(),
			receiver.Settings{ID: settings().ID, TelemetrySettings: tel.NewTelemetrySettings()}, testConfig(), &pipeline{})
		require.NoError(t, err)
		r := traces.(*sharedReceiver)
		require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()))
		c := dial(t, r, 0)
		for id := uint64(1); id <= 3; id++ {
			c.export(id, numbered(id))
		}
		c.answers(3)
		require.NoError(t, c.finish())
		c.end()
		require.NoError(t, r.Shutdown(context.Background()))
		roots := map[string]bool{}
		for _, span := range tel.SpanRecorder.Ended() {
			if !strings.HasSuffix(span.Name(), "/TraceDataReceived") {
				continue
			}
			require.False(t, span.Parent().IsValid(), "it would hang on a span that lasts as long as the stream")
			require.Len(t, span.Links(), 1)
			roots[span.SpanContext().TraceID().String()] = true
		}
		require.Len(t, roots, 3)
	})
}
