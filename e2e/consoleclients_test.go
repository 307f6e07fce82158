// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/console"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/internal/certtest"
)

const clientsConfig = `
extensions: {console: {endpoint: %s}}
receivers: {remotewrite: {endpoint: %s}}
exporters: {nop: {}}
service:
  extensions: [health_check, console]
  pipelines: {metrics: {receivers: [remotewrite], exporters: [nop]}}
`

// The console names a client that sends malformed requests, and says what it was answered.
func TestConsoleShowsClients(t *testing.T) {
	t.Parallel()
	browser := console.Open(t)
	endpoint, in := freeport.Addr(t), freeport.Addr(t)
	startCollector(t, fmt.Sprintf(clientsConfig, endpoint, in))
	url := "http://" + in + "/api/v1/write"

	p := browser.Page(t, console.Wide, "http://"+endpoint+"/", "")
	p.Reads("h1", "All is well")
	write(t, url, "geese_flying", 42)
	p.Go("#/delivery")
	p.Reads("main", "What clients send here", "remotewrite", in, "1.0 204: 1", "none")
	nonsense := func() (status int) {
		response, err := http.Post(url, "application/x-protobuf", strings.NewReader("honk"))
		if err != nil {
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	require.Equal(t, http.StatusBadRequest, nonsense())
	p.Reads("main", "1.0 400: 1", "answered 400 to 127.0.0.1: cannot decompress 4 bytes of snappy")
	ctx := wait.Context(t, func() bool { return false })
	var client sync.WaitGroup
	client.Go(func() { // a finding covers only the last seconds
		for wait.Pause(ctx, time.Second) {
			nonsense()
		}
	})
	t.Cleanup(client.Wait)
	p.Reads("main", "Next: Clients do not send again")
	p.Picture("delivery-clients-wide")
	p.Go("#/overview")
	p.Reads("main", "remotewrite refuses requests of clients", "Clients do not send again")
	p.Holds(`document.querySelector(".picture a[href='#/delivery']")`)
	p.Picture("overview-clients-wide")
}

const shortConfig = `
extensions: {console: {endpoint: %s}}
processors: {memory_limiter: {check_interval: 100ms, limit_mib: 1}}
service:
  extensions: [health_check, console]
  pipelines: {metrics: {receivers: [fastprometheus], processors: [memory_limiter], exporters: [remotewrite]}}
`

// The console says that a memory_limiter refuses data, and that scrapes are lost by it.
func TestConsoleTellsOfShortMemory(t *testing.T) {
	t.Parallel()
	browser := console.Open(t)
	well := targets.New(t, targets.Page{Body: "geese 42\n"})
	endpoint := freeport.Addr(t)
	startCollector(t, fmt.Sprintf(scraping, "http://"+freeport.Addr(t)+"/", jobs(job("node", well.Addr(), ""))), fmt.Sprintf(shortConfig, endpoint))
	p := browser.Page(t, console.Wide, "http://"+endpoint+"/", "")
	p.Reads("main", "memory_limiter refuses all data: memory is short", "Scrapes of fastprometheus are lost", "are being lost")
	p.Picture("overview-memory-wide")
}

const guardedConfig = `
extensions:
  basicauth/people: {htpasswd: {inline: "goose:honk"}}
  console: {endpoint: %s, auth: {authenticator: basicauth/people}, tls: {cert_pem: %q, key_pem: %q}}
receivers: {fastprometheus: {config: {scrape_configs: [{job_name: nobody, static_configs: []}]}}}
exporters: {nop: {}}
service:
  extensions: [health_check, basicauth/people, console]
  pipelines: {metrics: {receivers: [fastprometheus], exporters: [nop]}}
`

// With TLS and a password, nothing is shown without the password.
func TestConsoleBehindAPassword(t *testing.T) {
	t.Parallel()
	endpoint := freeport.Addr(t)
	certificate, key := certtest.SelfSigned(t)
	pool := certtest.Pool(t, certificate)
	startCollector(t, fmt.Sprintf(guardedConfig, endpoint, certificate, key))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	ask := func(path, password string) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+endpoint+path, http.NoBody)
		require.NoError(t, err)
		if password != "" {
			request.SetBasicAuth("goose", password)
		}
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response
	}
	for _, path := range []string{"/", "/app.js", "/app.css", "/icon.svg", "/api/v1/overview", "/api/v1/configuration", "/nowhere"} {
		for _, wrong := range []string{"", "hiss"} {
			response := ask(path, wrong)
			assert.Equal(t, http.StatusUnauthorized, response.StatusCode, path)
			assert.Equal(t, `Basic realm="console"`, response.Header.Get("WWW-Authenticate"), "browsers ask by it")
		}
		if path != "/nowhere" {
			assert.Equal(t, http.StatusOK, ask(path, "honk").StatusCode, path)
		}
	}
}
