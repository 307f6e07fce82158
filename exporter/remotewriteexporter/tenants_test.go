// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Many tenants in one batch cost so much for each of them, not for each pair.
func TestManyTenantsTakeTheirTime(t *testing.T) {
	in := create(t, func(c *Config) {
		c.Endpoint, c.Tenant.Header, c.Tenant.FromResourceAttribute = "http://127.0.0.1:1", "X-Scope-OrgID", "tenant"
	}).intake
	took := func(times, tenants int) time.Duration {
		var all []pmetric.Metrics
		for range times {
			md := pmetric.NewMetrics()
			for i := range tenants {
				md.ResourceMetrics().AppendEmpty().Resource().Attributes().PutStr("tenant", fmt.Sprint(i))
			}
			all = append(all, md)
		}
		began := time.Now()
		for _, md := range all {
			_ = in.addByResource(md) // there are too many of them, which it may say
			require.Zero(t, md.ResourceMetrics().Len())
		}
		return time.Since(began)
	}
	few, many := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range 5 { // on a busy machine the least of several says what it takes
		few, many = min(few, took(16, 500)), min(many, took(1, 16*500))
		t.Logf("%v for a few at a time, %v for all", few, many)
		if many < 4*few {
			return
		}
	}
	require.Less(t, many, 4*few)
}
