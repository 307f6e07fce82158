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
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/origin"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/send"
)

// maxTenantName limits a tenant's name: servers refuse requests with more than some kilobytes of headers.
const maxTenantName = 4 << 10

// noTenant is the list of tenants if there are none.
var noTenant = []string{""}

// among returns the tenants with data in md: its caller waits for room for these only.
func (t *TenantConfig) among(ctx context.Context, md pmetric.Metrics) []string {
	switch {
	case t.ofCaller():
		return []string{t.nameOf(ctx)}
	case t.FromResourceAttribute != "":
		var tenants []string
		for _, rm := range md.ResourceMetrics().All() {
			if tenant := t.of(rm.Resource()); len(tenants) == 0 || tenants[len(tenants)-1] != tenant {
				tenants = append(tenants, tenant)
			}
		}
		slices.Sort(tenants)
		return slices.Compact(tenants)
	}
	return noTenant
}

// of returns the tenant of a resource, by its attribute.
func (t *TenantConfig) of(r pcommon.Resource) string {
	if v, ok := r.Attributes().Get(t.FromResourceAttribute); ok {
		if name := attribute.Text(v); name != "" {
			return name
		}
	}
	return t.Default
}

// any reports whether there are tenants.
func (t *TenantConfig) any() bool { return t.Header != "" || len(t.MetadataKeys) > 0 }

// most is how many there may be; 0 without tenants.
func (t *TenantConfig) most() int {
	if !t.any() {
		return 0
	}
	return t.Max
}

// ofCaller reports whether each call has the data of one tenant, which the client's metadata names.
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

// SetHeaders sets the headers that name the tenant of a request's data.
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

// Name is a tenant's name for display.
func (n naming) Name(tenant string) string {
	if len(n.MetadataKeys) > 0 {
		return origin.Origin(tenant).String()
	}
	return tenant
}

// check returns what is wrong with a tenant. Any client may name one, and data with a name that cannot be a header
// would hold up that of everybody.
func (n naming) check(tenant string) error {
	if len(tenant) > maxTenantName {
		return errors.New("its name is too long for a header")
	}
	return n.SetHeaders(http.Header{}, tenant)
}
