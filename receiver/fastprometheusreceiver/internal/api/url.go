// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// loopbacks are the hosts that mean another machine to whoever reads them there.
var loopbacks = []string{"127.0.0.1", "localhost", "::1"}

// globalURL returns a target's URL as others may reach it: with the host of our own endpoint for this machine's.
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
	case u.Port() == port: // ourselves
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
