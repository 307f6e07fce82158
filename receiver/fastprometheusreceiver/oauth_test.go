// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"
)

// A bank issues tokens over TLS, each valid for a second: clients replace a token ten seconds before it expires.
type bank struct {
	*httptest.Server

	authority string // file
	trouble   atomic.Pointer[http.HandlerFunc]
	issued    atomic.Int64

	mu    sync.Mutex
	forms map[string]bool // what was requested
}

const (
	tokenLife = 11
	tokenAsk  = "goose:honk client_credentials read metrics farm"
)

func newBank(t *testing.T) *bank {
	t.Helper()
	b := &bank{forms: map[string]bool{}}
	b.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if trouble := b.trouble.Load(); trouble != nil {
			(*trouble)(w, r)
			return
		}
		client, secret, _ := r.BasicAuth()
		form := fmt.Sprintf("%s:%s %s %s %s", client, secret, r.FormValue("grant_type"), r.FormValue("scope"), r.FormValue("audience"))
		b.mu.Lock()
		b.forms[form] = true
		b.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token": "t%d", "token_type": "Bearer", "expires_in": %d}`, b.issued.Add(1), tokenLife)
	}))
	startTLS(b.Server)
	t.Cleanup(b.Close)
	b.authority = filepath.Join(t.TempDir(), "ca")
	require.NoError(t, os.WriteFile(b.authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Certificate().Raw}), 0o600))
	return b
}

// startTLS starts a server that does not log the clients' TLS errors.
func startTLS(s *httptest.Server) {
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
}

func (b *bank) section() string {
	return fmt.Sprintf(`{client_id: goose, client_secret: honk, token_url: "%s/token", scopes: [read, metrics], endpoint_params: {audience: farm}, tls_config: {ca_file: %q}}`, b.URL, b.authority)
}

// guarded serves only requests with the latest token.
func (b *bank) guarded(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var n int64
		if _, err := fmt.Sscanf(r.Header.Get("Authorization"), "Bearer t%d", &n); err != nil || n == 0 || n != b.issued.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		serve(w, r)
	}
}

func serveText(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprint(w, text)
}

// hang does not respond until the client closes the connection.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// A target requires a token, which has to be renewed again and again. While the token server is down, the target is
// down, and the reason is correct.
func TestOAuth2(t *testing.T) {
	b := newBank(t)
	target := newEndpoint(t, "")
	target.handle(b.guarded(serveText))
	r := run(t, fmt.Sprintf(leisurely, target.address())+"      oauth2: "+b.section()+"\n")
	require.Eventually(t, func() bool { return b.issued.Load() >= 3 }, patience, glance)
	assert.NotEmpty(t, r.some(is("requests", 42)))
	assert.Zero(t, r.failures(t, "status"), "no token was used for too long")
	b.mu.Lock()
	assert.Equal(t, map[string]bool{tokenAsk: true}, b.forms)
	b.mu.Unlock()

	for why, trouble := range map[string]http.HandlerFunc{
		"503 Service Unavailable":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"context deadline exceeded": hang,
	} {
		before := r.failures(t, "credentials")
		b.trouble.Store(&trouble)
		r.sink.Reset()
		r.await(t, is("up", 0))
		require.Eventually(t, func() bool {
			return slices.ContainsFunc(r.log.FilterMessage("Target is down").All(), func(line observer.LoggedEntry) bool {
				text := fmt.Sprint(line.ContextMap()["error"])
				return strings.Contains(text, "cannot get a token from "+b.URL+"/token: ") && strings.Contains(text, why)
			})
		}, patience, glance, why)
		assert.Greater(t, r.failures(t, "credentials"), before)
		b.trouble.Store(nil)
		r.sink.Reset()
		r.await(t, is("requests", 42))
	}
}

// Service discovery may require tokens as well.
func TestOAuth2OfServiceDiscovery(t *testing.T) {
	b := newBank(t)
	target := newEndpoint(t, text)
	var asked atomic.Int64
	list := httptest.NewServer(b.guarded(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `[{"targets": [%q]}]`, target.address())
	}))
	defer list.Close()
	r := run(t, fmt.Sprintf(`
config:
  scrape_configs:
    - job_name: test
      scrape_interval: 1s
      http_sd_configs: [{url: %q, refresh_interval: 1s, oauth2: %s}]
      scrape_timeout: 1s
`, list.URL, b.section()))
	r.await(t, of(target, is("requests", 42)))
	require.Eventually(t, func() bool { return b.issued.Load() >= 3 && asked.Load() >= 3 }, patience, glance)
	b.mu.Lock()
	assert.Equal(t, map[string]bool{tokenAsk: true}, b.forms)
	b.mu.Unlock()
	assert.Empty(t, r.some(is("up", 0)))
}

// A token server that hangs does not delay Shutdown.
func TestShutdownWhileTokenServersHang(t *testing.T) {
	b := newBank(t)
	waiting := make(chan struct{}, 100)
	trouble := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		waiting <- struct{}{}
		hang(w, r)
	})
	b.trouble.Store(&trouble)
	r := run(t, fmt.Sprintf(`
config:
  scrape_configs:
    - {job_name: scrape, scrape_interval: 1h, scrape_timeout: 1h, static_configs: [{targets: ["localhost:1", "localhost:2", "localhost:3"]}], oauth2: %[1]s}
    - {job_name: discovery, http_sd_configs: [{url: "http://localhost:1", oauth2: %[1]s}]}
`, b.section()))
	require.Eventually(t, func() bool { return len(r.Snapshot().Jobs[1].Targets) == 3 }, patience, glance)
	for _, j := range r.allJobs() {
		for _, target := range j.all() {
			go target.scrape(time.Now())
		}
	}
	<-waiting
	<-waiting
	began := time.Now()
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Less(t, time.Since(began), patience/2)
	b.trouble.Store(nil)       // the client retries when its connection is closed
	b.CloseClientConnections() // of Prometheus' service discovery, which does not retry
}
