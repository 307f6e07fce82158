// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net/http"
	"sync/atomic"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/inquiry"
)

// authenticated wraps an authenticator that needs the client's metadata: it gives it what the request's headers still
// have of that, and logs once that there is no more.
type authenticated struct {
	http.RoundTripper

	cfg    *TenantConfig
	log    *zap.Logger
	warned atomic.Bool
}

// watchAuth wraps the authenticator of a client, if it has one.
func watchAuth(client *http.Client, cfg *confighttp.ClientConfig, tenants *TenantConfig, log *zap.Logger) {
	if cfg.Auth.HasValue() {
		client.Transport = &authenticated{RoundTripper: client.Transport, cfg: tenants, log: log}
	}
}

// RoundTrip sends a request through the authenticator.
func (a *authenticated) RoundTrip(r *http.Request) (*http.Response, error) {
	known := map[string][]string{}
	for _, key := range a.cfg.MetadataKeys {
		if values := r.Header.Values(key); len(values) > 0 {
			known[key] = values
		}
	}
	c := inquiry.New(r.Context(), client.NewMetadata(known))
	response, err := a.RoundTripper.RoundTrip(r.WithContext(c))
	if vain := c.AskedForAuth() || c.Asked() && len(a.cfg.MetadataKeys) == 0; vain && !a.warned.Swap(true) {
		a.log.Warn("The authenticator sets headers from the client of the data, which a queued request does not have: it sets its defaults for all",
			zap.String("advice", "list the keys of client metadata in `tenant.metadata_keys`, or name the tenant with `tenant.header`"))
	}
	return response, err
}

// CloseIdleConnections closes those of the wrapped transport.
func (a *authenticated) CloseIdleConnections() { closeIdle(a.RoundTripper) }
