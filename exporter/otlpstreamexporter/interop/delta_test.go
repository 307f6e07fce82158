// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

func encoded(tb testing.TB, md pmetric.Metrics) string {
	b, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	require.NoError(tb, err)
	return string(b)
}

func TestDeltasSurviveCuts(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		const targets, times, each = 8, 40, 32
		batches, _ := scrapes(t, targets, times)
		var to sink
		w := newWire(t, startReceiver(t, otlpstreamreceiver.NewFactory(), transport, &to, nil))
		factory := otlpstreamexporter.NewFactory()
		e, err := factory.CreateMetrics(context.Background(), exportertest.NewNopSettings(factory.Type()),
			testConfig(transport, w.addr, func(cfg *otlpstreamexporter.Config) {
				cfg.Streams, cfg.Mode = 2, "stream"
				cfg.HistoryBytes = 100_000 // too few for all of them
			}))
		require.NoError(t, err)
		require.NoError(t, e.Start(context.Background(), componenttest.NewNopHost()))
		sent := map[string]int{}
		for i, md := range batches {
			sent[encoded(t, md)] = 0
			require.NoError(t, e.ConsumeMetrics(context.Background(), md))
			if i%each == each-1 {
				eventually(t, func() bool { return len(to.metrics.AllMetrics()) > i-each/3 }, "it moves on")
				w.cut()
			}
		}
		require.NoError(t, e.Shutdown(context.Background()))
		for _, md := range to.metrics.AllMetrics() {
			got := encoded(t, md)
			require.Contains(t, sent, got, "it is what was sent")
			sent[got]++
		}
		for _, n := range sent {
			require.NotZero(t, n, "all arrive")
		}
	})
}

func TestReceiversNeedNotTakeDeltas(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		batches, points := scrapes(t, 5, 6)
		each := func(memory, history int) float64 {
			var to sink
			w := newWire(t, startReceiver(t, otlpstreamreceiver.NewFactory(), transport, &to, map[string]any{"streams": map[string]any{"memory": memory}}))
			factory := otlpstreamexporter.NewFactory()
			e, err := factory.CreateMetrics(context.Background(), exportertest.NewNopSettings(factory.Type()),
				testConfig(transport, w.addr, func(cfg *otlpstreamexporter.Config) { cfg.HistoryBytes = history }))
			require.NoError(t, err)
			require.NoError(t, e.Start(context.Background(), componenttest.NewNopHost()))
			for i, md := range batches {
				require.NoError(t, e.ConsumeMetrics(context.Background(), md))
				eventually(t, func() bool { return len(to.metrics.AllMetrics()) == i+1 }, "it arrives")
			}
			require.NoError(t, e.Shutdown(context.Background()))
			for i, md := range to.metrics.AllMetrics() {
				require.Equal(t, encoded(t, batches[i]), encoded(t, md))
			}
			return float64(w.bytes.Load()) / float64(points)
		}
		none, window, small, deltas := each(0, 1<<20), each(64<<20, 0), each(8*200_000, 1<<20), each(256<<20, 1<<20)
		t.Logf("B/point: %.1f by themselves, %.1f with a window, %.1f with deltas in little memory, %.1f with deltas", none, window, small, deltas)
		require.Less(t, window, none/2)
		require.Less(t, small, window*0.8)
		require.Less(t, deltas, window*0.7)
	})
}

// A client without deltas packs with its fixed window, and announces no other.
func TestClientsThatKnowNoDeltasPackAsTheyDid(t *testing.T) {
	batches, _ := scrapes(t, 3, 10)
	for memory, packs := range map[int]bool{256 << 20: true, 1 << 20: false} {
		var to sink
		addr := startReceiver(t, otlpstreamreceiver.NewFactory(), transportGRPC, &to, map[string]any{"streams": map[string]any{"memory": memory}})
		cc, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		defer cc.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ctx = metadata.AppendToOutgoingContext(ctx, otlpstream.HeaderCaps, "coalesce,delay,drain,window,working")
		stream, err := cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, otlpstream.Metrics.StreamMethod(),
			grpc.ForceCodecV2(otlpstream.Codec()))
		require.NoError(t, err)
		header, err := stream.Header()
		require.NoError(t, err)
		caps := otlpstream.ParseCaps(header.Get(otlpstream.HeaderCaps)[0])
		require.Zero(t, caps&otlpstream.CapDelta)
		require.Equal(t, packs, caps&otlpstream.CapWindow != 0, "a window that it cannot shrink is granted whole, or not at all")
		packer := otlpstream.NewPacker()
		for i, md := range batches {
			data := []byte(encoded(t, md))
			require.NoError(t, otlpstream.ToStream(data))
			r := &otlpstream.Request{ID: uint64(i + 1), Data: data}
			if packs {
				packer.Pack(r)
			}
			require.NoError(t, stream.SendMsg(r))
			var response otlpstream.Response
			require.NoError(t, stream.RecvMsg(&response))
			require.Equal(t, otlpstream.Success, response.Code)
		}
		for i, md := range to.metrics.AllMetrics() {
			require.Equal(t, encoded(t, batches[i]), encoded(t, md))
		}
		require.Len(t, to.metrics.AllMetrics(), len(batches))
	}
}

func TestEachResourceHasAStreamThatKnowsIt(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		const targets, times = 12, 16
		batches, points := scrapes(t, targets, times)
		var to sink
		w := newWire(t, startReceiver(t, otlpstreamreceiver.NewFactory(), transport, &to, nil))
		factory := otlpstreamexporter.NewFactory()
		e, err := factory.CreateMetrics(context.Background(), exportertest.NewNopSettings(factory.Type()),
			testConfig(transport, w.addr, func(cfg *otlpstreamexporter.Config) { cfg.Streams = 4 }))
		require.NoError(t, err)
		require.NoError(t, e.Start(context.Background(), componenttest.NewNopHost()))
		for i, md := range batches {
			require.NoError(t, e.ConsumeMetrics(context.Background(), md))
			if i%targets == targets-1 {
				eventually(t, func() bool { return len(to.metrics.AllMetrics()) == i+1 }, "a round arrives")
			}
		}
		require.NoError(t, e.Shutdown(context.Background()))
		require.Less(t, float64(w.bytes.Load())/float64(points), 5.0, "bytes a point: it is learned once")
	})
}
