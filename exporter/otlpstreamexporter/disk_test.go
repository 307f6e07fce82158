// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

// disk is a storage extension, its client and its host.
type disk struct {
	mu   sync.Mutex
	data map[string][]byte
}

var diskID = component.MustNewID("disk")

func (d *disk) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{diskID: d}
}

func (*disk) Start(context.Context, component.Host) error { return nil }

func (*disk) Shutdown(context.Context) error { return nil }

func (*disk) Close(context.Context) error { return nil }

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (d *disk) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := d.Batch(ctx, op)
	return op.Value, err
}

func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}

func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

func (d *disk) Batch(_ context.Context, ops ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value = d.data[op.Key]
		case storage.Set:
			d.data[op.Key] = op.Value
		case storage.Delete:
			delete(d.data, op.Key)
		default:
			return errors.New("unknown operation")
		}
	}
	return nil
}

func (d *disk) crash() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &disk{data: maps.Clone(d.data)}
}

// disks is a storage extension that gives each client a disk of its own.
type disks struct {
	disk

	disks map[string]*disk
}

func newDisks() *disks { return &disks{disks: map[string]*disk{}} }

func (d *disks) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{diskID: d}
}

func (d *disks) GetClient(_ context.Context, _ component.Kind, id component.ID, signal string) (storage.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := id.String() + signal
	if d.disks[key] == nil {
		d.disks[key] = &disk{data: map[string][]byte{}}
	}
	return d.disks[key], nil
}

func onDisk(cfg *Config) { cfg.Queue.Get().Storage = &diskID }

func TestAQueueOnDiskKeepsWhatIsNotAcknowledged(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		const n, window = 50, 5
		silent := run(t, &testServer{stream: mute}, kind)
		d := &disk{data: map[string][]byte{}}
		set := exportertest.NewNopSettings(metadata.Type)
		configure := func(addr string) *Config {
			return testConfig(kind, addr, onDisk, func(cfg *Config) { cfg.InFlight.Requests = window })
		}
		cfg := configure(silent.addr)
		impatient(cfg)
		first := startExporter(t, set, d, cfg)
		first.export(0, n)
		eventually(t, func() bool { return len(silent.seen()) == window }, "the window is full")
		crashed := d.crash()
		require.NoError(t, first.Shutdown(context.Background()))
		b := first.balanced()
		require.Equal(t, int64(n), b.Queued, "all of it stays on disk")
		require.Zero(t, b.Dropped)

		for name, left := range map[string]*disk{"after a shutdown": d, "after a crash": crashed} {
			s := run(t, &testServer{stream: echo}, kind)
			second := startExporter(t, set, left, configure(s.addr))
			eventually(t, func() bool { return second.balanced().Acked == n }, name)
			require.Len(t, s.names(), n, name)
			require.Equal(t, int64(n), second.settled().Received, name)
			require.NoError(t, second.Shutdown(context.Background()))

			third := startExporter(t, set, left, configure(s.addr))
			third.export(n, 1)
			require.Equal(t, int64(1), third.settled().Received, "what was acknowledged has left the disk")
		}
	})
}

func TestAQueueOnDiskSurvivesAChangeOfMode(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		const n = 10
		for _, modes := range [][2]string{{server.Unary, server.Auto}, {server.Unary, server.Stream}, {server.Stream, server.Unary}} {
			t.Run(modes[0]+" to "+modes[1], func(t *testing.T) {
				in := func(mode string) func(*Config) { return func(cfg *Config) { cfg.Mode = mode } }
				d, set := &disk{data: map[string][]byte{}}, exportertest.NewNopSettings(metadata.Type)
				first := startExporter(t, set, d, testConfig(kind, freePort(t), onDisk, impatient, in(modes[0])))
				first.export(0, n)
				require.NoError(t, first.Shutdown(t.Context()))
				require.Equal(t, int64(n), first.balanced().Queued)

				s := run(t, &testServer{stream: echo}, kind)
				second := startExporter(t, set, d, testConfig(kind, s.addr, onDisk, in(modes[1])))
				eventually(t, func() bool { return second.balanced().Acked == n }, "all is delivered")
				require.Len(t, s.names(), n, "with what is in it")
				require.NotContains(t, s.names(), "")
			})
		}
	})
}

func startOnDisk(t *testing.T, addr string, d *disks) *testExporter {
	return startExporter(t, exportertest.NewNopSettings(metadata.Type), d, testConfig(transport.GRPC, addr, onDisk, impatient))
}

// A queue on disk is identified by the name of its destination. Its data is delivered even if that is no longer
// configured.
func TestAQueueOnDiskSurvivesAChangeOfDestinations(t *testing.T) {
	const n = 10
	for name, change := range map[string]struct {
		from, to func(addr string) func(*Config)
	}{
		"one, and then several": {nil, func(addr string) func(*Config) { return several(addr, addr) }},
		"several, and then one": {func(addr string) func(*Config) { return several(addr) }, nil},
		"another name": {
			func(addr string) func(*Config) { return several(addr) },
			func(addr string) func(*Config) {
				return func(cfg *Config) { several(addr)(cfg); cfg.Endpoints[0].Name = "other" }
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, set := newDisks(), exportertest.NewNopSettings(metadata.Type)
			begin := func(addr string, with func(string) func(*Config), more ...func(*Config)) *testExporter {
				changes := []func(*Config){onDisk}
				if with != nil {
					changes = append(changes, with(addr))
				}
				return startExporter(t, set, d, testConfig(transport.GRPC, addr, append(changes, more...)...))
			}
			first := begin(freePort(t), change.from, impatient)
			first.export(0, n)
			require.NoError(t, first.Shutdown(t.Context()))
			require.Equal(t, int64(n), first.balanced().Queued)

			s := run(t, &testServer{stream: echo}, transport.GRPC)
			second := begin(s.addr, change.to)
			eventually(t, func() bool { return second.balanced().Acked == n }, "all is delivered")
			second.export(n, 1)
			require.NoError(t, second.Shutdown(t.Context()))
			require.Len(t, second.dest.adopted, 1)
			for i := range n + 1 {
				require.Contains(t, s.names(), batch(i))
			}

			third := begin(s.addr, change.to)
			require.Empty(t, third.dest.adopted, "there is nothing left")
			require.NoError(t, third.Shutdown(t.Context()))
		})
	}
}
