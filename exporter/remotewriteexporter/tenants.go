// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/origin"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/send"
)

// maxTenantName bounds what names a tenant: servers refuse requests with more than some kilobytes of headers.
const maxTenantName = 4 << 10

// noTenant is whose data it is where there are no tenants.
var noTenant = []string{""}

// tenantsOf are those whose data is in md: who brings it waits for room for them, and for no others.
func (in *intake) tenantsOf(ctx context.Context, md pmetric.Metrics) []string {
	t := &in.cfg.Tenant
	switch {
	case t.ofCaller():
		return []string{t.nameOf(ctx)}
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

// any tells whether there are tenants.
func (t *TenantConfig) any() bool { return t.Header != "" || len(t.MetadataKeys) > 0 }

// most is how many there may be; 0 without tenants.
func (t *TenantConfig) most() int {
	if !t.any() {
		return 0
	}
	return t.Max
}

// ofCaller tells whether a call of the pipeline brings the data of one tenant, which the client's metadata names.
func (t *TenantConfig) ofCaller() bool { return t.FromMetadata != "" || len(t.MetadataKeys) > 0 }

// nameOf is the tenant that the client's metadata names: the value of a header or, with metadata_keys, an origin.
func (t *TenantConfig) nameOf(ctx context.Context) string {
	md := client.FromContext(ctx).Metadata
	if len(t.MetadataKeys) > 0 {
		return string(origin.Of(t.MetadataKeys, md))
	}
	if values := md.Get(t.FromMetadata); len(values) > 0 && values[0] != "" {
		return values[0]
	}
	return t.Default
}

// naming puts tenants into requests.
type naming struct{ *TenantConfig }

var _ send.Tenants = naming{}

// SetHeaders says in the headers of a request whose data it carries.
func (n naming) SetHeaders(h http.Header, tenant string) error {
	if len(n.MetadataKeys) > 0 {
		return origin.Origin(tenant).SetHeaders(h)
	}
	if header := (origin.Header{Key: n.Header, Value: tenant}); !header.Fits() {
		return fmt.Errorf("cannot put a tenant into %s: it has other characters than ASCII that can be printed", n.Header)
	}
	h.Set(n.Header, tenant)
	return nil
}

// Name is a tenant for people.
func (n naming) Name(tenant string) string {
	if len(n.MetadataKeys) > 0 {
		return origin.Origin(tenant).String()
	}
	return tenant
}

// check says what is wrong with a tenant. Any client may name one, and a name that no request can bear would hold up
// everybody's.
func (n naming) check(tenant string) error {
	if len(tenant) > maxTenantName {
		return errors.New("its name is too long for a header")
	}
	return n.SetHeaders(http.Header{}, tenant)
}
