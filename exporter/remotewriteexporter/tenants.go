// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"slices"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// noTenant is whose data it is where there are no tenants.
var noTenant = []string{""}

// tenantsOf are those whose data is in md: who brings it waits for room for them, and for no others.
func (in *intake) tenantsOf(ctx context.Context, md pmetric.Metrics) []string {
	t := &in.cfg.Tenant
	switch {
	case t.FromMetadata != "":
		return []string{in.tenantOfCaller(ctx)}
	case t.FromResourceAttribute != "":
		var tenants []string
		for _, rm := range md.ResourceMetrics().All() {
			if tenant := in.tenantOf(rm.Resource()); len(tenants) == 0 || tenants[len(tenants)-1] != tenant {
				tenants = append(tenants, tenant)
			}
		}
		slices.Sort(tenants)
		return slices.Compact(tenants)
	}
	return noTenant
}

// tenantOfCaller is what the client's metadata names.
func (in *intake) tenantOfCaller(ctx context.Context) string {
	t := &in.cfg.Tenant
	if values := client.FromContext(ctx).Metadata.Get(t.FromMetadata); len(values) > 0 && values[0] != "" {
		return values[0]
	}
	return t.Default
}
