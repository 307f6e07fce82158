// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// wire is between a client and a server and counts the bytes that the client sends.
type wire struct {
	addr  string
	bytes atomic.Int64

	mu    sync.Mutex
	calls []func() // close the connections
}

// cut closes all connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, hangUp := range w.calls {
		hangUp()
	}
	w.calls = nil
}

func newWire(tb testing.TB, target string) *wire {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(tb, err)
	w := &wire{addr: listener.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				return
			}
			hangUp := func() { client.Close(); server.Close() }
			carry := func(dst io.Writer, src io.Reader) {
				defer hangUp()
				_, _ = io.Copy(dst, src)
			}
			running.Go(func() { carry(client, server) })
			running.Go(func() { carry(server, counted{client, w}) })
			w.mu.Lock()
			w.calls = append(w.calls, hangUp)
			w.mu.Unlock()
		}
	})
	tb.Cleanup(func() {
		listener.Close()
		w.cut()
		running.Wait()
	})
	return w
}

type counted struct {
	from io.Reader
	wire *wire
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.wire.bytes.Add(int64(n))
	return n, err
}

// ship sends batches to a receiver, asserts that they arrive unchanged, and returns the bytes on the wire.
func ship(t *testing.T, transport string, f receiver.Factory, batches []pmetric.Metrics, change func(*otlpstreamexporter.Config)) int64 {
	var to sink
	w := newWire(t, startReceiver(t, f, transport, &to, nil))
	cfg := testConfig(transport, w.addr, change)
	factory := otlpstreamexporter.NewFactory()
	e, err := factory.CreateMetrics(context.Background(), exportertest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	for i, md := range batches {
		require.NoError(t, e.ConsumeMetrics(context.Background(), md))
		// One after another, like scrapes.
		eventually(t, func() bool { return len(to.metrics.AllMetrics()) == i+1 }, "it arrives")
	}
	require.NoError(t, e.Shutdown(context.Background()))
	for i, got := range to.metrics.AllMetrics() {
		want, err := pmetricotlp.NewExportRequestFromMetrics(batches[i]).MarshalProto()
		require.NoError(t, err)
		have, err := pmetricotlp.NewExportRequestFromMetrics(got).MarshalProto()
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, have))
	}
	return w.bytes.Load()
}

func TestMetricsTakeAFractionOfTheWireBytesOfOTLPWithGzip(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		batches, points := scrapes(t, 10, 6)
		unary := ship(t, transport, otlpreceiver.NewFactory(), batches, func(cfg *otlpstreamexporter.Config) {
			cfg.Mode, cfg.Client.Compression = "unary", configcompression.TypeGzip
		})
		streamed := ship(t, transport, otlpstreamreceiver.NewFactory(), batches, func(*otlpstreamexporter.Config) {})
		t.Logf("%d points of node pages: %.1f B each by OTLP with gzip, %.1f B streamed", points,
			float64(unary)/float64(points), float64(streamed)/float64(points))
		require.LessOrEqual(t, float64(streamed), 0.25*float64(unary))
	})
}

func TestWindowsSurviveResendsAndRebalancing(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		batches, _ := scrapes(t, 5, 20)
		ship(t, transport, otlpstreamreceiver.NewFactory(), batches, func(cfg *otlpstreamexporter.Config) {
			cfg.Rebalance.Requests = 7
		})
	})
}

func TestWindowsSurviveCuts(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		const n, rounds = 1000, 10
		var to sink
		w := newWire(t, startReceiver(t, otlpstreamreceiver.NewFactory(), transport, &to, nil))
		e := newTestExporter(t, transport, w.addr, func(cfg *otlpstreamexporter.Config) {
			cfg.Streams, cfg.Mode = 2, "stream"
			cfg.Queue.Get().QueueSize = n
		})
		for round := range rounds {
			before := to.SpanCount()
			e.export(round*n/rounds, n/rounds)
			eventually(t, func() bool { return to.SpanCount() > before+n/rounds/3 }, "it moves on")
			w.cut()
		}
		require.Equal(t, int64(n), e.settled().Acked)
		names := map[string]bool{}
		for _, td := range to.AllTraces() {
			names[td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Name()] = true
		}
		require.Len(t, names, n)
	})
}

// BenchmarkCompression measures the cost of compressing one batch, and its size: each by itself, with the first batch
// as a dictionary, and in a window over all batches of a stream, of several sizes.
func BenchmarkCompression(b *testing.B) {
	metrics, points := scrapes(b, 20, 10)
	node := make([][]byte, len(metrics))
	for i := range metrics {
		node[i], _ = (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics[i])
	}
	web := func(n, size int) [][]byte {
		batches, _ := requests(n, size)
		payloads := make([][]byte, n)
		for i := range batches {
			payloads[i], _ = (&ptrace.ProtoMarshaler{}).MarshalTraces(batches[i])
		}
		return payloads
	}
	for _, data := range []struct {
		name     string
		payloads [][]byte
		items    int
	}{{"node", node, points}, {"100_spans", web(200, 100), 20_000}, {"10_spans", web(1000, 10), 10_000}} {
		measure := func(name string, fresh func() func([]byte) int) {
			b.Run("data="+data.name+"/by="+name, func(b *testing.B) {
				b.ReportAllocs()
				size := 0
				for b.Loop() {
					size = 0
					compressed := fresh()
					for _, payload := range data.payloads {
						size += compressed(payload)
					}
				}
				b.ReportMetric(float64(size)/float64(data.items), "B/item")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*data.items), "ns/item")
			})
		}
		measure("gzip", func() func([]byte) int {
			var out bytes.Buffer
			w := gzip.NewWriter(&out)
			return func(payload []byte) int {
				out.Reset()
				w.Reset(&out)
				_, _ = w.Write(payload)
				_ = w.Close()
				return out.Len()
			}
		})
		independent := func(options ...zstd.EOption) func() func([]byte) int {
			options = append(options, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(512<<10), zstd.WithEncoderConcurrency(1))
			e, err := zstd.NewWriter(nil, options...)
			require.NoError(b, err)
			var out []byte
			return func() func([]byte) int {
				return func(payload []byte) int {
					out = e.EncodeAll(payload, out[:0])
					return len(out)
				}
			}
		}
		measure("zstd", independent())
		measure("zstd_dictionary", independent(zstd.WithEncoderDictRaw(1, data.payloads[0])))
		for name, size := range map[string]int{"64K": 64 << 10, "1M": 1 << 20} {
			measure("zstd_window_"+name, func() func([]byte) int {
				var out bytes.Buffer
				e, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(size),
					zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
				require.NoError(b, err)
				return func(payload []byte) int {
					out.Reset()
					_, _ = e.Write(payload)
					_ = e.Flush()
					return out.Len()
				}
			})
		}
		measure("packer", func() func([]byte) int {
			p := otlpstream.NewPacker()
			return func(payload []byte) int {
				r := otlpstream.Request{Data: payload}
				p.Pack(&r)
				return len(r.Data)
			}
		})
	}
}
