// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
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

// spanNames counts the spans of requests by name.
func spanNames(tb testing.TB, requests []xexporterhelper.Request) map[string]int {
	names := map[string]int{}
	for _, r := range requests {
		data, err := otlpstream.InOTLPForm(r.(*request).data)
		require.NoError(tb, err)
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(data)
		require.NoError(tb, err)
		require.Equal(tb, td.SpanCount(), r.ItemsCount())
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					names[span.Name()]++
				}
			}
		}
	}
	return names
}

func TestRequestsAreMergedAndSplit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	dest := &destination{streamExporter: &streamExporter{signal: otlpstream.Traces}}
	for _, sizer := range []exporterhelper.RequestSizerType{exporterhelper.RequestSizerTypeItems, exporterhelper.RequestSizerTypeBytes} {
		for range 200 {
			most := random.IntN(60)
			if sizer == exporterhelper.RequestSizerTypeBytes {
				most *= 30
			}
			var made []xexporterhelper.Request
			want := map[string]int{}
			var current xexporterhelper.Request
			for i := range 1 + random.IntN(10) {
				n := 1 + random.IntN(100)
				td := ptrace.NewTraces()
				ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
				for j := range n {
					name := fmt.Sprintf("%d-%d", i, j)
					ss.Spans().AppendEmpty().SetName(name)
					want[name]++
				}
				data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
				require.NoError(t, err)
				require.NoError(t, otlpstream.ToStream(data))
				next := &request{dest: dest, items: n, data: data[:len(data):len(data)]}
				var parts []xexporterhelper.Request
				if current == nil {
					parts, err = next.MergeSplit(context.Background(), most, sizer, nil)
				} else {
					parts, err = current.MergeSplit(context.Background(), most, sizer, next)
				}
				require.NoError(t, err)
				made, current = append(made, parts[:len(parts)-1]...), parts[len(parts)-1]
			}
			made = append(made, current)
			require.Equal(t, want, spanNames(t, made))
			for _, r := range made {
				if size := r.(*request).size(sizer); most > 0 && r.ItemsCount() > 1 {
					require.LessOrEqual(t, size, max(most, 2*messageOverhead))
				}
			}
		}
	}
}

func TestQueuesBatch(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		const n, size = 1000, 100
		s := run(t, &server{stream: echo}, kind)
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
	silent := run(t, &server{stream: mute}, transport.GRPC)
	first := startExporter(t, set, d, testConfig(transport.GRPC, silent.addr, onDisk, impatient, batching(10)))
	first.export(0, n)
	require.NoError(t, first.Shutdown(context.Background()))
	require.Zero(t, first.balanced().Dropped)

	s := run(t, &server{stream: echo}, transport.GRPC)
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

type attributes map[string]any

func (a attributes) GetAttribute(name string) any { return a[name] }

func (a attributes) GetAttributeNames() (names []string) {
	for name := range a {
		names = append(names, name)
	}
	return names
}

func TestBatchesHaveOneClient(t *testing.T) {
	from := func(tenant, user string) context.Context {
		return client.NewContext(context.Background(), client.Info{
			Metadata: client.NewMetadata(map[string][]string{"tenant": {tenant}, "other": {user}}), Auth: attributes{"user": user},
		})
	}
	f := func(want bool, a, b context.Context, change func(*Config)) {
		t.Helper()
		cfg := testConfig(transport.GRPC, "x:1", batching(1), change)
		require.NoError(t, cfg.Validate())
		d := &destination{streamExporter: &streamExporter{cfg: cfg}, client: cfg.Client}
		var settings xexporterhelper.QueueBatchSettings
		d.batches(&settings, cfg.Queue.Get().Batch.Get().Partition.MetadataKeys)
		if settings.Partitioner == nil {
			require.True(t, want)
			return
		}
		require.Equal(t, want, settings.Partitioner.GetKey(a, nil) == settings.Partitioner.GetKey(b, nil))
		require.Equal(t, client.FromContext(a), client.FromContext(settings.MergeCtx(a, b)))
	}
	none := func(*Config) {}
	keys := func(cfg *Config) { cfg.MetadataKeys = []string{"tenant"} }
	auth := func(cfg *Config) {
		cfg.Client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: component.MustNewID("a")})
	}
	parts := func(cfg *Config) { cfg.Queue.Get().Batch.Get().Partition.MetadataKeys = []string{"other"} }
	f(true, from("a", "x"), from("b", "y"), none)
	f(false, from("a", "x"), from("b", "x"), keys)
	f(true, from("a", "x"), from("a", "y"), keys)
	f(false, from("a", "x"), from("a", "y"), auth)
	f(false, from("a", "x"), from("b", "x"), auth)
	f(true, from("a", "x"), from("a", "x"), auth)
	f(false, from("a", "x"), from("a", "y"), parts)
	f(true, from("a", "x"), from("b", "x"), parts)
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
		require.Equal(t, len(unused), logs.FilterMessageSnippet("does nothing").Len())
		for _, key := range unused {
			require.Equal(t, 1, logs.FilterMessageSnippet(key).Len(), key)
		}
	}
}

// Who sends with `wait_for_result` knows what became of the data, as with other exporters.
func TestWhoWaitsForTheResultHearsIt(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &server{stream: func(p *peer) error {
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
