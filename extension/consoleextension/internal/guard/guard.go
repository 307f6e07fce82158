// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard protects a handler from pages of other sites, and from requests to foreign host names.
package guard

import (
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
)

// Policy allows the page to load its own files only.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard refuses requests to unknown host names and from pages of other sites.
type guard struct {
	hosts []string // lower case
	next  http.Handler
}

// New returns a guard for next that answers under these names, besides those of this machine.
func New(next http.Handler, names ...string) http.Handler {
	g := &guard{next: next}
	for _, name := range names {
		if name = canonical(name); name != "" {
			g.hosts = append(g.hosts, name)
		}
	}
	return g
}

func canonical(host string) string {
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// Protect sets the headers that restrict what browsers do with an answer.
func Protect(h http.Header) {
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// ServeHTTP implements [http.Handler].
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	Protect(w.Header())
	switch {
	case !g.knows(r):
		answer.Fail(w, http.StatusForbidden, "host", fmt.Sprintf("the host %q is not allowed: add it to `allowed_hosts`", prose.Cut(r.Host, 100)))
	case !sameSite(r):
		answer.Fail(w, http.StatusForbidden, "cross_site", "requests from other sites are not answered")
	case r.Method == http.MethodPost && !isJSON(r):
		answer.Fail(w, http.StatusUnsupportedMediaType, "content_type", "the content type must be application/json")
	default:
		g.next.ServeHTTP(w, r)
	}
}

// knows reports whether the request is to one of our host names. A name that an attacker's DNS resolves to this address
// is not one of them.
func (g *guard) knows(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = canonical(host)
	if host == "localhost" || slices.Contains(g.hosts, host) {
		return true
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if address.Unmap().IsLoopback() {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.AddrPort().Addr().Unmap() == address.Unmap()
}

// sameSite reports whether the request comes from our own page, from a link or the address bar, or from no browser.
func sameSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "none":
		return safe(r)
	case "":
		return ownOrigin(r)
	}
	// Another site may link to the page, and to nothing else.
	return r.Method == http.MethodGet && r.URL.Path == "/" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func safe(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// ownOrigin decides for requests without Sec-Fetch-Site: old browsers send an Origin with every request that could do
// harm, other programs send none.
func ownOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	// The scheme may be that of a proxy.
	u, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}
