// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"

	exportermetadata "github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// watcher is an extension, and its host.
type watcher struct {
	component.StartFunc
	component.ShutdownFunc

	source       inspect.Source
	unregistered bool
}

func (w *watcher) RegisterInspection(s inspect.Source) func() {
	w.source = s
	return func() { w.unregistered = true }
}

func (w *watcher) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("watcher"): w}
}

func TestInspection(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: echo}, kind)
		w := &watcher{}
		e := startExporter(t, exportertest.NewNopSettings(exportermetadata.Type), w, testConfig(kind, s.addr, func(c *Config) {
			c.Queue.Get().Sizer, c.Queue.Get().QueueSize = exporterhelper.RequestSizerTypeItems, 50
		}))
		e.export(0, 3)
		eventually(t, func() bool { return w.source.Flow().Out == 3 && w.source.Flow().WireBytes > 0 }, "all is acknowledged")
		require.Equal(t, "traces", w.source.Signal)
		f := w.source.Flow()
		require.Equal(t, int64(3), f.In)
		require.Empty(t, f.Dropped)
		require.Equal(t, int64(3*len(testRequest(t, batch(0)))), f.RawBytes)
		d := w.source.Delivery().Destinations[0]
		require.Equal(t, "otlp stream", d.Protocol)
		require.Equal(t, kind, d.Transport)
		require.Equal(t, "zstd", d.Compression)
		require.Equal(t, s.addr, d.Name)
		require.Equal(t, int64(3), d.Sent)
		require.Equal(t, f.RawBytes, d.RawBytes)
		require.GreaterOrEqual(t, d.WireBytes, f.WireBytes)
		require.Equal(t, inspect.Queue{Capacity: 50, Unit: "items"}, d.Queue)
		require.Positive(t, d.AckP50)
		require.Equal(t, []inspect.Stream{{State: "open"}}, d.Streams)
		require.Empty(t, d.LastError)
		require.True(t, d.ThrottledUntil.IsZero())
		require.NoError(t, e.Shutdown(context.Background()))
		require.True(t, w.unregistered)
	})
}

// If nothing arrives, the snapshot shows what is wrong, since when, and that data is refused because of it.
func TestInspectionOfADestinationThatIsAway(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		const room = 5
		e := newTestExporter(t, kind, freePort(t), impatient, func(cfg *Config) { cfg.Queue.Get().QueueSize = room })
		e.export(0, room)
		require.Error(t, e.ConsumeTraces(t.Context(), spans("over", 1)))
		require.Equal(t, int64(1), e.flow().Refused)
		eventually(t, func() bool { return e.delivery().Destinations[0].LastError != "" }, "it is known to be away")
		d := e.delivery().Destinations[0]
		require.Contains(t, d.LastError, "connection refused")
		require.Equal(t, int64(room), d.Waiting)
		require.Positive(t, d.Queue.Age)
	})
}

func TestWireBytesAreThoseAfterCompression(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		for _, mode := range []string{server.Stream, server.Unary} {
			t.Run(mode, func(t *testing.T) {
				s := run(t, &testServer{stream: echo}, kind)
				e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Mode = mode })
				name := strings.Repeat("long", 10_000)
				require.NoError(t, e.ConsumeTraces(t.Context(), spans(name, 1)))
				e.settled()
				require.NoError(t, e.Shutdown(t.Context()))
				f := e.flow()
				require.Equal(t, int64(len(testRequest(t, name))), f.RawBytes)
				require.Positive(t, f.WireBytes)
				require.Less(t, f.WireBytes, f.RawBytes/10)
			})
		}
	})
}
