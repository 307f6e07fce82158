// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // the client's compression

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func TestInspection(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		r := start(t, &pipeline{})
		c := dial(t, r, 0)
		c.export(1, numbered(1))
		c.answer()
		source := r.inspection()
		require.Equal(t, component.KindReceiver, source.Kind)
		in := source.Intake()
		require.Equal(t, 1, in.Streams)
		require.Equal(t, r.cfg.Streams.Max, in.MaxStreams)
		require.Equal(t, int64(r.cfg.InFlight.Bytes), in.MaxInFlight)
		require.NotEmpty(t, in.Addresses)
		require.Len(t, in.Requests, 1)
		for _, n := range in.Requests {
			require.Equal(t, int64(1), n)
		}
	})
}

// choosy refuses what is named like that.
func choosy(_ context.Context, name string) error {
	switch name {
	case "bad":
		return consumererror.NewPermanent(errors.New("bad"))
	case "busy":
		return errors.New("busy")
	}
	return nil
}

func TestTheFlowHasWhatBecameOfEachSignal(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		r := start(t, &pipeline{do: choosy})
		flow := r.inspection().Flow
		require.Equal(t, map[string]inspect.SignalFlow{"traces": {}, "metrics": {}, "logs": {}}, flow().Signals)
		c := dial(t, r, 0)
		for i, name := range []string{"good", "bad", "busy", "good"} {
			c.export(uint64(i+1), name)
			c.answer()
		}
		require.NoError(t, c.send(&otlpstream.Request{ID: 5, Data: []byte{0x12, 2, 0xff, 0xff}}))
		c.answer()

		md := pmetric.NewMetrics()
		gauge := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		gauge.SetName("good")
		points := gauge.SetEmptyGauge().DataPoints()
		points.AppendEmpty()
		points.AppendEmpty()
		_, err := pmetricotlp.NewGRPCClient(grpcClient(t, r)).Export(testContext(t), pmetricotlp.NewExportRequestFromMetrics(md))
		require.NoError(t, err)

		ld := plog.NewLogs()
		ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("busy")
		data, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
		require.NoError(t, err)
		code, _, _ := post(t, r, "/v1/logs", "application/x-protobuf", data)
		require.Equal(t, http.StatusServiceUnavailable, code)

		f := flow()
		require.Equal(t, map[string]inspect.SignalFlow{"traces": {In: 4, Out: 2}, "metrics": {In: 2, Out: 2}, "logs": {In: 1}}, f.Signals)
		require.Equal(t, int64(7), f.In)
		require.Equal(t, int64(4), f.Out)
		require.Equal(t, map[string]int64{reasonPipeline: 1}, f.Dropped, "what is busy comes again")
		require.Equal(t, int64(2), f.Refused)
		require.Equal(t, map[string]int64{"400": 1, "500": 1, "503": 2}, f.Failed)
		last := r.inspection().Intake().Last
		require.False(t, last.At.IsZero())
		require.Equal(t, "answered 503 to 127.0.0.1: busy", last.Text)
	})
}

func TestTheFlowTellsOverload(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		gate := make(chan struct{})
		release := sync.OnceFunc(func() { close(gate) })
		r := start(t, &pipeline{do: func(context.Context, string) error { <-gate; return nil }}, func(cfg *Config) { cfg.InFlight.Bytes = 100 })
		t.Cleanup(release)
		c := dial(t, r, otlpstream.CapDelay)
		c.export(1, "slow")
		eventually(t, func() bool { return r.Snapshot().InFlightBytes > 0 }, "it is in")
		c.export(2, strings.Repeat("x", 100))
		c.answer()
		f := r.inspection().Flow()
		require.Equal(t, int64(1), f.Refused)
		require.Equal(t, map[string]int64{"503": 1}, f.Failed)
		require.Empty(t, f.Dropped)
		release()
		c.answer()
	})
}

// TestWireBytesAreCountedBeforeDecompression sends the same data over each transport, compressed.
func TestWireBytesAreCountedBeforeDecompression(t *testing.T) {
	name := strings.Repeat("long", 10_000)
	size := int64(len(payload(t, name)))
	require.NotNil(t, encoding.GetCompressor("gzip"))
	for way, send := range map[transport]func(*testing.T, *sharedReceiver){
		transportStream: func(t *testing.T, r *sharedReceiver) {
			stream, err := grpcClient(t, r).NewStream(testContext(t), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
				otlpstream.Traces.StreamMethod(), grpc.ForceCodecV2(otlpstream.Codec()), grpc.UseCompressor("gzip"))
			require.NoError(t, err)
			require.NoError(t, stream.SendMsg(&otlpstream.Request{ID: 1, Data: payload(t, name)}))
			require.NoError(t, stream.RecvMsg(&otlpstream.Response{}))
		},
		transportWebSocket: func(t *testing.T, r *sharedReceiver) {
			c := dialWebSocket(t, r, 0)
			c.export(1, name)
			c.answer()
		},
		transportHTTP: func(t *testing.T, r *sharedReceiver) {
			data := payload(t, name)
			otlp, err := otlpstream.InOTLPForm(data)
			require.NoError(t, err)
			var body bytes.Buffer
			w := gzip.NewWriter(&body)
			_, err = w.Write(otlp)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			req, err := http.NewRequestWithContext(testContext(t), http.MethodPost, "http://"+r.httpAddr+"/v1/traces", &body)
			require.NoError(t, err)
			req.Header.Set("Content-Type", "application/x-protobuf")
			req.Header.Set("Content-Encoding", "gzip")
			req.Close = true
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusOK, resp.StatusCode)
		},
	} {
		t.Run(string(way), func(t *testing.T) {
			r := start(t, &pipeline{})
			send(t, r)
			f := r.inspection().Flow()
			require.Equal(t, size, f.RawBytes)
			require.Positive(t, f.WireBytes)
			require.Less(t, f.WireBytes, size/10)
		})
	}
}
