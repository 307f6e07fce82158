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

// Azure is how to get a token of Entra ID.
type Azure struct {
	// Authority is where tokens are from: the cloud's. AZURE_AUTHORITY_HOST of the environment is in its place.
	Authority string
	// Scope is what they are for.
	Scope string
	// Kind says how.
	Kind AzureKind
	// Tenant, Client, Secret and TokenFile are what it needs.
	Tenant, Client, Secret, TokenFile string
}

// AzureKind is a way to get a token.
type AzureKind uint8

// The ways there are.
const (
	// ManagedIdentity is that of the machine, or the one of Client that it has as well.
	ManagedIdentity AzureKind = iota
	// ClientSecret is of an application.
	ClientSecret
	// WorkloadIdentity is by a token of the cluster in TokenFile.
	WorkloadIdentity
	// Environment is the first of these, in the order secret, workload, machine, for which the environment says enough.
	Environment
)

// defaultSuffix ends a scope that is all of a resource's.
const defaultSuffix = "/.default"

// Token gets one.
func (a *Azure) Token(ctx context.Context) (Token, error) {
	switch a.Kind {
	case ClientSecret:
		return a.byForm(ctx, url.Values{clientSecretKey: {a.Secret}})
	case WorkloadIdentity:
		assertion, err := os.ReadFile(a.TokenFile) // which is written anew all the time
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

// ofEnvironment is the way for which the environment says enough. A tenant of the configuration goes before its.
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

// ofMachine asks the server that each virtual machine has, or that of an App Service. Both take the resource, not the scope.
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
