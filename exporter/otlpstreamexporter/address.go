// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"errors"
	"net"
	"strings"

	"go.opentelemetry.io/collector/config/configgrpc"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

// address is the endpoint of a client if it is more than a host and a port, as URLs of HTTP are. The Collector validates
// the client's settings as those of gRPC, which have neither a path nor a default port, so the endpoint is reduced to a
// host and a port until the exporter starts.
type address struct{ whole string }

// reduce takes the endpoint out of the settings, if it must be.
func (a *address) reduce(client *configgrpc.ClientConfig) {
	scheme, rest, found := strings.Cut(client.Endpoint, "://")
	if !found {
		scheme, rest = "https", client.Endpoint
	}
	port := "443"
	switch scheme {
	case "https", "wss":
	case transport.HTTP, "ws": // the scheme has the same name
		port = "80"
	default:
		return
	}
	host, _, _ := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:] // the user, and a password, are no part of it
	if host == "" {
		return
	}
	plain := host
	_, _, err := net.SplitHostPort(host)
	if problem := (*net.AddrError)(nil); errors.As(err, &problem) && problem.Err == "missing port in address" {
		plain += ":" + port
	}
	if plain == rest {
		return
	}
	a.whole = client.Endpoint
	client.Endpoint = strings.TrimSuffix(client.Endpoint, rest) + plain
}

// restore returns the settings with the whole endpoint.
func (a *address) restore(client configgrpc.ClientConfig) configgrpc.ClientConfig {
	if a.whole != "" {
		client.Endpoint = a.whole
	}
	return client
}
