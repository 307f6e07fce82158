// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"maps"
	"net/http"
	"strings"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-otel/godwit/internal/origin"
)

// anonymous is a client authenticated as nobody, because some authenticators do not expect a missing one.
type anonymous struct{}

func (anonymous) GetAttribute(string) any { return nil }

func (anonymous) GetAttributeNames() []string { return nil }

// WithAuth returns a context with an authenticated client, as nobody if there is none.
func WithAuth(ctx context.Context) context.Context {
	info := client.FromContext(ctx)
	if info.Auth != nil {
		return ctx
	}
	info.Auth = anonymous{}
	return client.NewContext(ctx, info)
}

type originKey struct{}

// WithOrigin returns the context of a stream or request with headers for its origin.
func WithOrigin(ctx context.Context, o origin.Origin) context.Context {
	if o == "" {
		return ctx
	}
	return context.WithValue(ctx, originKey{}, o)
}

func headersOf(ctx context.Context) []origin.Header {
	o, _ := ctx.Value(originKey{}).(origin.Origin)
	return o.Headers()
}

// addOrigin sets the origin's headers of an HTTP request. An authenticator comes later, and may replace them.
func addOrigin(ctx context.Context, to http.Header) {
	for _, h := range headersOf(ctx) {
		to.Add(h.Key, h.Value)
	}
}

// outgoing sets the origin's headers of a gRPC call, if no authenticator does.
func outgoing(ctx context.Context) context.Context {
	var pairs []string
	for _, h := range headersOf(ctx) {
		pairs = append(pairs, h.Key, h.Value)
	}
	if pairs == nil {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// originators returns extensions in which the authenticator also sets the origin's headers. gRPC would send a header
// twice if both set it.
func originators(extensions map[component.ID]component.Component, id component.ID) map[component.ID]component.Component {
	authenticator, ok := extensions[id].(extensionauth.GRPCClient)
	if !ok {
		return extensions // a missing one is reported elsewhere
	}
	extensions = maps.Clone(extensions)
	extensions[id] = originator{extensions[id], authenticator}
	return extensions
}

type originator struct {
	component.Component

	inner extensionauth.GRPCClient
}

func (o originator) PerRPCCredentials() (credentials.PerRPCCredentials, error) {
	inner, err := o.inner.PerRPCCredentials()
	if err != nil || inner == nil {
		return inner, err
	}
	return originCredentials{inner}, nil
}

func contains(set map[string]string, lower string) bool {
	for key := range set {
		if strings.EqualFold(key, lower) {
			return true
		}
	}
	return false
}

type originCredentials struct{ credentials.PerRPCCredentials }

func (c originCredentials) GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error) {
	set, err := c.PerRPCCredentials.GetRequestMetadata(ctx, uri...)
	own := headersOf(ctx)
	if err != nil || len(own) == 0 {
		return set, err
	}
	all := map[string]string{}
	for key, value := range set {
		all[strings.ToLower(key)] = value
	}
	for _, h := range own {
		switch first, ok := all[h.Key]; {
		case !ok:
			all[h.Key] = h.Value
		case ok && !contains(set, h.Key): // repeated header: a list, as in HTTP
			all[h.Key] = first + "," + h.Value
		}
	}
	return all, nil
}
