// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/headerssetterextension"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// roster records the tenant of each batch.
type roster struct {
	mu      sync.Mutex
	tenants map[string]string
	// barred is refused by the server's authenticator.
	barred string
}

func (r *roster) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tenants == nil {
		r.tenants = map[string]string{}
	}
	name := td.ResourceSpans().At(td.ResourceSpans().Len() - 1).ScopeSpans().At(0).Spans().At(0).Name()
	r.tenants[name] = strings.Join(client.FromContext(ctx).Metadata.Get("x-tenant"), ",")
	return nil
}

func (r *roster) seen() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.tenants)
}

// Authenticate accepts all tenants except the barred one.
func (r *roster) Authenticate(ctx context.Context, headers map[string][]string) (context.Context, error) {
	for name, values := range headers {
		if r.barred != "" && strings.EqualFold(name, "x-tenant") && values[0] == r.barred {
			return ctx, errors.New("barred")
		}
	}
	return ctx, nil
}

// Capabilities reports that data is not changed.
func (*roster) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (*roster) Start(context.Context, component.Host) error { return nil }

func (*roster) Shutdown(context.Context) error { return nil }

func (r *roster) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{guardID: r}
}

func (r *roster) listen(t *testing.T, f receiver.Factory, transport string) (addr string) {
	addr = freePort(t)
	protocol := map[string]string{transportGRPC: "grpc", transportWebSocket: "http"}[transport]
	cfg := f.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{protocol: map[string]any{
		"endpoint": addr, "include_metadata": true, "auth": map[string]any{"authenticator": "guard"},
	}}}).Unmarshal(cfg))
	made, err := f.CreateTraces(context.Background(), receivertest.NewNopSettings(f.Type()), cfg, r)
	require.NoError(t, err)
	require.NoError(t, made.Start(context.Background(), r))
	t.Cleanup(func() { require.NoError(t, made.Shutdown(context.Background())) })
	return addr
}

// extensions is a host.
type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

// setter returns the Collector's headers_setter, which sets headers from the metadata of a client.
func setter(t *testing.T, header map[string]any) (extension.Extension, component.ID) {
	f := headerssetterextension.NewFactory()
	cfg := f.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"headers": []any{header}}).Unmarshal(cfg))
	e, err := f.Create(context.Background(), extensiontest.NewNopSettings(f.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	return e, component.NewID(f.Type())
}

var byContext = map[string]any{"key": "x-tenant", "from_context": "x-tenant", "default_value": "nobody"}

func from(tenant string) context.Context {
	info := client.Info{}
	if tenant != "" {
		info.Metadata = client.NewMetadata(map[string][]string{"X-Tenant": {tenant}, "x-other": {"?"}})
	}
	return client.NewContext(context.Background(), info)
}

// exportAs queues batches of several tenants and returns the tenant of each.
func (e *testExporter) exportAs(tenants, batches int) map[string]string {
	want := map[string]string{}
	for i := range batches {
		for n := range tenants {
			tenant, name := fmt.Sprintf("tenant-%d", n), fmt.Sprintf("%d of tenant-%d", i, n)
			eventually(e.tb, func() bool { return e.ConsumeTraces(from(tenant), spans(name, 1)) == nil }, "there is room")
			want[name] = tenant
		}
	}
	return want
}

func TestEachTenantArrivesUnderItsOwnName(t *testing.T) {
	keys := func(cfg *otlpstreamexporter.Config) { cfg.MetadataKeys = []string{"X-Tenant"} }
	few := func(cfg *otlpstreamexporter.Config) { keys(cfg); cfg.MetadataCardinalityLimit = 2 }
	only := func(cfg *otlpstreamexporter.Config) { few(cfg); cfg.Mode = "stream" }
	unary := func(cfg *otlpstreamexporter.Config) { keys(cfg); cfg.Mode = "unary" }
	nothing := func(*otlpstreamexporter.Config) {}
	bothTransports(t, func(t *testing.T, transport string) {
		for name, c := range map[string]struct {
			configure func(*otlpstreamexporter.Config)
			header    map[string]any // of headers_setter; nil means none
			streams   bool
			nobody    string // the tenant of requests without one
		}{
			"headers_setter and keys":                 {keys, byContext, true, "nobody"},
			"headers_setter without keys":             {nothing, byContext, false, "nobody"},
			"keys without an authenticator":           {keys, nil, true, ""},
			"keys and another header's authenticator": {keys, map[string]any{"key": "x-color", "value": "blue"}, true, ""},
			"more tenants than places":                {few, nil, true, ""},
			"more tenants than places, only streams":  {only, nil, true, ""},
			"headers_setter, keys and unary requests": {unary, byContext, false, "nobody"},
			"keys and unary requests":                 {unary, nil, false, ""},
		} {
			t.Run(name, func(t *testing.T) {
				const tenants, batches = 5, 20
				to := &roster{}
				addr := to.listen(t, otlpstreamreceiver.NewFactory(), transport)
				host := extensions{}
				cfg := testConfig(transport, addr, c.configure)
				if c.header != nil {
					e, id := setter(t, c.header)
					host[id] = e
					cfg.Client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: id})
				}
				e := startExporter(t, exportertest.NewNopSettings(otlpstreamexporter.NewFactory().Type()), host, cfg)
				want := e.exportAs(tenants, batches)
				require.NoError(t, e.ConsumeTraces(from(""), spans("stray", 1)))
				want["stray"] = c.nobody
				require.Equal(t, int64(len(want)), e.settled().Acked)
				require.Equal(t, want, to.seen())
				require.Equal(t, c.streams, e.snapshot().Streaming)
			})
		}
	})
}

// The authentication data of a client is not available to a stream, and an authenticator that reads it must not panic.
func TestAnAuthenticatorMayAskForAttributes(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		to := &roster{}
		addr := to.listen(t, otlpstreamreceiver.NewFactory(), transport)
		setter, id := setter(t, map[string]any{"key": "x-tenant", "from_attribute": "tenant"})
		e := startExporter(t, exportertest.NewNopSettings(otlpstreamexporter.NewFactory().Type()), extensions{id: setter},
			testConfig(transport, addr, func(cfg *otlpstreamexporter.Config) {
				cfg.Client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: id})
			}))
		require.NoError(t, e.ConsumeTraces(client.NewContext(t.Context(), client.Info{Auth: attributes{"tenant": "blue"}}), spans("known", 1)))
		require.NoError(t, e.ConsumeTraces(t.Context(), spans("unknown", 1)))
		require.Equal(t, int64(2), e.settled().Acked)
		require.Equal(t, map[string]string{"known": "blue", "unknown": ""}, to.seen())
		require.False(t, e.snapshot().Streaming)
	})
}

type attributes map[string]string

func (a attributes) GetAttribute(name string) any { return a[name] }

func (attributes) GetAttributeNames() []string { return nil }

// A tenant that the server refuses does not delay the others, and gets an error.
func TestATenantThatIsRefusedKeepsNobodyWaiting(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		to := &roster{barred: "tenant-1"}
		addr := to.listen(t, otlpstreamreceiver.NewFactory(), transport)
		e := newTestExporter(t, transport, addr, func(cfg *otlpstreamexporter.Config) {
			cfg.MetadataKeys = []string{"x-tenant"}
			cfg.InFlight.Requests = 4 // fewer than the refused tenant has
		})
		const tenants, batches = 3, 10
		e.exportAs(tenants, batches)
		items := e.settled()
		require.Equal(t, int64((tenants-1)*batches), items.Acked)
		require.Equal(t, map[string]int64{"rejected": batches}, items.Dropped)
		require.Len(t, to.seen(), (tenants-1)*batches)
	})
}

// A server of standard OTLP without streams gets the tenant as well.
func TestTenantsReachAServerWithoutStreams(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		to := &roster{}
		addr := to.listen(t, otlpreceiver.NewFactory(), transport)
		e := newTestExporter(t, transport, addr, func(cfg *otlpstreamexporter.Config) { cfg.MetadataKeys = []string{"x-tenant"} })
		want := e.exportAs(3, 10)
		require.Equal(t, int64(len(want)), e.settled().Acked)
		require.Equal(t, want, to.seen())
		require.False(t, e.snapshot().Streaming)
	})
}

func TestTenantsSurviveAQueueOnDisk(t *testing.T) {
	keys := func(cfg *otlpstreamexporter.Config) { cfg.MetadataKeys = []string{"x-tenant"} }
	authenticated := func(*otlpstreamexporter.Config) {}
	bothTransports(t, func(t *testing.T, transport string) {
		for name, configure := range map[string]func(*otlpstreamexporter.Config){"keys": keys, "headers_setter": authenticated} {
			for _, modes := range [][2]string{{"auto", "auto"}, {"auto", "unary"}, {"unary", "auto"}} {
				t.Run(name+" "+modes[0]+" to "+modes[1], func(t *testing.T) {
					e, id := setter(t, byContext)
					host := extensions{id: e, diskID: &disk{data: map[string][]byte{}}}
					start := func(addr, mode string) *testExporter {
						return startExporter(t, exportertest.NewNopSettings(otlpstreamexporter.NewFactory().Type()), host,
							testConfig(transport, addr, configure, func(cfg *otlpstreamexporter.Config) {
								cfg.Mode, cfg.Queue.Get().Storage = mode, &diskID
								cfg.Shutdown.WaitForAcks = false
								cfg.Client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: id})
							}))
					}
					first := start(freePort(t), modes[0])
					want := first.exportAs(3, 10)
					require.NoError(t, first.Shutdown(context.Background()))
					require.Equal(t, int64(len(want)), first.items().Queued)

					to := &roster{}
					addr := to.listen(t, otlpstreamreceiver.NewFactory(), transport)
					second := start(addr, modes[1])
					eventually(t, func() bool { return second.items().Acked == int64(len(want)) }, "all is delivered")
					require.Equal(t, want, to.seen())
				})
			}
		}
	})
}

var diskID = component.MustNewID("disk")

// disk is a storage extension and its client.
type disk struct {
	mu   sync.Mutex
	data map[string][]byte
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
		}
	}
	return nil
}

// A stream per tenant is closed when it is idle: the places of a server are for clients with data.
func TestTenantsThatAreGoneLeaveNoStreams(t *testing.T) {
	to := &roster{}
	addr := to.listen(t, otlpstreamreceiver.NewFactory(), transportGRPC)
	e := newTestExporter(t, transportGRPC, addr, func(cfg *otlpstreamexporter.Config) {
		cfg.MetadataKeys = []string{"x-tenant"}
		cfg.Rebalance.Timeout = 50 * time.Millisecond
		cfg.AckTimeout = time.Second // twenty times the interval of checks of streams
	})
	want := e.exportAs(8, 2)
	require.Equal(t, int64(len(want)), e.settled().Acked)
	eventually(t, func() bool { s := e.snapshot(); return s.Open+s.Draining == 0 }, "idle streams are closed")
}
