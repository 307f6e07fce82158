// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
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
	Resources  struct{ Requests, Limits map[string]string }
	GoMemLimit *bool `yaml:"useGOMEMLIMIT"`
	Security   struct {
		ReadOnly bool `yaml:"readOnlyRootFilesystem"`
	} `yaml:"securityContext"`
	Rest map[string]any `yaml:",inline"`
}

// Each file of values runs the image's distribution with a configuration that is valid for it, and mounts a volume
// where it writes.
func TestHelmValues(t *testing.T) {
	files := collectorValues(t)
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
			require.NotNil(t, values.GoMemLimit, "the chart would set GOMEMLIMIT, which runtimeprofile does not change")
			assert.False(t, *values.GoMemLimit)
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

// A renderer renders the OpenTelemetry Collector's chart, and validates the objects with an API.
type renderer struct {
	helm, chart string
	cluster     *cluster.Cluster
}

func newRenderer(t *testing.T) *renderer {
	t.Helper()
	r := &renderer{filepath.Join(repository.Root(t), "bin", "rivals", "helm"), os.Getenv(chartVariable), nil}
	if r.chart == "" {
		t.Skipf("no chart to render: set %s to a folder with the OpenTelemetry Collector's", chartVariable)
	}
	if _, err := os.Stat(r.helm); err != nil {
		t.Skip("no helm to render with: run `make e2e-kubernetes`")
	}
	r.cluster = cluster.Need(t)
	for _, kind := range []string{"PodMonitor", "ServiceMonitor"} {
		r.cluster.Create(t, monitorKind(kind))
	}
	r.cluster.Create(t, "{apiVersion: v1, kind: Namespace, metadata: {name: godwit, labels: {pod-security.kubernetes.io/enforce: restricted}}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}")
	return r
}

// template returns what helm makes of a chart and files of values.
func (r *renderer) template(t *testing.T, release, chart string, files ...string) []cluster.Object {
	t.Helper()
	args := []string{"template", release, chart, "--namespace", "default", "--kube-version", "1.34.1", "--api-versions", "monitoring.coreos.com/v1"}
	for _, file := range files {
		args = append(args, "--values", file)
	}
	out, err := exec.Command(r.helm, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return cluster.Objects(t, string(out))
}

// render returns how many objects of each kind helm renders from files of values. The API accepts them, and the
// configuration is valid for the distribution. The pods meet the `restricted` standard, unless they use the host's
// network.
func (r *renderer) render(t *testing.T, distribution string, files ...string) map[string]int {
	t.Helper()
	kinds := map[string]int{}
	for _, o := range r.template(t, "godwit", r.chart, files...) {
		kinds[o.Kind()]++
		require.NoError(t, r.cluster.Check(o))
		switch o.Kind() {
		case "ConfigMap":
			data, _ := o["data"].(cluster.Object)
			relay, _ := data["relay"].(string)
			checkConfig(t, distribution, relay)
		case "DaemonSet", "StatefulSet", "Deployment":
			set := setOf(t, o)
			err := r.cluster.Check(podOf(t, &workload{pod: set.Spec.Template, claims: set.Spec.VolumeClaimTemplates}, "one"))
			if set.Spec.Template.Spec.HostNetwork {
				require.ErrorContains(t, err, "hostNetwork")
			} else {
				require.NoError(t, err)
			}
		}
	}
	assert.Equal(t, 1, kinds["DaemonSet"]+kinds["StatefulSet"]+kinds["Deployment"], kinds)
	assert.Equal(t, 1, kinds["ConfigMap"], kinds)
	return kinds
}

// The API accepts what helm renders from the values, and the configuration is ours.
func TestHelmRendersOurValues(t *testing.T) {
	t.Parallel()
	r := newRenderer(t)
	for _, name := range collectorValues(t) {
		t.Run(name, func(t *testing.T) {
			kinds := r.render(t, distributionOf(t, name), filepath.Join(repository.Root(t), name))
			t.Logf("%s: %v", name, kinds)
		})
	}
}

// The same with values of an operator's own over ours.
func TestHelmRendersOverrides(t *testing.T) {
	t.Parallel()
	r := newRenderer(t)
	f := func(what, name, values string) {
		t.Helper()
		t.Run(what, func(t *testing.T) {
			name = helmFolder + name
			r.render(t, distributionOf(t, name), filepath.Join(repository.Root(t), name), configFile(t, values))
		})
	}
	f("the host's network", "agent.yaml", "{hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet}")
	f("no console", "agent.yaml", "alternateConfig: {extensions: {console: null}, service: {extensions: [health_check, runtimeprofile]}}")
	f("no profile", "gateway.yaml", "{useGOMEMLIMIT: true, alternateConfig: {extensions: {runtimeprofile: null}, service: {extensions: [console, health_check]}}}")
	f("more jobs", "agent.yaml", `
alternateConfig:
  receivers:
    fastprometheus/more: {config: {scrape_configs: [{job_name: more, static_configs: [{targets: ["db.example.com:9104"]}]}]}}
  service: {pipelines: {metrics: {receivers: [fastprometheus, fastprometheus/more]}}}
`)
	f("some nodes", "agent.yaml", "{tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}], nodeSelector: {kubernetes.io/os: linux}, priorityClassName: system-node-critical}")
	f("a secret that is there", "agent.yaml", "{extraEnvsFrom: [], extraEnvs: [{name: GODWIT_REMOTE_WRITE_URL, valueFrom: {secretKeyRef: {name: mine, key: url}}}]}")
	f("a certificate from a secret", "gateway.yaml", `
alternateConfig:
  exporters: {remotewrite: {http: {tls: {ca_file: /etc/mine/ca.crt}}}}
extraVolumes: [{name: mine, secret: {secretName: mine}}]
extraVolumeMounts: [{name: data, mountPath: /var/lib/godwit-gateway}, {name: mine, mountPath: /etc/mine, readOnly: true}]
`)
	f("a proxy", "allocated.yaml", `extraEnvs: [{name: HTTPS_PROXY, value: "http://proxy.example.com:3128"}, {name: NO_PROXY, value: "10.0.0.0/8,.svc"}]`)
	f("another port for metrics", "agent.yaml", `
alternateConfig: {service: {telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: "::", port: 9999}}}}]}}}}
ports: {metrics: {containerPort: 9999, servicePort: 9999}}
podAnnotations: {prometheus.io/port: "9999"}
`)
	f("another port for health", "agent.yaml", `
alternateConfig: {extensions: {health_check: {endpoint: "[::]:14133"}}}
livenessProbe: {httpGet: {port: 14133}}
readinessProbe: {httpGet: {port: 14133}}
networkPolicy: {extraIngressRules: [{ports: [{port: 14133, protocol: TCP}]}]}
`)
	f("another port for OTLP", "gateway.yaml", `
alternateConfig: {receivers: {otlpstream: {protocols: {grpc: {endpoint: "[::]:14317"}, http: null}}}}
ports: {otlp: {containerPort: 14317}, otlp-http: {enabled: false}}
`)
	f("two replicas", "allocated.yaml", "{replicaCount: 2, podDisruptionBudget: {enabled: false}, podMonitor: {enabled: false}, serviceMonitor: {enabled: true}, service: {enabled: true}}")
	f("no volumes", "allocated.yaml", "{mode: deployment, replicaCount: 2, extraVolumes: [{name: data, emptyDir: {}}], serviceAccount: {automountServiceAccountToken: false}}")
	f("no scaling", "gateway.yaml", "{autoscaling: {enabled: false}, replicaCount: 1, service: {type: LoadBalancer}}")
	f("other names", "gateway.yaml", "{fullnameOverride: metrics, namespaceOverride: monitoring, image: {digest: \"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"}}")
}

// setOf returns what a controller has in common with a StatefulSet.
func setOf(t *testing.T, o cluster.Object) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{}
	text, err := json.Marshal(o)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, set))
	return set
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
