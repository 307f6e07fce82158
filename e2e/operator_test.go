// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/godwit-otel/godwit/e2e/cluster"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/internal/certtest"
)

// operatorVariable names the environment variable with the path of the operator's manager; its CRDs and webhooks are in
// the same directory.
const operatorVariable = "OPERATOR"

// startOperator starts the operator in a cluster with its CRDs and its webhooks.
func startOperator(t *testing.T, k *cluster.Cluster) {
	t.Helper()
	path := os.Getenv(operatorVariable)
	if path == "" {
		path = filepath.Join(repository.Root(t), "bin", "rivals", "operator-manager")
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no operator to test with: run `make e2e-kubernetes`, or set %s to its binary", operatorVariable)
	}
	beside := filepath.Dir(path)
	kinds, err := filepath.Glob(filepath.Join(beside, "operator-kinds", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, kinds)
	for _, name := range kinds {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		k.Create(t, string(text))
	}
	// It looks for its kinds only once, and the API server serves new kinds only after a moment.
	for version, kind := range map[string]string{"v1beta1": "OpenTelemetryCollector", "v1alpha1": "TargetAllocator"} {
		wait.Until(t, firstWords, func() (bool, string) {
			served, err := k.Kinds("opentelemetry.io/" + version)
			return slices.Contains(served, kind), fmt.Sprintf("no %s among %v: %v", kind, served, err)
		})
	}

	certificate, key := certtest.SelfSigned(t)
	dir := t.TempDir()
	served := filepath.Join(dir, "k8s-webhook-server", "serving-certs") // its default directory
	require.NoError(t, os.MkdirAll(served, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(served, "tls.crt"), []byte(certificate), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(served, "tls.key"), []byte(key), 0o600))
	probe, port := freeport.Addr(t), freeport.Get(t)
	p := process.Start(t, process.Settings{
		Path: path, Args: []string{"--webhook-port", fmt.Sprint(port), "--metrics-addr", "0", "--health-probe-addr", probe},
		Env: []string{"KUBECONFIG=" + k.Kubeconfig(t), "NAMESPACE=default", "TMPDIR=" + dir},
	})
	p.WaitHTTP(firstWords, "http://"+probe+"/readyz", nil)

	text, err := os.ReadFile(filepath.Join(beside, "operator-webhooks.yaml"))
	require.NoError(t, err)
	for _, o := range cluster.Objects(t, string(text)) {
		hooks, _ := o["webhooks"].([]any)
		require.NotEmpty(t, hooks)
		for _, hook := range hooks {
			callHere(t, hook, port, certificate)
		}
		require.NoError(t, k.Put(o))
	}
}

// callHere makes the API server call a webhook at a port of this machine instead of a service.
func callHere(t *testing.T, hook any, port int, certificate string) {
	t.Helper()
	fields, _ := hook.(cluster.Object)
	client, _ := fields["clientConfig"].(cluster.Object)
	service, _ := client["service"].(cluster.Object)
	path, _ := service["path"].(string)
	require.NotEmpty(t, path)
	delete(client, "service")
	client["url"] = fmt.Sprintf("https://127.0.0.1:%d%s", port, path)
	client["caBundle"] = base64.StdEncoding.EncodeToString([]byte(certificate))
}

// The operator's webhooks accept our resource. What the operator makes of it runs our image, with a configuration that
// our binary accepts, and an allocator that divides the targets of monitors with the rights in our file. Its pods meet
// the `restricted` standard.
func TestOperatorRunsOurCollector(t *testing.T) {
	t.Parallel()
	k := cluster.Need(t)
	for _, kind := range []string{"ServiceMonitor", "PodMonitor", "Probe", "ScrapeConfig"} {
		k.Create(t, monitorKind(kind))
	}
	startOperator(t, k)
	k.Create(t, "{apiVersion: v1, kind: Namespace, metadata: {name: godwit, labels: {pod-security.kubernetes.io/enforce: restricted}}}")
	for _, o := range cluster.Objects(t, repository.Read(t, operated+"collector.yaml")) {
		wait.Until(t, firstWords, func() (bool, string) { // the API server serves a new kind only after a moment
			err := k.Put(o)
			return err == nil, fmt.Sprint(err)
		})
	}

	set := controllerOf(t, k, "statefulsets", "godwit-collector")
	assert.EqualValues(t, 3, *set.Spec.Replicas)
	named := set.Spec.Template.Spec.Containers[0].Image
	assert.Equal(t, "registry.example.com/godwit/godwit-agent:0.1.0", named)
	config := configMap(t, k, "godwit-collector", "collector.yaml")
	inPod := []string{"POD_NAME=godwit-collector-0", "SHARD=0"}
	exit, output := command(t, image(t, named), append(configEnv(t), inPod...), "validate", "--config", configFile(t, config))
	assert.Zero(t, exit, output)
	require.NoError(t, fits(t, configSchema(t), config))
	assert.Empty(t, operatedWorkload(t, k, set).misfits(t, config))

	// The pods that the operator's objects would lead to, except for addresses and paths: one collector, and the
	// allocator.
	k.Create(t, roleObjects+"---"+pod("web-a", "node-1", "10.2.0.1"))
	require.NoError(t, k.Put(running(t, set, "godwit-collector-0", "10.9.0.1")))
	require.NoError(t, k.Put(running(t, controllerOf(t, k, "deployments", "godwit-targetallocator"), "godwit-targetallocator-x", "10.9.0.2")))
	target := targets.New(t, targets.Page{Body: goodPage})
	k.Create(t, monitors(target.Addr()))
	allocator := startPlainAllocator(t, k, configMap(t, k, "godwit-targetallocator", "targetallocator.yaml"))
	server := rwserver.New(t, rwserver.Options{})
	health := freeport.Addr(t)
	overlay := fmt.Sprintf(`
receivers: {prometheus: {target_allocator: {endpoint: "http://%s", interval: 1s}}}
extensions: {console: {endpoint: %s}, health_check: {endpoint: %s}}
service: {telemetry: {metrics: {level: none}}}
`, allocator, freeport.Addr(t), health)
	c := process.Start(t, process.Settings{
		Path: process.Binary(t, image(t, named)), Args: []string{"--config", configFile(t, config), "--config", configFile(t, overlay)},
		Env: append(inPod, "GODWIT_REMOTE_WRITE_URL="+server.URL(), "GODWIT_DATA="+t.TempDir()),
	})
	c.WaitHTTP(firstWords, "http://"+health+"/", nil)
	scrapesMonitored(t, server)
	mayFollow(t, k, cluster.AllocatorToken, "/api/v1/nodes", "/api/v1/services", "/api/v1/endpoints", "/api/v1/pods", "/api/v1/namespaces",
		"/apis/discovery.k8s.io/v1/endpointslices", "/apis/monitoring.coreos.com/v1/servicemonitors", "/apis/monitoring.coreos.com/v1/podmonitors",
		"/apis/monitoring.coreos.com/v1/probes", "/apis/monitoring.coreos.com/v1alpha1/scrapeconfigs")
	require.ErrorContains(t, k.As(cluster.AllocatorToken, http.MethodGet, "/api/v1/namespaces/default/configmaps/none"), "404", "it may ask for one that a monitor refers to")
	for _, path := range []string{"/api/v1/secrets", "/api/v1/configmaps", "/api/v1/namespaces/default/pods/web-a"} {
		require.ErrorContains(t, k.As(cluster.AllocatorToken, http.MethodGet, path), "403", path)
	}
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}

// operatedWorkload returns what the operator made around its StatefulSet.
func operatedWorkload(t *testing.T, k *cluster.Cluster, set *appsv1.StatefulSet) *workload {
	t.Helper()
	w := newWorkload()
	w.pod, w.selector, w.claims = set.Spec.Template, set.Spec.Selector, set.Spec.VolumeClaimTemplates
	objectNamed(t, k, "/api/v1/namespaces/godwit/services", "godwit-collector-monitoring")
	services, err := k.List("/api/v1/namespaces/godwit/services")
	require.NoError(t, err)
	for _, o := range services {
		if strings.HasPrefix(o.Name(), "godwit-collector") {
			o["apiVersion"], o["kind"] = "v1", "Service"
			object, err := decodeManifest([]byte(manifest(t, o)))
			require.NoError(t, err)
			w.add(t, object)
		}
	}
	return w
}

// controllerOf waits for what the operator makes of our resource.
func controllerOf(t *testing.T, k *cluster.Cluster, kind, name string) *appsv1.StatefulSet {
	t.Helper()
	return setOf(t, objectNamed(t, k, "/apis/apps/v1/namespaces/godwit/"+kind, name))
}

// running returns a pod of a StatefulSet that runs on a node.
func running(t *testing.T, set *appsv1.StatefulSet, name, ip string) cluster.Object {
	t.Helper()
	o := podOf(t, &workload{pod: set.Spec.Template, claims: set.Spec.VolumeClaimTemplates}, name)
	spec, _ := o["spec"].(cluster.Object)
	spec["nodeName"] = "node-1"
	o["status"] = cluster.Object{
		"phase": "Running", "podIP": ip, "podIPs": []any{cluster.Object{"ip": ip}}, "hostIP": "10.1.0.1",
		"conditions": []any{cluster.Object{"type": "Ready", "status": "True"}},
	}
	return o
}

// startPlainAllocator starts the allocator without TLS, as in our manifests' namespace, with the rights of our file.
func startPlainAllocator(t *testing.T, k *cluster.Cluster, config string) (addr string) {
	t.Helper()
	addr = freeport.Addr(t)
	p := process.Start(t, process.Settings{Path: allocatorBinary(t), Args: []string{
		"--config-file", configFile(t, config), "--kubeconfig-path", k.KubeconfigAs(t, cluster.AllocatorToken), "--listen-addr", addr,
	}, Env: []string{"OTELCOL_NAMESPACE=godwit"}})
	p.WaitHTTP(firstWords, "http://"+addr+"/livez", nil)
	return addr
}

// objectNamed waits for the object at a path whose name has this prefix.
func objectNamed(t *testing.T, k *cluster.Cluster, path, prefix string) (found cluster.Object) {
	t.Helper()
	wait.Until(t, firstWords, func() (bool, string) {
		all, err := k.List(path)
		for _, o := range all {
			if strings.HasPrefix(o.Name(), prefix) {
				found = o
				return true, ""
			}
		}
		return false, fmt.Sprintf("no %s in %s: %v", prefix, path, err)
	})
	return found
}

func configMap(t *testing.T, k *cluster.Cluster, prefix, key string) string {
	t.Helper()
	data, _ := objectNamed(t, k, "/api/v1/namespaces/godwit/configmaps", prefix)["data"].(map[string]any)
	text, _ := data[key].(string)
	require.NotEmpty(t, text, "%s of %s", key, prefix)
	return text
}
