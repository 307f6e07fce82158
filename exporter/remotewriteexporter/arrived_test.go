// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
)

// The metrics of an accepted batch are returned once they are encoded, however tenants are distinguished; those of a
// refused one are not.
func TestBatchesAreReturned(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no tenants":           func(*Config) {},
		"tenants of callers":   func(c *Config) { c.Tenant.Header, c.Tenant.FromMetadata = "X-Scope-OrgID", "tenant" },
		"tenants of resources": func(c *Config) { c.Tenant.Header, c.Tenant.FromResourceAttribute = "X-Scope-OrgID", "service.name" },
	} {
		t.Run(name, func(t *testing.T) {
			d := newReceived(t, nil)
			e := create(t, func(c *Config) {
				c.Endpoint = d.URL
				change(c)
			})
			require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
			var loan handback.Loan
			back, md := 0, gauges(3, 1)
			batch := func() pmetric.Metrics {
				require.True(t, loan.Send(md, 3, func() { back++ }))
				into := gauges(2, 1)
				md.ResourceMetrics().MoveAndAppendTo(into.ResourceMetrics())
				return into
			}
			for n := range 3 {
				require.NoError(t, e.ConsumeMetrics(t.Context(), batch()))
				require.Equal(t, n+1, back)
				require.Equal(t, 3, md.DataPointCount())
			}
			require.NoError(t, e.Shutdown(t.Context()))
			refused := batch()
			require.Error(t, e.ConsumeMetrics(t.Context(), refused))
			require.Equal(t, 3, back)
			require.Zero(t, md.DataPointCount())
			require.Empty(t, handback.Arrive(refused), "nobody waits for it")
		})
	}
}
