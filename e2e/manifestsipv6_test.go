// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/e2e/cluster"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// In a cluster of IPv6, the agent scrapes annotated pods and its node's kubelet, by the manifest and by the values.
func TestManifestsScrapeOverIPv6(t *testing.T) {
	t.Parallel()
	probe, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 to test with: %s", err)
	}
	require.NoError(t, probe.Close())
	l := serve.Listen(t, "[::1]:0")
	serve.HTTP(t, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprint(w, goodPage)
	}))
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	k := cluster.Start(t)
	// The container's own port is another one than the annotation's.
	k.Create(t, roleObjects+"---"+strings.ReplaceAll(pod("web-a", "node-1", `"::1"`), `scrape: "true"`, fmt.Sprintf(`scrape: "true", prometheus.io/port: %q`, port)))

	var values helmValues
	require.NoError(t, yaml.Unmarshal([]byte(repository.Read(t, helmFolder+"agent.yaml")), &values))
	byValues, err := yaml.Marshal(values.AlternateConfig)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"manifest": readWorkload(t, repository.Read(t, deployed+"agent.yaml")).configs["godwit-agent"].Data["config.yaml"],
		"values":   string(byValues),
	} {
		t.Run(name, func(t *testing.T) {
			server := rwserver.New(t, rwserver.Options{})
			env := []string{
				"env", "NODE_NAME=node-1", "NODE_IP=::1", "OTEL_K8S_NODE_NAME=node-1", "OTEL_K8S_NODE_IP=::1",
				"GODWIT_REMOTE_WRITE_URL=" + server.URL(), "GODWIT_DATA=" + t.TempDir(),
			}
			c := startUnder(t, env, "godwit-agent", outsideOfCluster(t, k, text))
			wait.Until(t, firstSeries, func() (bool, string) {
				all := server.Series("up", "job", "pods", "pod", "web-a", "instance", net.JoinHostPort("::1", port))
				return len(all) == 1 && all[0].Samples[len(all[0].Samples)-1].V == 1, "the pod is not scraped at the port of its annotation"
			})
			for _, job := range []string{"kubelet", "cadvisor"} {
				wait.Until(t, firstSeries, func() (bool, string) {
					return len(server.Series("up", "job", job, "instance", "[::1]:10250", "node", "node-1")) == 1, "no target " + job + " with the node's address"
				})
			}
			assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
		})
	}
}

// outsideOfCluster changes a configuration of an agent on a node so that it runs outside of pods: it finds the API at
// its address, and scrapes often.
func outsideOfCluster(t *testing.T, k *cluster.Cluster, text string) string {
	t.Helper()
	var config struct {
		Receivers map[string]struct {
			Config map[string]any `yaml:"config"`
			Rest   map[string]any `yaml:",inline"`
		} `yaml:"receivers"`
		Service struct {
			Pipelines map[string]any `yaml:"pipelines"`
		} `yaml:"service"`
		Rest map[string]any `yaml:",inline"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(text, accountToken, configFile(t, "none"))), &config))
	delete(config.Rest, "extensions")
	scraping := config.Receivers["fastprometheus"].Config
	scraping["global"] = map[string]any{"scrape_interval": "1s"}
	found := 0
	jobs, _ := scraping["scrape_configs"].([]any)
	for _, job := range jobs {
		fields, _ := job.(map[string]any)
		mechanisms, _ := fields["kubernetes_sd_configs"].([]any)
		for _, mechanism := range mechanisms {
			api, _ := mechanism.(map[string]any)
			api["api_server"], api["authorization"] = k.URL, map[string]any{"credentials": k.Token}
			api["tls_config"] = map[string]any{"insecure_skip_verify": true}
			found++
		}
	}
	require.Equal(t, 1, found)
	out, err := yaml.Marshal(config)
	require.NoError(t, err)
	return string(out)
}
