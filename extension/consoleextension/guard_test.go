// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/guard"
	"github.com/godwit-otel/godwit/internal/inspect"
)

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func header(pairs ...string) func(*http.Request) {
	return func(r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			r.Header.Set(pairs[i], pairs[i+1])
		}
	}
}

// All paths.
var everything = []string{
	"/", "/index.html", "/app.js", "/api/v1/overview", "/api/v1/history", "/api/v1/delivery/history", "/api/v1/targets", "/api/v1/targets?format=csv",
	"/api/v1/targets?state=dropped", "/api/v1/targets/0000000000000001", "/api/v1/cardinality", "/api/v1/cardinality/top",
	"/api/v1/cardinality/top?format=csv", "/api/v1/cardinality/metric?name=m", "/api/v1/cardinality/whatif?drop=a",
	"/api/v1/status/tsdb", "/api/v1/delivery", "/api/v1/delivery?format=csv", "/api/v1/configuration", "/api/v1/configuration?format=yaml",
	"/api/v1/openapi.yaml", "/nowhere", "/api/v1/nowhere",
}

func TestOnlyKnownHostsAreAnswered(t *testing.T) {
	s := open(t, func(c *Config) { c.AllowedHosts = []string{"Console.Example.com", "192.0.2.7"} })
	for _, path := range everything {
		for _, name := range []string{
			"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:80", "192.0.2.8", "10.0.0.1", "xn--localhost-",
			"[2001:db8::1]:80", "console.example.com.evil.example", "0.0.0.0",
		} {
			status, code, message := s.fault(http.MethodGet, path, "", host(name))
			require.Equal(t, http.StatusForbidden, status, name)
			require.Equal(t, "host", code)
			require.Contains(t, message, "allowed_hosts")
		}
	}
	for _, name := range []string{
		s.address, "localhost", "LOCALHOST:1234", "127.0.0.1", "127.8.9.10:1", "[::1]:13155", "console.example.com", "CONSOLE.example.com:8443",
		"console.example.com.", "192.0.2.7:1", "[::ffff:127.0.0.1]",
	} {
		status, _, _ := s.do(http.MethodGet, "/api/v1/overview", "", host(name))
		require.Equal(t, http.StatusOK, status, name)
	}
}

func TestOtherSitesAreNotAnswered(t *testing.T) {
	s := open(t)
	for _, path := range everything {
		for _, from := range [][]string{
			{"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "same-site"},
			{"Sec-Fetch-Site", "nonsense"},
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"},
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
			{"Origin", "https://evil.example"},
			{"Origin", "null"},
			{"Origin", "http://localhost:1"},
		} {
			status, code, _ := s.fault(http.MethodGet, path, "", header(from...))
			require.Equal(t, http.StatusForbidden, status, "%s %s", path, from)
			require.Equal(t, "cross_site", code)
		}
	}
	link := header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
	status, _, _ := s.do(http.MethodGet, "/", "", link)
	require.Equal(t, http.StatusOK, status, "a link to the page works")
	status, _, _ = s.do(http.MethodGet, "/api/v1/overview", "", link)
	require.Equal(t, http.StatusForbidden, status, "a link to the data does not")
	for _, own := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Origin", "http://" + s.address}, {}} {
		status, _, _ := s.do(http.MethodGet, "/api/v1/overview", "", header(own...))
		require.Equal(t, http.StatusOK, status, own)
	}
}

func TestNoAnswerMayBeReadByOthers(t *testing.T) {
	s := open(t)
	for _, path := range everything {
		for _, method := range []string{http.MethodGet, http.MethodOptions, http.MethodPost} {
			_, h, _ := s.do(method, path, "", header("Origin", "http://"+s.address, "Access-Control-Request-Method", "POST"))
			for name := range h {
				require.False(t, strings.HasPrefix(name, "Access-Control-"), "%s %s: %s", method, path, name)
			}
			require.Equal(t, guard.Policy, h.Get("Content-Security-Policy"))
			require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
			require.Equal(t, "DENY", h.Get("X-Frame-Options"))
			require.Contains(t, []string{"no-store", "private, no-cache"}, h.Get("Cache-Control"))
			require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
			require.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"))
		}
	}
	require.NotContains(t, guard.Policy, "unsafe")
}

func TestPostsAreOfOurOwnPage(t *testing.T) {
	s := open(t)
	s.RegisterInspection(consoletest.Scraped(10))
	const path, body = "/api/v1/targets/0000000000000001/response", `{}`
	status, _, _ := s.do(http.MethodPost, path, body)
	require.Equal(t, http.StatusOK, status)
	for _, from := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "none"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		status, _, _ := s.fault(http.MethodPost, path, body, header(from...))
		require.Equal(t, http.StatusForbidden, status, from)
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json-patch+json", "text/plain; application/json"} {
		status, code, _ := s.fault(http.MethodPost, path, body, header("Content-Type", kind))
		require.Equal(t, http.StatusUnsupportedMediaType, status, kind)
		require.Equal(t, "content_type", code)
	}
}

// A GET has no effects: actions accept only POST, and everything else is read only.
func TestGetDoesNothing(t *testing.T) {
	s := open(t)
	s.RegisterInspection(consoletest.Scraped(10))
	for _, path := range []string{"/api/v1/targets/0000000000000001/response", "/api/v1/relabel"} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			status, h, _ := s.do(method, path, "")
			require.Equal(t, http.StatusMethodNotAllowed, status)
			require.Equal(t, http.MethodPost, h.Get("Allow"))
		}
	}
	for _, path := range everything {
		if strings.HasSuffix(path, "nowhere") {
			continue
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			status, _, _ := s.do(method, path, "{}")
			require.Equal(t, http.StatusMethodNotAllowed, status, "%s %s", method, path)
		}
	}
}

func TestBodiesAreBounded(t *testing.T) {
	s := open(t)
	status, _, message := s.fault(http.MethodPost, "/api/v1/relabel", `{"labels":[],"rules":"`+strings.Repeat("#", maxBody)+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Contains(t, message, "1048576")
	status, _, _ = s.do(http.MethodPost, "/api/v1/relabel", "\x1f\x8b", header("Content-Encoding", "gzip"))
	require.Equal(t, http.StatusBadRequest, status, "nothing is decompressed")
}

func TestWhoIsGoneIsNotShown(t *testing.T) {
	s := open(t)
	unregister := inspect.Register(hostOf{s.console}, consoletest.Scraped(3))
	require.Equal(t, 3, get[struct{ Total int }](s, "/api/v1/targets").Total)
	unregister()
	unregister()
	s.clock.Pass(time.Second) // responses are shared for that time
	require.Equal(t, 0, get[struct{ Total int }](s, "/api/v1/targets").Total)
}

// hostOf is a host with this extension.
type hostOf struct{ component.Component }

func (h hostOf) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{consoletest.ID("console"): h.Component}
}
