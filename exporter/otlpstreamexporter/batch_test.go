// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func batching(size int64) func(*Config) {
	return func(cfg *Config) {
		cfg.Queue.Get().Batch = configoptional.Some(exporterhelper.BatchConfig{
			FlushTimeout: 50 * time.Millisecond, Sizer: exporterhelper.RequestSizerTypeItems, MinSize: size, MaxSize: 2 * size,
		})
	}
}

func TestQueuesBatch(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		const n, size = 1000, 100
		s := run(t, &testServer{stream: echo}, kind)
		e := newTestExporter(t, kind, s.addr, batching(size))
		e.export(0, n)
		b := e.settled()
		require.Equal(t, int64(n), b.Acked)
		items := 0
		for _, r := range s.seen() {
			items += int(r.items)
			require.LessOrEqual(t, r.items, uint64(2*size))
		}
		require.Equal(t, n, items)
		require.LessOrEqual(t, len(s.seen()), n/10)
	})
}

func TestAQueueOnDiskBatchesWhatAnEarlierRunHasLeft(t *testing.T) {
	const n = 60
	d, set := &disk{data: map[string][]byte{}}, exportertest.NewNopSettings(metadata.Type)
	silent := run(t, &testServer{stream: mute}, transport.GRPC)
	first := startExporter(t, set, d, testConfig(transport.GRPC, silent.addr, onDisk, impatient, batching(10)))
	first.export(0, n)
	require.NoError(t, first.Shutdown(context.Background()))
	require.Zero(t, first.balanced().Dropped)

	s := run(t, &testServer{stream: echo}, transport.GRPC)
	second := startExporter(t, set, d, testConfig(transport.GRPC, s.addr, onDisk, batching(10)))
	eventually(t, func() bool { return second.balanced().Acked == n }, "all of it arrives")
	require.Equal(t, int64(n), second.settled().Received)
	items := 0
	for _, r := range s.seen() {
		items += int(r.items)
	}
	require.Equal(t, n, items)
	require.Less(t, len(s.seen()), n/2)
}

func TestConfigurationsOfOtherExportersLoad(t *testing.T) {
	for file, unused := range map[string][]string{
		"testdata/otlp.yaml":      {"num_consumers"},
		"testdata/otelarrow.yaml": {"num_consumers", "arrow"},
	} {
		conf, err := confmaptest.LoadConf(file)
		require.NoError(t, err)
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, conf.Unmarshal(cfg))
		require.NoError(t, cfg.Validate())
		require.Equal(t, exporterhelper.RequestSizerTypeItems, cfg.Queue.Get().Batch.Get().Sizer)
		core, logs := observer.New(zap.InfoLevel)
		set := exportertest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		e, err := createTraces(t.Context(), set, cfg)
		require.NoError(t, err)
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, e.Shutdown(t.Context()))
		require.Equal(t, len(unused), logs.FilterMessageSnippet("no effect").Len())
		for _, key := range unused {
			require.Equal(t, 1, logs.FilterMessageSnippet(key).Len(), key)
		}
	}
}

// Callers with `wait_for_result` get the result of their data, as with other exporters.
func TestWhoWaitsForTheResultHearsIt(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				if r.name == batch(1) {
					_ = p.send(otlpstream.Response{ID: r.id, Code: otlpstream.FailedNoneRetryable, Message: "not this one"})
					continue
				}
				p.ack(r.id)
			}
		}}, kind)
		core, logs := observer.New(zap.InfoLevel)
		set := exportertest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		conf := confmap.NewFromStringMap(map[string]any{"sending_queue": map[string]any{"wait_for_result": true, "num_consumers": 3, "batch": map[string]any{"min_size": 100}}})
		cfg := testConfig(kind, s.addr)
		require.NoError(t, conf.Unmarshal(cfg))
		e := startExporter(t, set, componenttest.NewNopHost(), cfg)
		require.NoError(t, e.ConsumeTraces(t.Context(), spans(batch(0), 1)))
		require.Equal(t, int64(1), e.balanced().Acked, "it is delivered by then")
		require.ErrorContains(t, e.ConsumeTraces(t.Context(), spans(batch(1), 1)), "not this one")
		require.Equal(t, int64(1), e.balanced().Dropped[account.Rejected])
		require.Equal(t, 1, logs.FilterMessageSnippet("`sending_queue::wait_for_result`").Len())
		require.Zero(t, logs.FilterMessageSnippet("num_consumers").Len(), "it is said once what does nothing")
	})

	wrong := testConfig(transport.GRPC, "localhost:1", func(cfg *Config) {
		cfg.Queue.Get().WaitForResult, cfg.Queue.Get().Storage = true, &diskID
	})
	require.ErrorContains(t, wrong.Validate(), "`sending_queue::wait_for_result`")
	wrong = testConfig(transport.GRPC, "", func(cfg *Config) {
		cfg.Queue.Get().WaitForResult, cfg.Endpoints = true, []EndpointConfig{{Name: "a", Client: cfg.Client}}
	})
	require.ErrorContains(t, wrong.Validate(), "each needs a queue")
}
