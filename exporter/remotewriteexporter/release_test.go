// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback/handbacktest"
)

// Metrics are not changed, and may be overwritten as soon as they have been consumed: the same arrives, with any
// configuration.
func TestMetricsAreReleased(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"as it is":           func(*Config) {},
		"tenants, resources": func(c *Config) { c.Tenant.Header, c.Tenant.FromResourceAttribute = "X-Scope-OrgID", "tenant" },
		"tenants, metadata":  func(c *Config) { c.Tenant.Header, c.Tenant.FromMetadata = "X-Scope-OrgID", "x-tenant" },
		"too many tenants": func(c *Config) {
			c.Tenant.Header, c.Tenant.FromResourceAttribute, c.Tenant.Max = "X-Scope-OrgID", "tenant", 1
		},
		"custom buckets":      func(c *Config) { c.Points.ConvertExplicitHistogramsToNHCB = true },
		"without a cache":     func(c *Config) { c.Cache.MaxSeries = 1 },
		"without target_info": func(c *Config) { c.Labels.TargetInfo.Enabled = false },
		"delta":               func(c *Config) { c.Points.Delta.ToCumulative = true },
		"promoted":            func(c *Config) { c.Labels.PromoteResourceAttributes = []string{"tenant", "service.name"} },
		"external labels":     func(c *Config) { c.Names.ExternalLabels = map[string]string{"region": "north"} },
		"metadata, exemplars": func(c *Config) { c.Points.SendMetadata, c.Points.Exemplars = true, true },
		"few in a request":    func(c *Config) { c.Batch.MaxSamples = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"X-Tenant": {"one"}})})
			deliver := func(overwritten bool) map[string][]point {
				d := newReceived(t, nil)
				e := create(t, func(c *Config) {
					c.Endpoint = d.URL
					change(c)
				})
				require.NoError(t, e.ReleasesMetrics())
				require.False(t, e.Capabilities().MutatesData)
				require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
				tooMany := e.cfg.Tenant.Max == 1
				for n := range 5 {
					consume := func(md pmetric.Metrics) error {
						if err := e.ConsumeMetrics(ctx, md); err != nil && !tooMany {
							return err
						}
						return nil
					}
					if md := handbacktest.Metrics(n); overwritten {
						handbacktest.Consume(t, consume, md)
					} else {
						require.NoError(t, consume(md))
					}
				}
				require.NoError(t, e.Shutdown(context.Background()))
				d.mu.Lock()
				defer d.mu.Unlock()
				return maps.Clone(d.series)
			}
			want := deliver(false)
			require.NotEmpty(t, want)
			require.Equal(t, want, deliver(true))
		})
	}
}
