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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// render returns what helm renders from files of values, and how many objects of each kind. The API accepts them, and
// the configuration is valid for the distribution. The pods meet the `restricted` standard, unless they use the host's
// network.
func (r *renderer) render(t *testing.T, distribution string, files ...string) (*workload, map[string]int) {
	t.Helper()
	w, kinds := newWorkload(), map[string]int{}
	for _, o := range r.template(t, "godwit", r.chart, files...) {
		kinds[o.Kind()]++
		require.NoError(t, r.cluster.Check(o))
		if strings.HasSuffix(o.Kind(), "Monitor") {
			w.monitors = append(w.monitors, monitorOf(t, o))
			continue
		}
		object, err := decodeManifest([]byte(manifest(t, o)))
		require.NoError(t, err)
		w.add(t, object)
	}
	assert.Equal(t, 1, kinds["DaemonSet"]+kinds["StatefulSet"]+kinds["Deployment"], kinds)
	require.Equal(t, 1, kinds["ConfigMap"], kinds)
	checkConfig(t, distribution, w.config())
	err := r.cluster.Check(podOf(t, w, "one"))
	if w.pod.Spec.HostNetwork {
		require.ErrorContains(t, err, "hostNetwork")
	} else {
		require.NoError(t, err)
	}
	return w, kinds
}

// monitored is an endpoint of a monitor.
type monitored struct {
	Port string `json:"port"`
}

// monitorOf reads a PodMonitor or a ServiceMonitor.
func monitorOf(t *testing.T, o cluster.Object) monitor {
	t.Helper()
	var read struct {
		Spec struct {
			Selector     metav1.LabelSelector `json:"selector"`
			PodEndpoints []monitored          `json:"podMetricsEndpoints"`
			Endpoints    []monitored          `json:"endpoints"`
		} `json:"spec"`
	}
	text, err := json.Marshal(o)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &read))
	m := monitor{name: o.Name(), ofPods: o.Kind() == "PodMonitor", labels: read.Spec.Selector.MatchLabels}
	for _, endpoint := range append(read.Spec.PodEndpoints, read.Spec.Endpoints...) {
		m.ports = append(m.ports, endpoint.Port)
	}
	require.NotEmpty(t, m.ports, o.Name())
	return m
}

// The API accepts what helm renders from the values, and the configuration is ours.
func TestHelmRendersOurValues(t *testing.T) {
	t.Parallel()
	r := newRenderer(t)
	for _, name := range collectorValues(t) {
		t.Run(name, func(t *testing.T) {
			w, kinds := r.render(t, distributionOf(t, name), filepath.Join(repository.Root(t), name))
			assert.Empty(t, w.misfits(t, w.config()))
			t.Logf("%s: %v", name, kinds)
		})
	}
}

// misfits returns those of what helm renders from a file of our values, and others over it.
func (r *renderer) misfits(t *testing.T, name, values string) []string {
	t.Helper()
	name = helmFolder + name
	w, _ := r.render(t, distributionOf(t, name), filepath.Join(repository.Root(t), name), configFile(t, values))
	return w.misfits(t, w.config())
}

// The same with values of an operator's own over ours.
func TestHelmRendersOverrides(t *testing.T) {
	t.Parallel()
	r := newRenderer(t)
	f := func(what, name, values string) {
		t.Helper()
		t.Run(what, func(t *testing.T) { assert.Empty(t, r.misfits(t, name, values)) })
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

// What a reader of our documents types works: the values of docs/kubernetes.md, and the names of objects in commands.
func TestHelmRendersTheDocuments(t *testing.T) {
	t.Parallel()
	r := newRenderer(t)
	whole, over := 0, 0
	for _, block := range repository.Blocks(repository.Read(t, "docs/kubernetes.md")) {
		switch {
		case strings.HasPrefix(block.Text, "alternateConfig:"):
			over++
			assert.Empty(t, r.misfits(t, "agent.yaml", block.Text))
		case block.Language == "yaml":
			whole++
			for _, o := range r.template(t, "some", r.chart, configFile(t, block.Text)) {
				require.NoError(t, r.cluster.Check(o))
			}
		}
	}
	assert.Equal(t, []int{1, 1}, []int{whole, over})
	values := helmFolder + "agent.yaml"
	for _, o := range r.template(t, "godwit-agent", r.chart, filepath.Join(repository.Root(t), values)) {
		if o.Kind() == "DaemonSet" {
			assert.Contains(t, repository.Read(t, values), "port-forward daemonset/"+o.Name()+" 13155")
		}
	}
}

// Values that fit nothing are found, although helm and the API accept them.
func TestMisfitsOfHelmValuesAreFound(t *testing.T) {
	t.Parallel()
	r := newRenderer(t)
	f := func(name, values, want string) {
		t.Helper()
		assert.Contains(t, strings.Join(r.misfits(t, name, values), "\n"), want, values)
	}
	f("agent.yaml", `{alternateConfig: {extensions: {health_check: {endpoint: "[::]:14133"}}}}`, "the liveness probe asks at port 13133, and health_check listens on 14133")
	f("agent.yaml", "{networkPolicy: {extraIngressRules: []}}", "13133 is closed")
	f("allocated.yaml", "{podMonitor: {metricsEndpoints: [{port: own}]}}", "port own of monitor godwit-opentelemetry-collector-agent is not that of the metrics")
	f("allocated.yaml", "{topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {component: agent-collector}}}]}", "spread constraint selects other pods")
	f("gateway.yaml", "{ports: {remote-write: {containerPort: 9291}}}", "nothing listens on 9291, port remote-write of service")
	f("gateway.yaml", "{extraVolumeMounts: [{name: data, mountPath: /data}]}", "no volume at /var/lib/godwit-gateway")
	f("agent.yaml", "{extraEnvsFrom: []}", "nobody sets GODWIT_REMOTE_WRITE_URL")
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
				checkPodMonitor(t, o)
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

func checkPodMonitor(t *testing.T, o cluster.Object) {
	t.Helper()
	m := monitorOf(t, o)
	selected := 0
	for _, name := range filesOf(t, deployed) {
		w := readWorkload(t, repository.Read(t, name))
		if labels.SelectorFromSet(m.labels).Matches(labels.Set(w.pod.Labels)) {
			selected++
			w.monitors = append(w.monitors, m)
			assert.Empty(t, w.misfits(t, w.config()))
		}
	}
	assert.Equal(t, 1, selected, "the pods of one file, by %v", m.labels)
	assert.Contains(t, manifest(t, o), "namespace: godwit", "it selects pods of its own namespace")
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
