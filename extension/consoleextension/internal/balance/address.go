// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// leadsTo reports whether a destination, named by a URL or by host and port, is what listens at an address.
func leadsTo(destination, address string) bool {
	host, port := hostPort(destination)
	listens, at := hostPort(address)
	if port == "" || port != at {
		return false
	}
	return host == listens || isLoopback(host) && (isLoopback(listens) || isAny(listens))
}

func hostPort(text string) (host, port string) {
	if at := strings.LastIndex(text, " ("); at >= 0 { // a name, followed by the endpoint in parentheses
		text = strings.TrimSuffix(text[at+2:], ")")
	}
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		text = u.Host
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", ""
	}
	return host, port
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

func isAny(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "" || err == nil && address.IsUnspecified()
}
