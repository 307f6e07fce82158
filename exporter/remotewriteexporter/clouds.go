// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/bearer"
)

// AzureADConfig authenticates by Azure's Entra ID, with the keys of Prometheus' azuread.
type AzureADConfig struct {
	// Cloud is AzurePublic, AzureChina or AzureGovernment. Default AzurePublic.
	Cloud string `mapstructure:"cloud"`
	// Scope is what tokens are for. Default the cloud's Azure Monitor.
	Scope string `mapstructure:"scope"`
	// ManagedIdentity, OAuth, WorkloadIdentity or SDK is how tokens are got. One of them.
	ManagedIdentity  *AzureManagedIdentityConfig  `mapstructure:"managed_identity"`
	OAuth            *AzureOAuthConfig            `mapstructure:"oauth"`
	WorkloadIdentity *AzureWorkloadIdentityConfig `mapstructure:"workload_identity"`
	SDK              *AzureSDKConfig              `mapstructure:"sdk"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// AzureManagedIdentityConfig is the identity of the machine.
type AzureManagedIdentityConfig struct {
	// ClientID is that of an identity which the machine has. Default none: its own.
	ClientID string `mapstructure:"client_id"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// AzureOAuthConfig is an application with a secret.
type AzureOAuthConfig struct {
	// ClientID and ClientSecret are the application's, TenantID its tenant's. Required.
	ClientID     string              `mapstructure:"client_id"`
	ClientSecret configopaque.String `mapstructure:"client_secret"`
	TenantID     string              `mapstructure:"tenant_id"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// AzureWorkloadIdentityConfig is an application that takes tokens of a cluster.
type AzureWorkloadIdentityConfig struct {
	// ClientID is the application's, TenantID its tenant's. Required.
	ClientID string `mapstructure:"client_id"`
	TenantID string `mapstructure:"tenant_id"`
	// TokenFilePath is where the cluster's token is. Default /var/run/secrets/azure/tokens/azure-identity-token.
	TokenFilePath string `mapstructure:"token_file_path"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// AzureSDKConfig is what the environment says: a secret, a workload's token, or else the identity of the machine.
type AzureSDKConfig struct {
	// TenantID goes before AZURE_TENANT_ID. Default none.
	TenantID string `mapstructure:"tenant_id"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// GoogleIAMConfig authenticates by Google's IAM, with the key of Prometheus' google_iam.
type GoogleIAMConfig struct {
	// CredentialsFile is that of a service account. Default none: the application default credentials.
	CredentialsFile string `mapstructure:"credentials_file"`

	// prevent unkeyed literal initialization
	_ struct{}
}

const (
	azurePublic        = "AzurePublic"
	azureTokenFilePath = "/var/run/secrets/azure/tokens/azure-identity-token" //nolint:gosec // a path
)

// azureCloud has a cloud's URL for tokens, and the default scope.
type azureCloud struct{ authority, scope string }

var azureClouds = map[string]azureCloud{
	azurePublic:       {"https://login.microsoftonline.com", "https://monitor.azure.com//.default"},
	"AzureChina":      {"https://login.chinacloudapi.cn", "https://monitor.azure.cn//.default"},
	"AzureGovernment": {"https://login.microsoftonline.us", "https://monitor.azure.us//.default"},
}

// uuid and tenantID match IDs: a tenant may also have a domain name.
var (
	uuid     = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	tenantID = regexp.MustCompile(`^[0-9a-zA-Z.-]+$`)
)

func (c *AzureADConfig) source() *bearer.Azure {
	cloud := azureClouds[c.cloud()]
	a := &bearer.Azure{Authority: cloud.authority, Scope: cloud.scope}
	if c.Scope != "" {
		a.Scope = c.Scope
	}
	switch {
	case c.OAuth != nil:
		a.Kind, a.Tenant, a.Client, a.Secret = bearer.ClientSecret, c.OAuth.TenantID, c.OAuth.ClientID, string(c.OAuth.ClientSecret)
	case c.WorkloadIdentity != nil:
		a.Kind, a.Tenant, a.Client = bearer.WorkloadIdentity, c.WorkloadIdentity.TenantID, c.WorkloadIdentity.ClientID
		if a.TokenFile = c.WorkloadIdentity.TokenFilePath; a.TokenFile == "" {
			a.TokenFile = azureTokenFilePath
		}
	case c.SDK != nil:
		a.Kind, a.Tenant = bearer.Environment, c.SDK.TenantID
	default:
		a.Kind, a.Client = bearer.ManagedIdentity, c.ManagedIdentity.ClientID
	}
	return a
}

func (c *AzureADConfig) cloud() string {
	if c.Cloud == "" {
		return azurePublic
	}
	return c.Cloud
}

func (c *AzureADConfig) validate(key string) error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if _, ok := azureClouds[c.cloud()]; !ok {
		fault("`%sazuread.cloud` must be AzurePublic, AzureChina or AzureGovernment, got %q", key, c.Cloud)
	}
	ways := 0
	for _, is := range []bool{c.ManagedIdentity != nil, c.OAuth != nil, c.WorkloadIdentity != nil, c.SDK != nil} {
		if is {
			ways++
		}
	}
	if ways != 1 {
		fault("`%sazuread` must have one of `managed_identity`, `oauth`, `workload_identity` and `sdk`, got %d of them; "+
			"`managed_identity: {client_id: ''}` is the identity of this machine", key, ways)
	}
	client := func(of, id string) {
		if !uuid.MatchString(id) {
			fault("`%sazuread.%s.client_id` must be a UUID, got %q", key, of, id)
		}
	}
	tenant := func(of, id string) {
		if !tenantID.MatchString(id) {
			fault("`%sazuread.%s.tenant_id` must be the ID of a tenant, got %q", key, of, id)
		}
	}
	if m := c.ManagedIdentity; m != nil && m.ClientID != "" {
		client("managed_identity", m.ClientID)
	}
	if o := c.OAuth; o != nil {
		client("oauth", o.ClientID)
		tenant("oauth", o.TenantID)
		if o.ClientSecret == "" {
			fault("`%sazuread.oauth.client_secret` must be set", key)
		}
	}
	if w := c.WorkloadIdentity; w != nil {
		client("workload_identity", w.ClientID)
		tenant("workload_identity", w.TenantID)
	}
	if s := c.SDK; s != nil && s.TenantID != "" {
		tenant("sdk", s.TenantID)
	}
	return errors.Join(errs...)
}

// validateCloud reports faults of a client's cloud authentication.
func (n *namedClient) validateCloud() error {
	var ways []string
	var err error
	if n.client.Auth.HasValue() {
		ways = append(ways, "`"+n.key+"auth`")
	}
	if n.azure != nil {
		ways = append(ways, "`"+n.cloudKey+"azuread`")
		err = n.azure.validate(n.cloudKey)
	}
	if n.google != nil {
		ways = append(ways, "`"+n.cloudKey+"google_iam`")
	}
	if len(ways) > 1 {
		err = errors.Join(err, fmt.Errorf("%s exclude each other: remove all but one", strings.Join(ways, " and ")))
	}
	return err
}

// authenticate adds cloud authentication to a client, if configured.
func (n *namedClient) authenticate(client *http.Client) {
	switch {
	case n.azure != nil:
		client.Transport = bearer.NewTransport(client.Transport, n.azure.source())
	case n.google != nil:
		client.Transport = bearer.NewTransport(client.Transport, &bearer.Google{File: n.google.CredentialsFile})
	}
}
