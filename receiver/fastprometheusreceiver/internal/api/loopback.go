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

// onlyLoopback refuses requests that name a host other than this machine. A web page can make a name of its own resolve
// to a loopback address, to read what only programs on this machine may; but it cannot change the name that its
// requests have. Requests to addresses are accepted.
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
