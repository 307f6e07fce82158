// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// What a receiver says of its targets has no parameters' values, no passwords, and nothing that an answer repeats of what a
// request authenticates with.
func TestNothingShownHasSecrets(t *testing.T) {
	echo, parse, list := newEndpoint(t, text), newEndpoint(t, text), newEndpoint(t, text)
	repeat := func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "%s %s %s\n", r.Header.Get("Authorization"), password, r.URL)
	}
	echo.handle(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, password, _ := r.BasicAuth()
		fmt.Fprintf(conn, "HTTP/1.1 401 %s %s http://x%s\r\nContent-Length: 0\r\n\r\n", r.Header.Get("Authorization"), password, r.URL)
		_ = conn.Close()
	})
	parse.handle(repeat)
	list.Close()
	token := newEndpoint(t, text)
	token.handle(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		http.Error(w, r.URL.String()+" "+password+r.FormValue("client_secret"), http.StatusBadRequest)
	})
	var user atomic.Value
	proxy := newEndpoint(t, text)
	proxy.handle(func(w http.ResponseWriter, r *http.Request) {
		user.Store(r.Header.Get("Proxy-Authorization"))
		http.Error(w, "no", http.StatusProxyAuthRequired)
	})
	failures := filepath.Join(t.TempDir(), "failures")
	r := prepare(t, configure(t, fmt.Sprintf(`
config:
  scrape_configs:
    - job_name: shown
      scrape_interval: 100ms
      scrape_timeout: 90ms
      scrape_failure_log_file: %q
      basic_auth: {username: me, password: covert-password}
      params: {module: [covert-module], token: [covert-token]}
      static_configs: [{targets: [%s, %s]}]
    - job_name: listed
      http_sd_configs: [{url: "http://me:covert-user@%s/list?key=covert-key", refresh_interval: 1s}]
    - job_name: unlisted
      oauth2: {client_id: me, client_secret: covert-secret, token_url: "http://me:covert-user@%s/token?key=covert-key"}
      scrape_interval: 100ms
      scrape_timeout: 90ms
      static_configs: [{targets: [%s]}]
    - job_name: proxied
      proxy_url: "http://me:covert-proxy@%s"
      scrape_interval: 100ms
      scrape_timeout: 90ms
      static_configs: [{targets: ["target.invalid:80"]}]
`, failures, echo.address(), parse.address(), list.address(), token.address(), parse.address(), proxy.address())))
	w := &watcher{}
	require.NoError(t, r.Start(t.Context(), w))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	var said []byte
	require.Eventually(t, func() bool {
		said, _ = os.ReadFile(failures)
		answered := strings.Contains(string(said), "401") // a slow machine's first scrapes may time out
		return r.log.FilterMessage("Target is down").Len() == 4 && hasLine(r.log, "list?key=") && user.Load() != nil && answered
	}, patience, glance)
	require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("me:covert-proxy")), user.Load(), "the proxy must get what is not shown")
	for _, line := range r.log.All() {
		require.NotContains(t, fmt.Sprint(line.Message, line.ContextMap()), "covert", line.Message)
	}
	down := r.log.FilterMessage("Target is down").FilterField(zap.String("job", "shown")).All()
	require.Len(t, down, 2)
	require.Contains(t, down[0].ContextMap()["target"], "/metrics?module=[REDACTED]&token=[REDACTED]", "names of parameters stay")
	require.Contains(t, []string{echo.address(), parse.address()}, down[0].ContextMap()["instance"])

	require.NotContains(t, string(said), "covert")
	for _, job := range w.source.Targets().Jobs {
		for _, target := range job.Targets {
			require.NotContains(t, target.URL+target.LastError, "covert")
			if target.State != inspect.Failing {
				continue
			}
			page, err := w.source.Look.Look(t.Context(), target.ID, 1000)
			require.NotContains(t, fmt.Sprint(page.URL, err), "covert")
			require.NotContains(t, string(page.Body), "covert-password")
		}
	}
	for _, job := range r.Snapshot().Jobs {
		for _, target := range job.Targets {
			require.NotContains(t, target.LastError, "covert")
		}
	}
	config, _, _ := view{r.scraper}.Config()
	require.NotContains(t, config, "covert-user")
	require.NotContains(t, config, "covert-key")
	require.NotContains(t, config, "covert-proxy")
}

// hasLine reports whether a line of the log has the text in one of its fields.
func hasLine(log *observer.ObservedLogs, text string) bool {
	for _, line := range log.All() {
		if strings.Contains(fmt.Sprint(line.ContextMap()), text) {
			return true
		}
	}
	return false
}
