// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	reuses     = "The memory of metrics is used again"
	doesNot    = "The memory of metrics is not used again"
	manyScrape = 6 // scrapes of a target, more than there are trees to reuse
)

// The agent with its shipped configuration reuses the memory of metrics, except with the Collector's feature gate that
// frees it. Scrapes arrive in both cases.
func TestTheShippedAgentWithPooling(t *testing.T) {
	t.Parallel()
	for gates, said := range map[string]string{"": reuses, "pdata.useProtoPooling": doesNot} {
		t.Run("gates="+gates, func(t *testing.T) {
			t.Parallel()
			server := rwserver.New(t, rwserver.Options{})
			dir := t.TempDir()
			watched := filepath.Join(dir, "targets")
			require.NoError(t, os.Mkdir(watched, 0o700))
			env := []string{"GODWIT_TARGETS=" + watched, "GODWIT_DATA=" + filepath.Join(dir, "data"), "GODWIT_REMOTE_WRITE_URL=" + server.URL()}
			for name := range documentedPorts(t) {
				env = append(env, fmt.Sprintf("%s=%d", name, freeport.Get(t)))
			}
			a := process.Start(t, process.Settings{
				Path: process.Binary(t, "godwit-agent"),
				Args: []string{"--config", filepath.Join(repository.Root(t), agentConfig), "--feature-gates=" + gates},
				Env:  env, Dir: dir,
			})
			var pages []*targets.Target
			for _, name := range []string{"a", "b"} { // they share the parse cache of their pages
				target := targets.NewFunc(t, func(scrape int) targets.Page {
					return targets.Page{Body: fmt.Sprintf(beatsPage, scrape)}
				})
				targets.WriteFileSD(t, filepath.Join(watched, name+".json"), map[string]string{
					"job": name, "__scrape_interval__": "1s", "__scrape_timeout__": "1s",
				}, target)
				pages = append(pages, target)
			}
			a.WaitLog(firstWords, said)
			for i, name := range []string{"a", "b"} {
				wait.Until(t, firstSeries, func() (bool, string) {
					arrived, failed := beats(server, "job", name)
					return len(arrived) >= manyScrape, fmt.Sprintf("%d of %d scrapes arrived, %d failed", len(arrived), pages[i].Scrapes(), failed)
				})
				everyBeat(t, server, "job", name)
			}
			assert.Zero(t, a.Stop(syscall.SIGTERM, drainTime))
			assert.NotContains(t, a.Output(), "panic")
		})
	}
}

// Contrib's processors that add to resources what is known of hosts and pods keep no metrics: what they add arrives, and
// the memory is reused.
func TestMemoryIsReusedWithWhatIsKnownOfHosts(t *testing.T) {
	t.Parallel()
	server := rwserver.New(t, rwserver.Options{})
	var lines []string
	for _, name := range []string{"a", "b"} {
		target := targets.NewFunc(t, func(scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(beatsPage, scrape)} })
		lines = append(lines, job(name, target.Addr(), ""))
	}
	c := startUnder(t, []string{"env", "OTEL_RESOURCE_ATTRIBUTES=coast=north"}, repository.Full, fmt.Sprintf(scraping, server.URL(), jobs(lines...)), `
exporters: {remotewrite: {target_info: {enabled: true}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 1000}
  resourcedetection: {detectors: [env]}
  k8sattributes: {passthrough: true}
service: {pipelines: {metrics: {processors: [memory_limiter, k8sattributes, resourcedetection]}}}
`)
	c.WaitLog(firstWords, reuses)
	c.WaitLog(firstWords, `"restored_first": "attributes of resources"`)
	for _, name := range []string{"a", "b"} {
		wait.Until(t, firstSeries, func() (bool, string) {
			arrived, failed := beats(server, "job", name)
			return len(arrived) >= manyScrape, fmt.Sprintf("%d scrapes arrived, %d failed", len(arrived), failed)
		})
		everyBeat(t, server, "job", name)
		assert.Len(t, server.Series("target_info", "job", name), 1)
		assert.Len(t, server.Series("target_info", "job", name, "coast", "north"), 1)
	}
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}

// Tenants from resource attributes, with metrics whose memory is reused.
func TestTenantsOfScrapedResources(t *testing.T) {
	t.Parallel()
	server := rwserver.New(t, rwserver.Options{})
	var lines []string
	for _, name := range []string{"a", "b"} {
		target := targets.NewFunc(t, func(scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(beatsPage, scrape)} })
		lines = append(lines, job(name, target.Addr(), ""))
	}
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(lines...)),
		"exporters: {remotewrite: {tenant: {header: X-Scope-OrgID, from_resource_attribute: service.name, default: nobody}}}")
	c.WaitLog(firstWords, reuses)
	for _, name := range []string{"a", "b"} {
		wait.Until(t, firstSeries, func() (bool, string) {
			arrived, failed := beats(server, "job", name)
			return len(arrived) >= manyScrape, fmt.Sprintf("%d scrapes arrived, %d failed", len(arrived), failed)
		})
		everyBeat(t, server, "job", name)
	}
	tenants := map[string]bool{}
	for _, r := range server.Requests() {
		tenants[r.Header.Get("X-Scope-Orgid")] = true
	}
	assert.Equal(t, map[string]bool{"a": true, "b": true}, tenants)
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}
