// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/godwit-otel/godwit/e2e/cluster"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	allocatedValues = helmFolder + "allocated.yaml"
	// allocatorValues are for the chart of the target allocator, the others in the folder for that of the collector.
	allocatorValues = helmFolder + "allocator.yaml"
)

// collectorValues returns the files of values for the collector's chart.
func collectorValues(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(filesOf(t, helmFolder), func(name string) bool { return name == allocatorValues })
}

// allocation is what the two files of values, or the objects that two charts make of them, say of each other.
type allocation struct {
	endpoint string            // of the allocator's service
	config   string            // of the allocator
	labels   map[string]string // of an agent's pod
}

// allocationOfValues says what the charts would make of the values: the allocator's service is named by
// fullnameOverride, and its pods look for agents in their own namespace.
func allocationOfValues(t *testing.T) allocation {
	t.Helper()
	var allocator struct {
		Name   string `yaml:"fullnameOverride"`
		Values struct {
			Config map[string]any `yaml:"config"`
		} `yaml:"targetAllocator"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(repository.Read(t, allocatorValues)), &allocator))
	require.NotEmpty(t, allocator.Values.Config)
	allocator.Values.Config["collector_namespace"] = "default"
	config, err := yaml.Marshal(allocator.Values.Config)
	require.NoError(t, err)
	var agents struct {
		Labels map[string]string `yaml:"podLabels"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(repository.Read(t, allocatedValues)), &agents))
	return allocation{"http://" + allocator.Name + "-ta:80", string(config), agents.Labels}
}

// allocationOfCharts renders the values. The allocator's chart is beside the collector's.
func allocationOfCharts(t *testing.T, r *renderer) (a allocation) {
	t.Helper()
	root := repository.Root(t)
	for _, o := range r.template(t, "somebodys-name", filepath.Join(r.chart, "..", "opentelemetry-target-allocator"), filepath.Join(root, allocatorValues)) {
		if metadata, _ := o["metadata"].(cluster.Object); strings.HasPrefix(o.Kind(), "Cluster") {
			delete(metadata, "namespace") // the chart writes one, and helm ignores it
		}
		require.NoError(t, r.cluster.Check(o))
		switch o.Kind() {
		case "Service":
			spec, _ := o["spec"].(cluster.Object)
			port, _ := spec["ports"].([]any)[0].(cluster.Object)
			a.endpoint = "http://" + net.JoinHostPort(o.Name(), fmt.Sprint(port["port"]))
		case "ConfigMap":
			data, _ := o["data"].(cluster.Object)
			a.config, _ = data["targetallocator.yaml"].(string)
		}
	}
	for _, o := range r.template(t, "another-name", r.chart, filepath.Join(root, allocatedValues)) {
		if o.Kind() == "StatefulSet" {
			a.labels = setOf(t, o).Spec.Template.Labels
		}
	}
	return a
}

// agentsConfig returns the configuration of the agents.
func agentsConfig(t *testing.T) string {
	t.Helper()
	var values helmValues
	require.NoError(t, yaml.Unmarshal([]byte(repository.Read(t, allocatedValues)), &values))
	text, err := yaml.Marshal(values.AlternateConfig)
	require.NoError(t, err)
	return string(text)
}

// The agents ask the service that the allocator's chart makes, and have the labels that the allocator looks for.
func TestHelmAllocatorAndAgentsFitTogether(t *testing.T) {
	t.Parallel()
	check := func(a allocation) {
		t.Helper()
		assert.Contains(t, agentsConfig(t), "${env:GODWIT_ALLOCATOR:-"+a.endpoint+"}")
		var config struct {
			Selector map[string]map[string]string `yaml:"collector_selector"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(a.config), &config))
		require.NotEmpty(t, config.Selector["matchlabels"], "the allocator finds no agents")
		assert.Subset(t, a.labels, config.Selector["matchlabels"])
	}
	a := allocationOfValues(t)
	check(a)
	if os.Getenv(chartVariable) == "" {
		return
	}
	of := allocationOfCharts(t, newRenderer(t))
	check(of)
	assert.Equal(t, a.endpoint, of.endpoint)
	assert.Subset(t, of.labels, a.labels)
}

// An agent with our values scrapes what an allocator with our values gives it. Our PodMonitors find the pods of our
// manifests there, at the port of their own metrics.
func TestHelmAllocatorGivesAgentsTheirTargets(t *testing.T) {
	t.Parallel()
	k := cluster.Need(t)
	a := allocationOfValues(t)
	for _, kind := range []string{"ServiceMonitor", "PodMonitor", "Probe", "ScrapeConfig"} {
		k.Create(t, monitorKind(kind))
	}
	k.Create(t, roleObjects+"---"+pod("web-a", "node-1", "10.2.0.1"))
	agent := cluster.Objects(t, pod("shards-0", "node-1", "10.9.0.1"))[0]
	agent["metadata"] = cluster.Object{"name": "shards-0", "namespace": "default", "labels": a.labels}
	require.NoError(t, k.Put(agent))
	target := targets.New(t, targets.Page{Body: goodPage})
	createMonitors(t, k, target.Addr())
	k.Create(t, "{apiVersion: v1, kind: Namespace, metadata: {name: godwit}}")
	for i, name := range filesOf(t, deployed) {
		w, set := readWorkload(t, repository.Read(t, name)), &appsv1.StatefulSet{}
		set.Spec.Template, set.Spec.VolumeClaimTemplates = w.pod, w.claims
		require.NoError(t, k.Put(running(t, set, fmt.Sprintf("own-%d", i), fmt.Sprintf("10.8.0.%d", i+1))))
	}
	k.Create(t, repository.Read(t, operated+"podmonitors.yaml"))

	addr, health := freeport.Addr(t), freeport.Addr(t)
	allocator := process.Start(t, process.Settings{Path: allocatorBinary(t), Args: []string{
		"--config-file", configFile(t, a.config), "--kubeconfig-path", k.Kubeconfig(t), "--listen-addr", addr,
	}, Env: []string{"OTELCOL_NAMESPACE=default"}})
	allocator.WaitHTTP(firstWords, "http://"+addr+"/livez", nil)
	for i, name := range []string{"godwit-agent", "godwit-gateway"} {
		wait.Until(t, firstSeries, func() (bool, string) {
			job := url.QueryEscape("podMonitor/godwit/" + name + "/0")
			given := page(t, "http://"+addr+"/jobs/"+job+"/targets?collector_id=shards-0")
			return strings.Contains(given, fmt.Sprintf("10.8.0.%d:8888", i+1)), name + " has no target: " + given
		})
	}
	server := rwserver.New(t, rwserver.Options{})
	overlay := fmt.Sprintf(`
receivers: {fastprometheus: {target_allocator: {interval: 1s, http_sd_config: {refresh_interval: 1s}}}}
extensions: {console: {endpoint: %s}, health_check: {endpoint: %s}}
service: {telemetry: {metrics: {level: none}}}
`, freeport.Addr(t), health)
	c := process.Start(t, process.Settings{
		Path: process.Binary(t, distributionOf(t, allocatedValues)), Args: []string{"--config", configFile(t, agentsConfig(t)), "--config", configFile(t, overlay)},
		Env: []string{"OTEL_K8S_POD_NAME=shards-0", "GODWIT_ALLOCATOR=http://" + addr, "GODWIT_REMOTE_WRITE_URL=" + server.URL(), "GODWIT_DATA=" + t.TempDir()},
	})
	c.WaitHTTP(firstWords, "http://"+health+"/", nil)
	scrapesMonitored(t, server)
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}
