// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/headerssetterextension"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func from(metadata map[string][]string) context.Context {
	return client.NewContext(context.Background(), client.Info{Metadata: client.NewMetadata(metadata)})
}

func TestMetadataKeysBecomeHeaders(t *testing.T) {
	d := newReceived(t, nil)
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Tenant.MetadataKeys = d.URL, []string{"X-Scope-OrgID", "x-team"}
	})
	for n, md := range []map[string][]string{
		{"x-scope-orgid": {"blue"}, "x-team": {"birds", "fish"}, "authorization": {"secret"}},
		{"x-scope-orgid": {"blue"}, "x-team": {"birds"}},
		{"x-team": {"birds"}},
		nil,
	} {
		require.NoError(t, e.ConsumeMetrics(from(md), gauges(10, n)))
	}
	eventually(t, func() bool { return d.samples() == 40 }, "all arrives")
	var seen []string
	for _, h := range d.headers() {
		require.Empty(t, h.Get("Authorization"))
		seen = append(seen, strings.Join(h.Values("X-Scope-Orgid"), ",")+" "+strings.Join(h.Values("X-Team"), ","))
	}
	slices.Sort(seen)
	require.Equal(t, []string{" ", " birds", "blue birds", "blue birds,fish"}, slices.Compact(seen), "each by itself")
}

// TestTenantsThatNoHeaderCanNameHoldUpNobody: any client may name a tenant, and a request that cannot be created would
// be retried for ever.
func TestTenantsThatNoHeaderCanNameHoldUpNobody(t *testing.T) {
	bad := []string{"a\nb", "a\r\nX-Scope-OrgID: other", "\x00", "bj\xf8rn", "\xff", strings.Repeat("a", maxTenantName+1)}
	md := pmetric.NewMetrics()
	for _, tenant := range append(bad, "good") {
		one := gauges(10, 0)
		one.ResourceMetrics().At(0).Resource().Attributes().PutStr("tenant", tenant)
		one.ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	}
	d := newReceived(t, nil)
	e, tel, logs := instrumented(t, d.URL, func(c *Config) {
		c.Tenant.Header, c.Tenant.FromResourceAttribute = "X-Scope-OrgID", "tenant"
	})
	require.Error(t, e.ConsumeMetrics(t.Context(), md))
	eventually(t, func() bool { return d.samples() == 10 }, "the others' data arrives")
	require.Equal(t, "good", d.headers()[0].Get("X-Scope-Orgid"))
	require.InDelta(t, 10*len(bad), value(t, tel, "otelcol_exporter_remotewrite_untranslated_points", "reason=tenant_name"), 0)
	require.Len(t, logs.FilterMessageSnippet("cannot send some points").All(), 1)

	e = start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Tenant.MetadataKeys = d.URL, []string{"x-tenant"}
	})
	for _, tenant := range bad {
		require.Error(t, e.ConsumeMetrics(from(map[string][]string{"x-tenant": {tenant}}), gauges(10, 1)))
	}
	require.NoError(t, e.ConsumeMetrics(from(map[string][]string{"x-tenant": {"good"}}), gauges(10, 1)))
	eventually(t, func() bool { return d.samples() == 20 }, "the others' data arrives")
}

// TestAStoredTenantThatCannotBeNamedIsDropped: if a queue on disk is from another configuration of tenants, its data is
// not sent as that of another tenant, nor retried for ever.
func TestAStoredTenantThatCannotBeNamedIsDropped(t *testing.T) {
	directory := t.TempDir()
	d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	e := create(t, func(c *Config) {
		byMetadata(d.URL)(c)
		c.Queue.Storage, c.ShutdownTimeout = &storageID, 1
	})
	require.NoError(t, e.Start(t.Context(), newFiles(t, directory, nil)))
	require.NoError(t, e.ConsumeMetrics(of("blue"), gauges(10, 0)))
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 1)))
	require.NoError(t, e.Shutdown(t.Context()))

	d.recover()
	e = start(t, newFiles(t, directory, nil), func(c *Config) {
		c.Endpoint, c.Queue.Storage, c.Tenant.MetadataKeys = d.URL, &storageID, []string{"x-tenant"}
	})
	// A request that was cut off by Shutdown may now be accepted by the server, so there may be more data without a
	// tenant.
	eventually(t, func() bool { return d.samples() >= 10 }, "what is nobody's arrives")
	eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "nothing is left")
	dropped := e.Snapshot().Destinations[0].Outcome.Dropped
	require.Len(t, dropped, 1)
	require.Contains(t, dropped, "tenant")
}

func TestAuthenticatorsThatAskForTheClientAreToldOrWarnedOf(t *testing.T) {
	for name, test := range map[string]struct {
		setter map[string]any
		keys   []string
		want   string
		warns  int
	}{
		"nobody asks":   {map[string]any{"key": "X-Team", "value": "birds"}, nil, "birds", 0},
		"in vain":       {map[string]any{"key": "X-Team", "from_context": "x-tenant", "default_value": "nobody"}, nil, "nobody", 1},
		"it is known":   {map[string]any{"key": "X-Team", "from_context": "x-tenant", "default_value": "nobody"}, []string{"X-Tenant"}, "blue", 0},
		"never known":   {map[string]any{"key": "X-Team", "from_attribute": "subject"}, []string{"X-Tenant"}, "", 1},
		"it is another": {map[string]any{"key": "X-Team", "from_context": "other", "default_value": "nobody"}, []string{"X-Tenant"}, "nobody", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newReceived(t, nil)
			host := files{}
			id := host.add(t, headerssetterextension.NewFactory(), map[string]any{"headers": []any{test.setter}})
			e, _, logs := instrumentedOn(t, host, d.URL, func(c *Config) {
				c.Tenant.MetadataKeys = test.keys
				by(t, c, id)
			})
			for n := range 3 {
				require.NoError(t, e.ConsumeMetrics(from(map[string][]string{"x-tenant": {"blue"}}), gauges(10, n)))
				eventually(t, func() bool { return d.samples() == 10*(n+1) }, "it arrives")
			}
			for _, h := range d.headers() {
				require.Equal(t, test.want, h.Get("X-Team"))
			}
			require.Len(t, logs.FilterMessageSnippet("The authenticator sets headers from the client").All(), test.warns)
		})
	}
}
