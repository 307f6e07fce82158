// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/e2e/cluster"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	chartFolder = "testdata/chart"
	// podIP is an address on which no other test listens: the chart's ports are fixed.
	podIP = "127.0.159.1"
)

// presets are the parts of the chart's configuration that values switch on, by file name.
var presets = strings.Fields("logs host kubelet attributes cluster detection otlp events objects annotations")

// chartEnv is the environment of the chart's pods.
func chartEnv(more ...string) []string {
	return append(more, "MY_POD_IP="+podIP, "OTEL_K8S_NODE_NAME=node-1", "OTEL_K8S_NODE_IP="+podIP, "OTEL_K8S_NAMESPACE=default",
		"OTEL_K8S_POD_NAME=collector-x", "OTEL_K8S_POD_IP="+podIP, "K8S_NODE_NAME=node-1", "K8S_NODE_IP="+podIP)
}

// chartConfig returns the configuration that the chart renders for its default values and these presets.
func chartConfig(t *testing.T, presets ...string) string {
	t.Helper()
	config := map[string]any{}
	for _, name := range append([]string{"default"}, presets...) {
		text, err := os.ReadFile(filepath.Join(chartFolder, name+".yaml"))
		require.NoError(t, err)
		var part map[string]any
		require.NoError(t, yaml.Unmarshal(text, &part))
		addPreset(config, part)
	}
	text, err := yaml.Marshal(config)
	require.NoError(t, err)
	return string(text)
}

// addPreset merges a preset as the chart does: it prepends to lists of processors and appends to those of receivers and
// extensions.
func addPreset(config, part map[string]any) {
	for key, value := range part {
		switch was := config[key].(type) {
		case map[string]any:
			if now, ok := value.(map[string]any); ok {
				addPreset(was, now)
			}
		case []any:
			now, _ := value.([]any)
			switch key {
			case "processors":
				config[key] = append(append([]any{}, now...), was...)
			case "receivers", "extensions":
				config[key] = append(append([]any{}, was...), now...)
			default:
				config[key] = value
			}
		default:
			config[key] = value
		}
	}
}

// The chart's default configuration runs with our image and command, which take three lines of values.
func TestChartDefaults(t *testing.T) {
	c := process.Start(t, process.Settings{Path: process.Binary(t, repository.Full), Args: []string{"--config", configFile(t, chartConfig(t))}, Env: chartEnv()})
	c.WaitHTTP(firstWords, "http://"+podIP+":13133/", nil)
	wait.Until(t, firstSeries, func() (bool, string) {
		text := page(t, "http://"+podIP+":8888/metrics")
		points := metric(t, text, "otelcol_exporter_sent_metric_points")
		return points > 100 && strings.Contains(text, `k8s_pod_name="collector-x"`), fmt.Sprintf("%g points of its own metrics were sent", points)
	})
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	for line := range strings.Lines(c.Output()) {
		assert.NotContains(t, line, "\terror\t")
	}
}

// outsideOfPods replaces what a configuration of the chart finds only in a pod.
func outsideOfPods(t *testing.T, config string) string {
	t.Helper()
	folder := t.TempDir()
	return strings.NewReplacer("auth_type: serviceAccount", "auth_type: kubeConfig", "/hostfs", "/", "/var/lib/otelcol", folder,
		"/var/log/pods", folder).Replace(config)
}

// The full distribution accepts the configuration of each preset, and of all of them together.
func TestChartPresets(t *testing.T) {
	f := func(name string, presets ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := outsideOfPods(t, chartConfig(t, presets...))
			args := []string{"validate", "--config", configFile(t, text)}
			if slices.Contains(presets, "detection") {
				args = append(args, "--config", configFile(t, "processors: {resourcedetection/env: {k8s_api: {auth_type: kubeConfig}}}\n"))
			}
			nowhere := cluster.Cluster{URL: "https://127.0.0.1:1", Token: "none"}
			exit, output := command(t, repository.Full, chartEnv("KUBECONFIG="+nowhere.Kubeconfig(t)), args...)
			assert.Zero(t, exit, output)
		})
	}
	for _, name := range presets {
		f(name, name)
	}
	f("all", presets...)
}

// Each file of the directory is a preset that TestChartPresets covers.
func TestChartPresetsAreComplete(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(chartFolder, "*.yaml"))
	require.NoError(t, err)
	assert.Len(t, files, len(presets)+1)
}

func TestPresetsAddToLists(t *testing.T) {
	config := map[string]any{"processors": []any{"b"}, "receivers": []any{"b"}, "readers": []any{"b"}, "a": map[string]any{"x": 1}}
	addPreset(config, map[string]any{"processors": []any{"a"}, "receivers": []any{"c"}, "readers": []any{"c"}, "a": map[string]any{"y": 2}, "z": 3})
	assert.Equal(t, map[string]any{
		"processors": []any{"a", "b"}, "receivers": []any{"b", "c"}, "readers": []any{"c"}, "a": map[string]any{"x": 1, "y": 2}, "z": 3,
	}, config)
}
