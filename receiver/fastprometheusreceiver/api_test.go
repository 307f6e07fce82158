// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
)

// An apiClient is a client of a receiver's API, over a Unix socket.
type apiClient struct {
	*http.Client

	section string // of the configuration
}

func newAPIClient(t *testing.T) *apiClient {
	t.Helper()
	dir, err := os.MkdirTemp("", "api") // t.TempDir is too long a path for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	socket := filepath.Join(dir, "s")
	var dialer net.Dialer
	return &apiClient{
		Client: &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", socket)
			},
		}},
		section: fmt.Sprintf("\napi_server: {enabled: true, server_config: {transport: unix, endpoint: %q}}\n", socket),
	}
}

func (c *apiClient) text(t *testing.T, path string) string {
	t.Helper()
	response, err := c.Get("http://localhost" + path)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(body))
	return string(body)
}

func data[T any](t *testing.T, c *apiClient, path string) T {
	t.Helper()
	var out struct {
		Data T `json:"data"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.text(t, path)), &out))
	return out.Data
}

const pageOfCounters = "# TYPE requests_total counter\n# HELP requests_total All \"requests\".\nrequests_total{code=\"200\"} 42\nrequests_total{code=\"500\"} 1\n"

func TestAPI(t *testing.T) {
	a := newEndpoint(t, pageOfCounters)
	c := newAPIClient(t)
	o := newOffice(t)
	o.assign("theirs", "", "127.0.0.1:1")
	r := run(t, c.section+fmt.Sprintf(allocated, o.URL)+fmt.Sprintf(`
config:
  global: {external_labels: {cluster: east}}
  scrape_configs:
    - job_name: test
      scrape_interval: 100ms
      scrape_timeout: 100ms
      target_limit: 5
      basic_auth: {username: godwit, password: unspeakable}
      static_configs: [{targets: [%s, "dropped:1"]}]
      relabel_configs: [{source_labels: [__address__], regex: "dropped.*", action: drop}]
`, a.address()))
	r.await(t, is("requests_total", 42))
	require.Eventually(t, func() bool { return r.census()[stateFailing] == 1 }, patience, glance)

	assert.Equal(t, []any{"test", "theirs"}, data[map[string]any](t, c, "/api/v1/scrape_pools")["scrapePools"])
	targets := data[struct {
		ActiveTargets []struct {
			DiscoveredLabels, Labels                                 map[string]string
			ScrapePool, ScrapeURL, Health, LastError, ScrapeInterval string
		}
		DroppedTargetCounts map[string]int
	}](t, c, "/api/v1/targets")
	require.Len(t, targets.ActiveTargets, 2)
	up, down := targets.ActiveTargets[0], targets.ActiveTargets[1]
	assert.Equal(t, "up", up.Health)
	assert.Equal(t, map[string]string{"job": "test", "instance": a.address()}, up.Labels)
	assert.Equal(t, a.address(), up.DiscoveredLabels["__address__"])
	assert.Equal(t, "http://"+a.address()+"/metrics", up.ScrapeURL)
	assert.Equal(t, "100ms", up.ScrapeInterval)
	assert.Equal(t, "theirs", down.ScrapePool)
	assert.Equal(t, "down", down.Health)
	assert.NotEmpty(t, down.LastError)
	assert.Equal(t, map[string]int{"test": 1, "theirs": 0}, targets.DroppedTargetCounts)

	assert.Equal(t, []map[string]any{{
		"target": map[string]any{"job": "test", "instance": a.address()},
		"metric": "requests_total", "type": "counter", "help": `All "requests".`, "unit": "",
	}}, data[[]map[string]any](t, c, "/api/v1/targets/metadata"))

	// The configuration is shown completely except for secrets, and can be loaded.
	shown := data[map[string]string](t, c, "/api/v1/status/config")["yaml"]
	assert.NotContains(t, shown, "unspeakable")
	read, err := promconfig.Load(shown, nil)
	require.NoError(t, err)
	require.Len(t, read.ScrapeConfigs, 2)
	assert.Equal(t, "theirs", read.ScrapeConfigs[1].JobName)
	assert.Equal(t, "east", read.GlobalConfig.ExternalLabels.Get("cluster"))
	assert.Equal(t, true, data[map[string]any](t, c, "/api/v1/status/runtimeinfo")["reloadConfigSuccess"])
	assert.Equal(t, "1.2.3", data[map[string]any](t, c, "/api/v1/status/buildinfo")["version"])

	metrics := strings.ReplaceAll(c.text(t, "/metrics"), r.settings.ID.String(), "ours")
	for _, line := range []string{
		`prometheus_target_scrape_pools_total{receiver="ours"} 2`,
		`prometheus_target_scrape_pool_targets{receiver="ours",scrape_job="test"} 1`,
		`prometheus_target_scrape_pool_target_limit{receiver="ours",scrape_job="test"} 5`,
		`prometheus_sd_http_failures_total{receiver="ours"} 0`,
	} {
		assert.Contains(t, strings.Split(metrics, "\n"), line)
	}
	c.text(t, "/-/ready")

	require.NoError(t, r.Shutdown(t.Context()))
	_, err = c.Get("http://localhost/-/ready")
	require.Error(t, err)
}

// Metadata are those of the last page.
func TestAPIMetadataFollowsThePage(t *testing.T) {
	a := newEndpoint(t, pageOfCounters)
	c := newAPIClient(t)
	run(t, c.section+fmt.Sprintf(static, a.address()))
	names := func() []any {
		var out []any
		for _, m := range data[[]map[string]any](t, c, "/api/v1/targets/metadata") {
			out = append(out, m["metric"])
		}
		return out
	}
	require.Eventually(t, func() bool { return len(names()) == 1 }, patience, glance)
	a.text(pageOfCounters + "# TYPE more gauge\nmore 1\n")
	require.Eventually(t, func() bool { return len(names()) == 2 }, patience, glance)
	assert.Equal(t, []any{"more", "requests_total"}, names())
}

// Requests to the API during load, reloads and shutdown do no harm, whether they are answered or not.
func TestAPIUnderLoad(t *testing.T) {
	a := newEndpoint(t, pageOfCounters)
	c := newAPIClient(t)
	o := newOffice(t)
	for i := range 5 {
		o.assign(fmt.Sprint("job", i), "", a.address())
	}
	r := run(t, c.section+fmt.Sprintf(allocated, o.URL))
	r.await(t, is("requests_total", 42))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, path := range []string{"targets", "targets/metadata", "status/config", "scrape_pools", "../../metrics"} {
				response, err := c.Get("http://localhost/api/v1/" + path)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		}
	}()
	for i := range 5 {
		o.withdraw(fmt.Sprint("job", i))
		o.assign(fmt.Sprint("job", i+5), "", a.address())
		require.Eventually(t, func() bool { return r.toolsOf(fmt.Sprint("job", i+5)) != nil }, patience, glance)
	}
	require.NoError(t, r.Shutdown(t.Context()))
	<-done
}

// The API is not essential: targets are scraped although its address is in use.
func TestAPIAddressInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	r := prepare(t, configure(t, fmt.Sprintf("api_server: {enabled: true, server_config: {endpoint: %q}}", listener.Addr())+fmt.Sprintf(static, "a:1")))
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, r.Shutdown(t.Context()))
}
