// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
)

// TestCloudsAuthenticate: requests to an endpoint have a token, another one when the first is refused, and nothing is
// lost while there is none; an endpoint outside of the cloud gets no token.
func TestCloudsAuthenticate(t *testing.T) {
	var asked atomic.Int64
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			_, _ = w.Write([]byte(`{"access_token": "old", "expires_in": 3600}`))
		default:
			_, _ = w.Write([]byte(`{"access_token": "new", "expires_in": 3600}`))
		}
	}))
	t.Cleanup(tokens.Close)
	t.Setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", tokens.URL)
	t.Setenv("IDENTITY_ENDPOINT", "")
	cloud, plain := newReceived(t, lockedUnless(func() string { return "Bearer new" })), newReceived(t, nil)
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoints = []EndpointConfig{endpointTo(cloud, func(c *EndpointConfig) {
			c.AzureAD = &AzureADConfig{ManagedIdentity: &AzureManagedIdentityConfig{}}
		}), endpointTo(plain, nil)}
	})
	for n := range 5 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
	}
	eventually(t, func() bool { return cloud.samples() == 50 && plain.samples() == 50 }, "all samples arrive")
	cloud.requireOrdered(t)
	for _, h := range plain.headers() {
		require.Empty(t, h.Get("Authorization"))
	}
}

func TestFaultsOfCloudsAreNamed(t *testing.T) {
	const id = "00000000-0000-0000-0000-00000000000f"
	for yaml, want := range map[string]string{
		"azuread: {cloud: AzureMoon, sdk: {tenant_id: nest}}":                                                "`azuread.cloud` must be AzurePublic, AzureChina or AzureGovernment",
		"azuread: {cloud: AzureChina}":                                                                       "`azuread` must have one of `managed_identity`, `oauth`, `workload_identity` and `sdk`, got 0",
		"azuread: {sdk: {tenant_id: a}, managed_identity: {client_id: ''}}":                                  "got 2 of them",
		"azuread: {managed_identity: {client_id: bird}}":                                                     "`azuread.managed_identity.client_id` must be a UUID",
		"azuread: {oauth: {client_id: " + id + ", tenant_id: nest}}":                                         "`azuread.oauth.client_secret` must be set",
		"azuread: {oauth: {client_id: " + id + ", tenant_id: 'a/b', client_secret: a}}":                      "`azuread.oauth.tenant_id` must be the ID of a tenant",
		"azuread: {workload_identity: {tenant_id: nest}}":                                                    "`azuread.workload_identity.client_id` must be a UUID",
		"{azuread: {sdk: {tenant_id: nest}}, google_iam: {credentials_file: a}}":                             "`azuread` and `google_iam` exclude each other",
		"{google_iam: {credentials_file: a}, http: {auth: {authenticator: a}}}":                              "`http.auth` and `google_iam` exclude each other",
		"{azuread: {sdk: {tenant_id: nest}}, endpoint: '', endpoints: [{endpoint: 'http://localhost:1'}]}":   "move them into the elements of `endpoints`",
		"{endpoint: '', endpoints: [{endpoint: 'http://localhost:1', azuread: {cloud: AzureMoon}}]}":         "`endpoints[0].azuread.cloud`",
		"{endpoint: '', endpoints: [{endpoint: 'http://localhost:1', google_iam: {file: AzureMoon}}]}":       "file",
		"{azuread: {workload_identity: {client_id: " + id + ", tenant_id: nest}}, endpoint: 'http://a:b:c'}": "endpoint",
	} {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		cfg := NewDefaultConfig()
		cfg.Endpoint = "http://localhost:1"
		if err = conf.Unmarshal(cfg); err == nil {
			err = cfg.Validate()
		}
		require.ErrorContains(t, err, want, yaml)
	}
}

// TestCloudsAreKnown: the settings of each cloud.
func TestCloudsAreKnown(t *testing.T) {
	a := (&AzureADConfig{SDK: &AzureSDKConfig{TenantID: "nest"}}).source()
	require.Equal(t, "https://monitor.azure.com//.default", a.Scope)
	require.Equal(t, "nest", a.Tenant)
	a = (&AzureADConfig{Cloud: "AzureGovernment", Scope: "mine", WorkloadIdentity: &AzureWorkloadIdentityConfig{}}).source()
	require.Equal(t, "https://login.microsoftonline.us", a.Authority)
	require.Equal(t, "mine", a.Scope)
	require.Equal(t, azureTokenFilePath, a.TokenFile)
}
