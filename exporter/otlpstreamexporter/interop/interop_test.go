// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// sink collects the data of three pipelines.
type sink struct {
	consumertest.TracesSink

	metrics consumertest.MetricsSink
	logs    consumertest.LogsSink
}

// startReceiver runs an OTLP receiver and returns the address of its server for the transport.
func startReceiver(tb testing.TB, f receiver.Factory, transport string, to *sink, settings map[string]any) string {
	addr := freePort(tb)
	protocol := map[string]string{transportGRPC: "grpc", transportWebSocket: "http"}[transport]
	conf := map[string]any{"protocols": map[string]any{protocol: map[string]any{"endpoint": addr}}}
	maps.Copy(conf, settings)
	cfg := f.CreateDefaultConfig()
	require.NoError(tb, confmap.NewFromStringMap(conf).Unmarshal(cfg))
	set := receivertest.NewNopSettings(f.Type())
	ctx := context.Background()
	traces, err := f.CreateTraces(ctx, set, cfg, &to.TracesSink)
	require.NoError(tb, err)
	metrics, err := f.CreateMetrics(ctx, set, cfg, &to.metrics)
	require.NoError(tb, err)
	logs, err := f.CreateLogs(ctx, set, cfg, &to.logs)
	require.NoError(tb, err)
	for _, r := range []component.Component{traces, metrics, logs} {
		require.NoError(tb, r.Start(ctx, componenttest.NewNopHost()))
		tb.Cleanup(func() { require.NoError(tb, r.Shutdown(ctx)) })
	}
	return addr
}

func newTracesReceiver(tb testing.TB, f receiver.Factory, transport, addr string, to consumer.Traces) receiver.Traces {
	protocol := map[string]string{transportGRPC: "grpc", transportWebSocket: "http"}[transport]
	cfg := f.CreateDefaultConfig()
	require.NoError(tb, confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{protocol: map[string]any{"endpoint": addr}},
	}).Unmarshal(cfg))
	r, err := f.CreateTraces(context.Background(), receivertest.NewNopSettings(f.Type()), cfg, to)
	require.NoError(tb, err)
	return r
}

func freePort(tb testing.TB) string {
	l, err := net.Listen("tcp", "localhost:0")
	require.NoError(tb, err)
	defer l.Close()
	return l.Addr().String()
}

// exportAll sends n batches of each signal.
func exportAll(tb testing.TB, cfg *otlpstreamexporter.Config, n int) {
	f, ctx, host := otlpstreamexporter.NewFactory(), context.Background(), componenttest.NewNopHost()
	set := exportertest.NewNopSettings(f.Type())
	traces, err := f.CreateTraces(ctx, set, cfg)
	require.NoError(tb, err)
	metrics, err := f.CreateMetrics(ctx, set, cfg)
	require.NoError(tb, err)
	logs, err := f.CreateLogs(ctx, set, cfg)
	require.NoError(tb, err)
	for _, e := range []component.Component{traces, metrics, logs} {
		require.NoError(tb, e.Start(ctx, host))
	}
	for i := range n {
		require.NoError(tb, traces.ConsumeTraces(ctx, spans(batch(i), 2)))
		md, ld := pmetric.NewMetrics(), plog.NewLogs()
		md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(int64(i))
		ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr(batch(i))
		require.NoError(tb, metrics.ConsumeMetrics(ctx, md))
		require.NoError(tb, logs.ConsumeLogs(ctx, ld))
	}
	for _, e := range []component.Component{traces, metrics, logs} {
		require.NoError(tb, e.Shutdown(ctx))
	}
}

func (s *sink) requireAll(tb testing.TB, n int) {
	require.Equal(tb, 2*n, s.SpanCount())
	require.Equal(tb, n, s.metrics.DataPointCount())
	require.Equal(tb, n, s.logs.LogRecordCount())
}

func TestAllSignalsReachOurReceiver(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		for _, compression := range []string{"none", "gzip", "zstd"} {
			for _, mode := range []string{"stream", "unary"} {
				t.Run(compression+"/"+mode, func(t *testing.T) {
					var to sink
					addr := startReceiver(t, otlpstreamreceiver.NewFactory(), transport, &to, nil)
					exportAll(t, testConfig(transport, addr, func(cfg *otlpstreamexporter.Config) {
						cfg.Mode = mode
						cfg.Streams = 3
						require.NoError(t, cfg.Client.Compression.UnmarshalText([]byte(compression)))
						if transport == transportGRPC {
							cfg.Connections = 2
						}
					}), 50)
					to.requireAll(t, 50)
				})
			}
		}
	})
}

func TestOurExporterTalksToTheCollectorsReceiver(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		for _, mode := range []string{"auto", "unary"} {
			t.Run(mode, func(t *testing.T) {
				var to sink
				addr := startReceiver(t, otlpreceiver.NewFactory(), transport, &to, nil)
				exportAll(t, testConfig(transport, addr, func(cfg *otlpstreamexporter.Config) { cfg.Mode = mode }), 50)
				to.requireAll(t, 50)
			})
		}
	})
}

func TestOurReceiverEndsStreamsWithoutResends(t *testing.T) {
	t.Parallel()
	bothTransports(t, func(t *testing.T, transport string) {
		var to sink
		addr := startReceiver(t, otlpstreamreceiver.NewFactory(), transport, &to, map[string]any{
			"streams": map[string]any{"max_requests": 7},
		})
		e := newTestExporter(t, transport, addr, func(cfg *otlpstreamexporter.Config) { cfg.Streams = 2 })
		e.export(0, 500)
		require.Equal(t, int64(500), e.settled().Acked)
		require.Equal(t, 500, to.SpanCount(), "nothing was lost, nothing came twice")
	})
}

func TestRollingRestartOfOurReceiverLosesNothing(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		ctx, addr := context.Background(), freePort(t)
		var to consumertest.TracesSink
		start := func() receiver.Traces {
			r := newTracesReceiver(t, otlpstreamreceiver.NewFactory(), transport, addr, &to)
			eventually(t, func() bool { return r.Start(ctx, componenttest.NewNopHost()) == nil }, "the port is free")
			return r
		}
		r := start()
		e := newTestExporter(t, transport, addr)
		for i := range 5 {
			e.export(100*i, 100)
			eventually(t, func() bool { return e.items().Acked > int64(100*i+20) }, "it moves on")
			require.NoError(t, r.Shutdown(ctx))
			r = start()
		}
		require.Equal(t, int64(500), e.settled().Acked)
		require.GreaterOrEqual(t, to.SpanCount(), 500)
		require.NoError(t, e.Shutdown(ctx))
		require.NoError(t, r.Shutdown(ctx))
	})
}

func TestOverloadOfOurReceiverLosesNothing(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		var to sink
		addr := startReceiver(t, otlpstreamreceiver.NewFactory(), transport, &to, map[string]any{
			"in_flight": map[string]any{"bytes": 1000},
		})
		e := newTestExporter(t, transport, addr, func(cfg *otlpstreamexporter.Config) { cfg.InFlight.Requests = 64 })
		for i := range 100 {
			require.NoError(t, e.ConsumeTraces(context.Background(), spans(batch(i), 10)))
		}
		require.Equal(t, int64(1000), e.settled().Acked)
		require.Equal(t, 1000, to.SpanCount())
	})
}

// reference returns the schema as printed in the specification, with today's ResourceSpans as bytes.
func reference(t *testing.T) (request, response func() *dynamicpb.Message) {
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type, label descriptorpb.FieldDescriptorProto_Label) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: &label}
	}
	const (
		number   = descriptorpb.FieldDescriptorProto_TYPE_UINT64
		one      = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		repeated = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	)
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("reference.proto"), Package: proto.String("otlp"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("TraceExportRequest"), Field: []*descriptorpb.FieldDescriptorProto{
				field("id", 1, number, one), field("resourceSpans", 2, descriptorpb.FieldDescriptorProto_TYPE_BYTES, repeated),
			}},
			{Name: proto.String("ExportResponse"), Field: []*descriptorpb.FieldDescriptorProto{
				field("id", 1, number, one), field("result_code", 2, number, one),
			}},
		},
	}, nil)
	require.NoError(t, err)
	return func() *dynamicpb.Message { return dynamicpb.NewMessage(file.Messages().Get(0)) },
		func() *dynamicpb.Message { return dynamicpb.NewMessage(file.Messages().Get(1)) }
}

func get(m *dynamicpb.Message, name string) uint64 {
	return m.Get(m.Descriptor().Fields().ByTextName(name)).Uint()
}

func TestAServerOfTheSpecificationAloneIsServed(t *testing.T) {
	request, response := reference(t)
	results := make(chan uint64, 1000)
	g := grpc.NewServer()
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: otlpstream.StreamService, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: "ExportTraces", ClientStreams: true, ServerStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error {
				for n := 0; ; n++ {
					in, out := request(), response()
					if err := stream.RecvMsg(in); err != nil {
						if errors.Is(err, io.EOF) {
							return nil
						}
						return err
					}
					id := get(in, "id")
					out.Set(out.Descriptor().Fields().ByNumber(1), in.Get(in.Descriptor().Fields().ByNumber(1)))
					if err := stream.SendMsg(out); err != nil {
						return err
					}
					results <- id
					if n == 9 {
						// The reference ends streams like this: data it has read is acknowledged, and data in transit
						// is lost.
						return otlpstream.Busy("rebalance", 0).Err()
					}
				}
			},
		}},
	}, nil)
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	go func() { _ = g.Serve(listener) }()
	defer g.Stop()
	e := newTestExporter(t, transportGRPC, listener.Addr().String())
	e.export(0, 100)
	require.Equal(t, int64(100), e.settled().Acked)
	require.NoError(t, e.Shutdown(context.Background()))
	ids := map[uint64]bool{}
	for len(results) > 0 {
		ids[<-results] = true
	}
	require.Len(t, ids, 100)
}

func TestAClientOfTheSpecificationAloneIsServedByOurReceiver(t *testing.T) {
	request, response := reference(t)
	var to sink
	addr := startReceiver(t, otlpstreamreceiver.NewFactory(), transportGRPC, &to, nil)
	cc, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer cc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, service := range []string{otlpstream.StreamService, "experimental.collector.trace.v1.StreamExporter"} {
		stream, err := cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/"+service+"/ExportTraces")
		require.NoError(t, err)
		const n = 20
		for id := uint64(1); id <= n; id++ {
			in := request()
			require.NoError(t, proto.Unmarshal(testRequest(t, batch(int(id))), in))
			in.Set(in.Descriptor().Fields().ByNumber(1), protoreflect.ValueOfUint64(id))
			require.NoError(t, stream.SendMsg(in))
		}
		acked := map[uint64]bool{}
		for len(acked) < n {
			out := response()
			require.NoError(t, stream.RecvMsg(out))
			require.Zero(t, get(out, "result_code"))
			acked[get(out, "id")] = true
		}
		require.NoError(t, stream.CloseSend())
		require.ErrorContains(t, stream.RecvMsg(response()), "EOF")
	}
	require.Equal(t, 40, to.SpanCount())
}

func TestThousandsOfBatchesOverSeveralConnections(t *testing.T) {
	var to sink
	addr := startReceiver(t, otlpstreamreceiver.NewFactory(), transportGRPC, &to, nil)
	e := newTestExporter(t, transportGRPC, addr, func(cfg *otlpstreamexporter.Config) {
		cfg.Streams, cfg.Connections = 4, 2
		cfg.Rebalance.Requests = 50
		cfg.Rebalance.Timeout = 20 * time.Millisecond
		cfg.Queue.Get().BlockOnOverflow = true
	})
	e.export(0, 3000)
	require.Equal(t, int64(3000), e.settled().Acked)
	require.Equal(t, 3000, to.SpanCount())
}

func TestPacksThatDoNotUnpackEndTheirStreamAndNothingElse(t *testing.T) {
	var to sink
	addr := startReceiver(t, otlpstreamreceiver.NewFactory(), transportGRPC, &to, nil)
	cc, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer cc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	good := func() *otlpstream.Request {
		r := &otlpstream.Request{ID: 1, Items: 1, Data: testRequest(t, "good")}
		otlpstream.NewPacker().Pack(r)
		return r
	}
	for name, spoil := range map[string]func(*otlpstream.Request){
		"size":  func(r *otlpstream.Request) { r.Packed++ },
		"bomb":  func(r *otlpstream.Request) { r.Packed = 1 << 40 },
		"noise": func(r *otlpstream.Request) { r.Data = []byte("noise") },
		"again": func(*otlpstream.Request) {}, // another frame where the first one continues
	} {
		stream, err := cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, otlpstream.Traces.StreamMethod(),
			grpc.ForceCodecV2(otlpstream.Codec()))
		require.NoError(t, err)
		require.NoError(t, stream.SendMsg(good()))
		var response otlpstream.Response
		require.NoError(t, stream.RecvMsg(&response))
		require.Equal(t, otlpstream.Response{ID: 1}, otlpstream.Response{ID: response.ID, Code: response.Code})
		bad := good()
		bad.ID = 2
		spoil(bad)
		require.NoError(t, stream.SendMsg(bad))
		require.Equal(t, codes.InvalidArgument, status.Code(stream.RecvMsg(&response)), name)
	}
	require.Equal(t, 4, to.SpanCount(), "what came before is there, and nothing else")
}
