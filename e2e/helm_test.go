// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/godwit-otel/godwit/e2e/cluster"
	"github.com/godwit-otel/godwit/e2e/repository"
)

const (
	helmFolder = "deploy/helm/"
	// chartVariable names the environment variable with the directory of the OpenTelemetry Collector's Helm chart,
	// which is not a Go module.
	chartVariable = "CHART"

	valuesKind   = "values of a Helm chart"
	operatorKind = "manifests for the operator"
	operated     = "deploy/operator/"
)

// helmValues are the values of the chart that a test reads.
type helmValues struct {
	Mode            string
	Image           struct{ Repository, Tag string }
	Command         struct{ Name string }
	AlternateConfig map[string]any `yaml:"alternateConfig"`
	Ports           map[string]struct {
		Enabled       bool
		ContainerPort int `yaml:"containerPort"`
	}
	Mounts []struct {
		Path string `yaml:"mountPath"`
	} `yaml:"extraVolumeMounts"`
	Resources struct{ Requests, Limits map[string]string }
	Security  struct {
		ReadOnly bool `yaml:"readOnlyRootFilesystem"`
	} `yaml:"securityContext"`
	Rest map[string]any `yaml:",inline"`
}

// Each file of values runs the image's distribution with a configuration that is valid for it, and mounts a volume
// where it writes.
func TestHelmValues(t *testing.T) {
	files := filesOf(t, helmFolder)
	require.Len(t, files, 3)
	for _, name := range files {
		t.Run(name, func(t *testing.T) {
			var values helmValues
			require.NoError(t, yaml.Unmarshal([]byte(repository.Read(t, name)), &values))
			distribution := image(t, values.Image.Repository+":"+values.Image.Tag)
			assert.Equal(t, distribution, values.Command.Name)
			text, err := yaml.Marshal(values.AlternateConfig)
			require.NoError(t, err)
			checkConfig(t, distribution, string(text))
			require.Len(t, values.Mounts, 1)
			assert.Equal(t, "/var/lib/"+distribution, values.Mounts[0].Path)
			assert.Contains(t, string(text), values.Mounts[0].Path)
			assert.True(t, values.Security.ReadOnly)
			assert.NotEmpty(t, values.Resources.Requests["memory"])
			assert.NotEmpty(t, values.Resources.Limits["memory"])
			// The chart's probe uses this endpoint.
			assert.Contains(t, string(text), "endpoint: 0.0.0.0:13133")
			assert.True(t, values.Ports["metrics"].Enabled)
			for port, p := range values.Ports {
				if !p.Enabled {
					continue
				}
				number := map[string]string{"metrics": "8888", "otlp": "4317", "otlp-http": "4318", "remote-write": "19291"}[port]
				require.NotEmpty(t, number, port)
				assert.Contains(t, string(text), number)
			}
		})
	}
}

// The API accepts what helm renders from the values, and the configuration is ours.
func TestHelmRendersOurValues(t *testing.T) {
	t.Parallel()
	chart := os.Getenv(chartVariable)
	if chart == "" {
		t.Skipf("no chart to render: set %s to a folder with the OpenTelemetry Collector's", chartVariable)
	}
	helm := filepath.Join(repository.Root(t), "bin", "rivals", "helm")
	if _, err := os.Stat(helm); err != nil {
		t.Skip("no helm to render with: run `make e2e-kubernetes`")
	}
	k := cluster.Need(t)
	k.Create(t, monitorKind("PodMonitor"))
	for _, name := range filesOf(t, helmFolder) {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command(helm, "template", "godwit", chart, "--namespace", "default", "--values", filepath.Join(repository.Root(t), name),
				"--kube-version", "1.34.1", "--api-versions", "monitoring.coreos.com/v1").CombinedOutput()
			require.NoError(t, err, "%s", out)
			kinds := map[string]int{}
			for _, o := range cluster.Objects(t, string(out)) {
				kinds[o.Kind()]++
				require.NoError(t, k.Check(o))
				if o.Kind() == "ConfigMap" {
					data, _ := o["data"].(cluster.Object)
					relay, _ := data["relay"].(string)
					checkConfig(t, distributionOf(t, name), relay)
				}
			}
			assert.Equal(t, 1, kinds["DaemonSet"]+kinds["StatefulSet"], kinds)
			assert.Equal(t, 1, kinds["ConfigMap"], kinds)
			t.Logf("%s: %v", name, kinds)
		})
	}
}

func distributionOf(t *testing.T, name string) string {
	t.Helper()
	var values helmValues
	require.NoError(t, yaml.Unmarshal([]byte(repository.Read(t, name)), &values))
	return values.Command.Name
}

// The operator's resources: each collector's configuration is valid for its image's distribution, and a PodMonitor
// selects the pods of our manifests.
func TestOperatorResources(t *testing.T) {
	seen := map[string]int{}
	for _, name := range filesOf(t, operated) {
		for _, o := range cluster.Objects(t, repository.Read(t, name)) {
			seen[o.Kind()]++
			spec, _ := o["spec"].(cluster.Object)
			switch o.Kind() {
			case "OpenTelemetryCollector":
				checkCollectorResource(t, spec)
			case "PodMonitor":
				checkPodMonitor(t, spec)
			default:
				_, err := decodeManifest([]byte(manifest(t, o)))
				require.NoError(t, err, "%s %s", o.Kind(), o.Name())
			}
		}
	}
	assert.Equal(t, 1, seen["OpenTelemetryCollector"])
	assert.Equal(t, 2, seen["PodMonitor"])
}

func checkCollectorResource(t *testing.T, spec cluster.Object) {
	t.Helper()
	named, _ := spec["image"].(string)
	text, err := yaml.Marshal(spec["config"])
	require.NoError(t, err)
	checkConfig(t, image(t, named), string(text))
	config, _ := spec["config"].(cluster.Object)
	assert.Contains(t, config["receivers"], "prometheus", "the one that the operator writes the allocator into")
}

func checkPodMonitor(t *testing.T, spec cluster.Object) {
	t.Helper()
	var monitor struct {
		Selector  struct{ MatchLabels map[string]string } `yaml:"selector"`
		Endpoints []struct{ Port string }                 `yaml:"podMetricsEndpoints"`
	}
	text, err := yaml.Marshal(spec)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "matchLabels", "matchlabels")), &monitor))
	for _, name := range filesOf(t, deployed) {
		w := readWorkload(t, repository.Read(t, name))
		if !labels.SelectorFromSet(monitor.Selector.MatchLabels).Matches(labels.Set(w.pod.Labels)) {
			continue
		}
		for _, p := range w.pod.Spec.Containers[0].Ports {
			if p.Name == monitor.Endpoints[0].Port {
				return
			}
		}
	}
	t.Errorf("no pod with that port has the labels %v", monitor.Selector.MatchLabels)
}

func manifest(t *testing.T, o cluster.Object) string {
	t.Helper()
	text, err := yaml.Marshal(o)
	require.NoError(t, err)
	return string(text)
}

// filesOf returns the repository's files in a directory.
func filesOf(t *testing.T, folder string) (files []string) {
	t.Helper()
	for _, name := range repository.Files(t) {
		if strings.HasPrefix(name, folder) {
			files = append(files, name)
		}
	}
	return files
}
