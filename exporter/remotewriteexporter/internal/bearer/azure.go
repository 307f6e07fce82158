// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// Azure gets tokens from Entra ID.
type Azure struct {
	// Authority is the cloud's URL for tokens. AZURE_AUTHORITY_HOST of the environment overrides it.
	Authority string
	// Scope is what tokens are for.
	Scope string
	// Kind is how to get them.
	Kind AzureKind
	// Tenant, Client, Secret and TokenFile are what that needs.
	Tenant, Client, Secret, TokenFile string
}

// AzureKind is a way to get a token.
type AzureKind uint8

// The ways to get a token.
const (
	// ManagedIdentity is the identity of the machine, or its additional one with the ID in Client.
	ManagedIdentity AzureKind = iota
	// ClientSecret is the secret of an application.
	ClientSecret
	// WorkloadIdentity is a token of the cluster, in TokenFile.
	WorkloadIdentity
	// Environment is the first of these, in the order secret, workload, machine, that the environment has the settings
	// for.
	Environment
)

// defaultSuffix ends the scope for all of a resource.
const defaultSuffix = "/.default"

// Token gets a token.
func (a *Azure) Token(ctx context.Context) (Token, error) {
	switch a.Kind {
	case ClientSecret:
		return a.byForm(ctx, url.Values{clientSecretKey: {a.Secret}})
	case WorkloadIdentity:
		assertion, err := os.ReadFile(a.TokenFile) // which is replaced regularly
		if err != nil {
			return Token{}, err
		}
		return a.byForm(ctx, url.Values{
			"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
			"client_assertion":      {strings.TrimSpace(string(assertion))},
		})
	case Environment:
		found := a.ofEnvironment()
		return found.Token(ctx)
	default:
		return a.ofMachine(ctx)
	}
}

// ofEnvironment returns the way that the environment has the settings for. A configured tenant overrides that of the
// environment.
func (a *Azure) ofEnvironment() *Azure {
	found := *a
	if found.Tenant == "" {
		found.Tenant = os.Getenv("AZURE_TENANT_ID")
	}
	found.Client = os.Getenv("AZURE_CLIENT_ID")
	found.Secret = os.Getenv("AZURE_CLIENT_SECRET")
	found.TokenFile = os.Getenv("AZURE_FEDERATED_TOKEN_FILE")
	switch {
	case found.Tenant != "" && found.Client != "" && found.Secret != "":
		found.Kind = ClientSecret
	case found.Tenant != "" && found.Client != "" && found.TokenFile != "":
		found.Kind = WorkloadIdentity
	default:
		found.Kind = ManagedIdentity
	}
	return &found
}

func (a *Azure) byForm(ctx context.Context, form url.Values) (Token, error) {
	authority := a.Authority
	if host := os.Getenv("AZURE_AUTHORITY_HOST"); host != "" {
		authority = host
	}
	form.Set(grantTypeKey, "client_credentials")
	form.Set(clientIDKey, a.Client)
	form.Set(scopeKey, a.Scope)
	return post(ctx, strings.TrimSuffix(authority, "/")+"/"+url.PathEscape(a.Tenant)+"/oauth2/v2.0/token", form)
}

// ofMachine asks the metadata server of the virtual machine, or that of an App Service. Both expect the resource, not
// the scope.
func (a *Azure) ofMachine(ctx context.Context) (Token, error) {
	query := url.Values{resourceKey: {strings.TrimSuffix(a.Scope, defaultSuffix)}}
	if a.Client != "" {
		query.Set(clientIDKey, a.Client)
	}
	if endpoint, header := os.Getenv("IDENTITY_ENDPOINT"), os.Getenv("IDENTITY_HEADER"); endpoint != "" {
		if header == "" {
			return Token{}, errors.New("IDENTITY_ENDPOINT is set without IDENTITY_HEADER, as on Azure Arc, which is not supported")
		}
		query.Set("api-version", "2019-08-01")
		return get(ctx, endpoint+"?"+query.Encode(), "X-IDENTITY-HEADER", header)
	}
	host := "http://169.254.169.254"
	if other := os.Getenv("AZURE_POD_IDENTITY_AUTHORITY_HOST"); other != "" {
		host = strings.TrimSuffix(other, "/")
	}
	query.Set("api-version", "2018-02-01")
	t, err := get(ctx, host+"/metadata/identity/oauth2/token?"+query.Encode(), "Metadata", "true")
	if err != nil {
		return t, fmt.Errorf("the managed identity of this machine: %w", err)
	}
	return t, nil
}
