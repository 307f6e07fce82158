// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// onlyLoopback refuses requests to a name that is not this machine's own. A page in a browser can have a name of its own
// resolve to a loopback address, and so read what only programs on this machine should; it cannot change the name it
// sends. Addresses are not names.
func onlyLoopback(endpoint string, next http.Handler) http.Handler {
	own := hostOf(endpoint)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		_, err := netip.ParseAddr(host)
		if err != nil && host != own && host != "localhost" && !strings.HasSuffix(host, ".localhost") {
			http.Error(w, "This server listens on a loopback address and only answers to localhost.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf returns the host of an address with or without a port, in lower case and without brackets.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return strings.ToLower(strings.Trim(address, "[]"))
}
