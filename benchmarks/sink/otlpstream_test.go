// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// Requests come from the exporter itself, to check that both read the specification in the same way.
func TestStreamsOfTheExporterAreAccountedFor(t *testing.T) {
	s := open(t)
	factory := otlpstreamexporter.NewFactory()
	cfg := factory.CreateDefaultConfig().(*otlpstreamexporter.Config)
	cfg.Client.Endpoint, cfg.Client.TLS.Insecure = s.GRPCAddress(), true
	cfg.Mode, cfg.Streams = "stream", 1
	e, err := factory.CreateMetrics(t.Context(), exporter.Settings{
		ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	req := pmetricotlp.NewExportRequest()
	if err := req.UnmarshalProto(otlpMessage(t)); err != nil {
		t.Fatal(err)
	}
	const times = 5
	for range times {
		if err := e.ConsumeMetrics(t.Context(), req.Metrics()); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Shutdown(t.Context()); err != nil { // waits for acknowledgements
		t.Fatal(err)
	}
	got := s.Stats()
	if got.Requests != times || got.Samples != 2*times || got.Stale != times || got.Failed != 0 || got.Wire == 0 {
		t.Errorf("stats %+v after %d requests", got, times)
	}
}

func TestPackedRequestsAreOneFrame(t *testing.T) {
	payload := otlpMessage(t)
	if err := otlpstream.ToStream(payload); err != nil {
		t.Fatal(err)
	}
	var u unpacker
	defer u.close()
	packer := otlpstream.NewPacker()
	for id := uint64(1); id <= 3; id++ {
		r := otlpstream.Request{ID: id, Items: 7, Data: payload}
		if id != 2 { // unpacked requests may come between
			packer.Pack(&r)
		}
		message := make([]byte, r.SizeProto())
		r.MarshalProto(message)
		got, e, err := u.request(message)
		if err != nil || got != id || e.stats.Samples != 2 || e.stats.Raw < int64(len(payload)) || e.stats.Raw > int64(len(payload))+20 {
			t.Fatalf("request %d of %d bytes: read as %d, %+v, %v", id, len(payload), got, e, err)
		}
	}
}

func TestRequestsThatDoNotUnpackAreRefused(t *testing.T) {
	packed := func() otlpstream.Request {
		r := otlpstream.Request{ID: 1, Data: []byte("what it holds")}
		otlpstream.NewPacker().Pack(&r)
		return r
	}
	for name, c := range map[string]struct {
		change func(*otlpstream.Request)
		want   error
	}{
		"no number": {func(r *otlpstream.Request) { r.ID = 0 }, errNumber},
		"too short": {func(r *otlpstream.Request) { r.Packed++ }, errPacked},
		"too long":  {func(r *otlpstream.Request) { r.Data = append(r.Data, r.Data...) }, errPacked},
		"too large": {func(r *otlpstream.Request) { r.Packed = streamMessage + 1 }, errPacked},
		"no zstd":   {func(r *otlpstream.Request) { r.Data = []byte("plain") }, errPacked},
	} {
		t.Run(name, func(t *testing.T) {
			r := packed()
			c.change(&r)
			message := make([]byte, r.SizeProto())
			r.MarshalProto(message)
			var u unpacker
			defer u.close()
			if _, _, err := u.request(message); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
