// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// loopbacks are hosts that mean another machine to clients there.
var loopbacks = []string{"127.0.0.1", "localhost", "::1"}

// globalURL returns a target's URL for other machines: with the host of our endpoint in place of a loopback host.
func globalURL(target, endpoint string) string {
	u, err := url.Parse(target)
	if err != nil || !slices.Contains(loopbacks, u.Hostname()) {
		return target
	}
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return target
	}
	switch {
	case u.Port() == port: // this server
		u.Scheme, u.Host = "http", endpoint
	case u.Port() != "":
		u.Host = net.JoinHostPort(host, u.Port())
	case strings.Contains(host, ":"):
		u.Host = "[" + host + "]"
	default:
		u.Host = host
	}
	return u.String()
}
