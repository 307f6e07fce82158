// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-otel/godwit/e2e/cluster"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// One object for each role of discovery, and the objects that it needs.
const roleObjects = `
{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {addresses: [{type: InternalIP, address: 10.1.0.1}], daemonEndpoints: {kubeletEndpoint: {Port: 10250}}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default, labels: {app: web}}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: web, namespace: default}
subsets: [{addresses: [{ip: 10.2.0.1, targetRef: {kind: Pod, name: web-a, namespace: default}}], ports: [{name: http, port: 8080}]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: default, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.2.0.1], conditions: {ready: true}, targetRef: {kind: Pod, name: web-a, namespace: default}}]
ports: [{name: http, port: 8080}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: default}
spec: {rules: [{host: example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
`

// pod returns a running pod whose annotation asks for scrapes.
func pod(name, node, ip string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default, labels: {app: web}, annotations: {prometheus.io/scrape: "true"}}
spec: {nodeName: %s, containers: [{name: web, image: web, ports: [{name: http, containerPort: 8080}]}]}
status: {phase: Running, podIP: %[3]s, podIPs: [{ip: %[3]s}], hostIP: 10.1.0.1, conditions: [{type: Ready, status: "True"}]}
`, name, node, ip)
}

// discovering returns a job that discovers a role but scrapes the target at addr; instance is the label that becomes
// the instance.
func discovering(name, discovery, instance, addr, rules string) string {
	return fmt.Sprintf("        - {job_name: %s, %s, relabel_configs: [%s{source_labels: [%s], target_label: instance}, {target_label: __address__, replacement: %q}, {target_label: __metrics_path__, replacement: /metrics}, {target_label: __scheme__, replacement: http}]}\n",
		name, discovery, rules, instance, addr)
}

// All roles are discovered, and changes in the cluster change what is scraped.
func TestDiscoversKubernetes(t *testing.T) {
	t.Parallel()
	k := cluster.Start(t)
	k.Create(t, roleObjects+"---"+pod("web-a", "node-1", "10.2.0.1"))
	target, server := targets.New(t, targets.Page{Body: goodPage}), rwserver.New(t, rwserver.Options{})
	const meta = "__meta_kubernetes_"
	annotated := "{source_labels: [" + meta + `pod_annotation_prometheus_io_scrape], regex: "true", action: keep}, `
	roles := map[string]string{ // by role, the label that becomes the instance
		"node": meta + "node_name", "service": meta + "service_name", "pod": meta + "pod_name", "endpoints": meta + "endpoint_address_target_name",
		"endpointslice": meta + "endpointslice_address_target_name", "ingress": meta + "ingress_name",
	}
	var lines []string
	for role, instance := range roles {
		rules := ""
		if role == "pod" {
			rules = annotated
		}
		lines = append(lines, discovering(role, k.Discovery(role, ""), instance, target.Addr(), rules))
	}
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(lines...)))
	ups := func(job, instance string) bool {
		all := server.Series("up", "job", job, "instance", instance)
		return len(all) == 1 && !all[0].Samples[len(all[0].Samples)-1].Stale()
	}
	found := func(job, instance string, want bool) {
		t.Helper()
		wait.Until(t, firstSeries, func() (bool, string) {
			return ups(job, instance) == want, fmt.Sprintf("%s of role %s is to be scraped: %t", instance, job, want)
		})
	}
	for role, name := range map[string]string{"node": "node-1", "service": "web", "pod": "web-a", "endpoints": "web-a", "endpointslice": "web-a", "ingress": "front"} {
		found(role, name, true)
	}

	// A pod is created, its annotation changes to false and back, and it is deleted.
	k.Create(t, pod("web-b", "node-1", "10.2.0.2"))
	found("pod", "web-b", true)
	one := cluster.Objects(t, pod("web-b", "node-1", "10.2.0.2"))[0]
	k.Patch(t, one, cluster.Object{"metadata": cluster.Object{"annotations": cluster.Object{"prometheus.io/scrape": "false"}}})
	found("pod", "web-b", false)
	k.Patch(t, one, cluster.Object{"metadata": cluster.Object{"annotations": cluster.Object{"prometheus.io/scrape": "true"}}})
	found("pod", "web-b", true)
	require.NoError(t, k.Remove(one))
	found("pod", "web-b", false)
	found("pod", "web-a", true)
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}

// The permissions in our manifest suffice for an agent on a node, and allow nothing else.
func TestManifestsHaveTheRightsThatAgentsNeed(t *testing.T) {
	t.Parallel()
	k := cluster.Need(t)
	for _, name := range repository.Files(t) {
		if strings.HasPrefix(name, deployed) {
			k.Create(t, withoutExisting(t, k, repository.Read(t, name)))
		}
	}
	k.Create(t, pod("web-a", "node-1", "10.2.0.1")+"---"+pod("web-b", "node-2", "10.2.0.2"))
	target, server := targets.New(t, targets.Page{Body: goodPage}), rwserver.New(t, rwserver.Options{})
	discovery := k.DiscoveryAs(cluster.AgentToken, "pod", "selectors: [{role: pod, field: spec.nodeName=node-1}]")
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(discovering("pods", discovery, "__meta_kubernetes_pod_name", target.Addr(), ""))))
	wait.Until(t, firstSeries, func() (bool, string) {
		return len(server.Series("up", "instance", "web-a")) == 1, "the pod of this node is not scraped"
	})
	assert.Empty(t, server.Series("up", "instance", "web-b"), "another node's")
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))

	mayFollow(t, k, cluster.AgentToken, "/api/v1/pods")
	// What a kubelet asks the API about an agent that scrapes it. Nobody has this node, but the agent may ask for it.
	require.ErrorContains(t, k.As(cluster.AgentToken, http.MethodGet, "/api/v1/nodes/node-9/metrics"), "404")
	for _, path := range []string{"/api/v1/secrets", "/api/v1/configmaps", "/api/v1/namespaces/default/secrets"} {
		require.ErrorContains(t, k.As(cluster.AgentToken, http.MethodGet, path), "403", path)
	}
	require.ErrorContains(t, k.As(cluster.AgentToken, http.MethodDelete, "/api/v1/namespaces/default/pods/web-a"), "403")

	// Their namespace admits pods that meet Kubernetes' `restricted` standard, and no others.
	for i, name := range filesOf(t, deployed) {
		require.NoError(t, k.Put(podOf(t, readWorkload(t, repository.Read(t, name)), fmt.Sprintf("restricted-%d", i))), name)
	}
	assert.ErrorContains(t, k.Put(cluster.Objects(t, strings.ReplaceAll(pod("root", "node-1", "10.2.0.3"), "namespace: default", "namespace: godwit"))[0]), "violates PodSecurity")
}

// mayFollow checks that an account may list and watch resources, which is what discovery does. Without the right to
// watch it finds what is there when it begins, and no changes.
func mayFollow(t *testing.T, k *cluster.Cluster, token string, resources ...string) {
	t.Helper()
	for _, path := range resources {
		require.NoError(t, k.As(token, http.MethodGet, path), "list")
		require.NoError(t, k.As(token, http.MethodGet, path+"?watch=true&timeoutSeconds=1"), "watch")
	}
}

// podOf returns a pod of a workload, as its controller would create it.
func podOf(t *testing.T, w *workload, name string) cluster.Object {
	t.Helper()
	spec := w.pod.Spec.DeepCopy()
	for i := range w.claims {
		claimed := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: w.claims[i].Name + "-" + name}
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: w.claims[i].Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claimed}})
	}
	text, err := json.Marshal(corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "godwit", Labels: w.pod.Labels},
		Spec:       *spec,
	})
	require.NoError(t, err)
	return cluster.Objects(t, string(text))[0]
}

// withoutExisting removes a namespace that another file has created already.
func withoutExisting(t *testing.T, k *cluster.Cluster, text string) string {
	t.Helper()
	var left []string
	for document := range strings.SplitSeq(text, "\n---\n") {
		objects := cluster.Objects(t, document)
		if len(objects) == 1 && objects[0].Kind() == "Namespace" && k.As(k.Token, http.MethodGet, "/api/v1/namespaces/"+objects[0].Name()) == nil {
			continue
		}
		left = append(left, document)
	}
	return strings.Join(left, "\n---\n")
}

// An event, as a controller would write one.
const someEvent = `
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: web-a.started, namespace: default}
eventTime: "2026-01-01T00:00:00.000000Z"
type: Normal
reason: Started
action: Start
note: it has started
reportingController: example.com/test
reportingInstance: test
regarding: {kind: Pod, name: web-a, namespace: default}
`

// annotatedPod returns a pod whose annotations ask contrib's receiver creator to scrape its port.
func annotatedPod(addr string) string {
	host, port, _ := strings.Cut(addr, ":")
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: noted
  namespace: default
  annotations:
    io.opentelemetry.discovery.metrics/enabled: "true"
    io.opentelemetry.discovery.metrics/scraper: prometheus
    io.opentelemetry.discovery.metrics/config: |
      config: {scrape_configs: [{job_name: noted, scrape_interval: 1s, scrape_timeout: 1s, static_configs: [{targets: ["%[3]sendpoint%[3]s"]}]}]}
spec: {nodeName: node-1, containers: [{name: noted, image: noted, ports: [{name: http, containerPort: %[2]s}]}]}
status:
  phase: Running
  podIP: %[1]s
  podIPs: [{ip: %[1]s}]
  containerStatuses: [{name: noted, image: noted, imageID: noted, ready: true, restartCount: 0, containerID: "containerd://1", state: {running: {}}}]
`, host, port, "`")
}

// The chart's presets for the cluster work: changes in the cluster arrive as logs, and annotated pods are scraped.
func TestChartPresetsAtWork(t *testing.T) {
	k := cluster.Need(t)
	var scraped atomic.Int64
	l := serve.Listen(t, podIP+":0")
	serve.HTTP(t, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		scraped.Add(1)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprint(w, goodPage)
	}))
	k.Create(t, roleObjects+"---"+pod("web-a", "node-1", "10.2.0.1")+"---"+annotatedPod(l.Addr().String()))
	text := outsideOfPods(t, chartConfig(t, "logs", "host", "attributes", "cluster", "events", "objects", "annotations"))
	records := filepath.Join(t.TempDir(), "records")
	overlay := fmt.Sprintf(`
processors: {k8s_attributes: {auth_type: kubeConfig}}
receivers: {k8s_cluster: {auth_type: kubeConfig}, k8sobjects: {auth_type: kubeConfig}}
exporters: {file: {path: %s}}
service: {pipelines: {logs: {exporters: [debug, file]}}}
`, records)
	c := process.Start(t, process.Settings{
		Path: process.Binary(t, repository.Full), Args: []string{"--config", configFile(t, text), "--config", configFile(t, overlay)},
		Env: chartEnv("KUBECONFIG=" + k.Kubeconfig(t)),
	})
	c.WaitHTTP(firstWords, "http://"+podIP+":13133/", nil)
	wait.Until(t, firstSeries, func() (bool, string) {
		text := page(t, "http://"+podIP+":8888/metrics")
		for _, receiver := range []string{"hostmetrics", "k8s_cluster", "prometheus"} {
			if metricWith(t, text, "otelcol_receiver_accepted_metric_points", `receiver="`+receiver+`"`) == 0 {
				return false, receiver + " has nothing"
			}
		}
		return scraped.Load() > 1, fmt.Sprintf("the annotated pod was scraped %d times", scraped.Load())
	})
	arrived := func(what string) {
		t.Helper()
		wait.Until(t, firstSeries, func() (bool, string) {
			text, err := os.ReadFile(records)
			return strings.Contains(string(text), what), fmt.Sprintf("%s has not arrived: %v", what, err)
		})
	}
	arrived(`"stringValue":"web-a"`) // from the initial list
	k.Create(t, someEvent)
	arrived(`"stringValue":"web-a.started"`)
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}

// One of two collectors is elected and collects. When it dies the other one takes over, and keeps the lease when the
// first is back.
func TestElectsOneInKubernetes(t *testing.T) {
	t.Parallel()
	k := cluster.Need(t)
	kubeconfig := "KUBECONFIG=" + k.Kubeconfig(t)
	const config = `
extensions: {k8s_leader_elector: {auth_type: kubeConfig, lease_name: one, lease_namespace: default, lease_duration: 5s, renew_deadline: 4s, retry_period: 1s}}
receivers: {k8s_cluster: {auth_type: kubeConfig, collection_interval: 1s, k8s_leader_elector: k8s_leader_elector}}
exporters: {remotewrite: {endpoint: %s, target_info: {enabled: false}, batch: {timeout: 100ms}}}
service: {extensions: [health_check, k8s_leader_elector], pipelines: {metrics: {receivers: [k8s_cluster], exporters: [remotewrite]}}}
`
	var servers []*rwserver.Server
	var members []*collector
	for range 2 {
		server := rwserver.New(t, rwserver.Options{})
		servers = append(servers, server)
		members = append(members, startUnder(t, []string{"env", kubeconfig}, repository.Full, fmt.Sprintf(config, server.URL())))
	}
	collected := func(i int) (n int) {
		for _, s := range servers[i].Series("k8s_namespace_phase") {
			n += len(s.Samples)
		}
		return n
	}
	collects := func(i, more int) {
		t.Helper()
		before := collected(i)
		wait.Until(t, firstSeries, func() (bool, string) {
			return collected(i) >= before+more, fmt.Sprintf("collector %d has %d samples", i, collected(i))
		})
	}
	elected := 0
	wait.Until(t, firstSeries, func() (bool, string) {
		if collected(1) > 0 {
			elected = 1
		}
		return collected(elected) > 0, "nobody collects"
	})
	other := 1 - elected
	collects(elected, 3)
	assert.Zero(t, collected(other), "one was elected")

	members[elected].Kill()
	collects(other, 3)
	members[elected].Restart()
	members[elected].ready()
	before := collected(elected)
	collects(other, 5)
	assert.Equal(t, before, collected(elected), "the other is still elected")
	for _, m := range members {
		assert.Zero(t, m.Stop(syscall.SIGTERM, drainTime))
	}
}

// rolling returns the number of pods that a deployment replaces, and how many at a time.
func rolling() (pods, wave int) {
	if os.Getenv("GODWIT_KUBERNETES") != "" {
		return 5000, 250
	}
	return 200, 50
}

// While all pods are replaced, the agent follows: in the end it scrapes all pods that exist, and no others.
func TestFollowsPodsThatRoll(t *testing.T) {
	t.Parallel()
	k := cluster.Start(t)
	pods, wave := rolling()
	k.Create(t, `{apiVersion: v1, kind: Node, metadata: {name: node-1}}`)
	generation := func(g, i int) string {
		return pod(fmt.Sprintf("web-%d-%d", g, i), "node-1", fmt.Sprintf("10.%d.%d.%d", 2+g, i/250, 1+i%250))
	}
	each(t, pods, func(i int) error { return put(t, k, generation(0, i)) })

	// One listener serves all pods.
	var scrapes sync.Map
	l := serve.Listen(t, "127.0.0.1:0")
	serve.HTTP(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := scrapes.LoadOrStore(strings.TrimPrefix(r.URL.Path, "/"), new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprint(w, goodPage)
	}))
	server := rwserver.New(t, rwserver.Options{})
	job := fmt.Sprintf("        - {job_name: pods, scrape_interval: 5s, scrape_timeout: 5s, %s, relabel_configs: [{source_labels: [__meta_kubernetes_pod_name], target_label: instance}, {source_labels: [__meta_kubernetes_pod_name], target_label: __metrics_path__, replacement: /$$1}, {target_label: __address__, replacement: %q}]}\n",
		k.Discovery("pod", ""), l.Addr().String())
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(job)))
	scraped := func(g int) (n int) {
		for i := range pods {
			if _, ok := scrapes.Load(fmt.Sprintf("web-%d-%d", g, i)); ok {
				n++
			}
		}
		return n
	}
	all := func(g int) {
		t.Helper()
		wait.Until(t, firstSeries, func() (bool, string) {
			return scraped(g) == pods, fmt.Sprintf("%d of %d pods of generation %d were scraped", scraped(g), pods, g)
		})
	}
	all(0)
	before, began := c.Usage(), time.Now()
	for first := 0; first < pods; first += wave {
		each(t, wave, func(i int) error { return put(t, k, generation(1, first+i)) })
		each(t, wave, func(i int) error { return k.Remove(cluster.Objects(t, generation(0, first+i))[0]) })
	}
	rolled := time.Since(began)
	all(1)
	wait.Until(t, firstSeries, func() (bool, string) {
		n := c.metric(t, "otelcol_receiver_fastprometheus_targets")
		return int(n) == pods, fmt.Sprintf("%g targets, not %d", n, pods)
	})
	followed := time.Since(began) - rolled
	wait.Until(t, firstSeries, func() (bool, string) {
		ended := 0
		for instance, last := range lastOf(server) {
			if strings.HasPrefix(instance, "web-0-") && last.Stale() {
				ended++
			}
		}
		return ended == pods, fmt.Sprintf("%d of %d pods that are gone have ended", ended, pods)
	})
	for instance, last := range lastOf(server) {
		assert.Equal(t, strings.HasPrefix(instance, "web-0-"), last.Stale(), instance)
	}
	after := c.Usage()
	t.Logf("%d pods rolled in %s; %s later all were followed, with %s of CPU from the beginning; %d MB resident before they rolled, %d MB after, at most %d MB",
		pods, rolled, followed, after.CPU-before.CPU, before.RSS>>20, after.RSS>>20, after.PeakRSS>>20)
	assert.Less(t, after.RSS, 2*before.RSS+64<<20)
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}

// lastOf returns the last sample of each instance's `up`.
func lastOf(server *rwserver.Server) map[string]rwserver.Sample {
	last := map[string]rwserver.Sample{}
	for _, s := range server.Series("up") {
		last[s.Labels.Get("instance")] = s.Samples[len(s.Samples)-1]
	}
	return last
}

func put(t *testing.T, k *cluster.Cluster, text string) error {
	t.Helper()
	return k.Put(cluster.Objects(t, text)[0])
}

// each calls do n times, sixteen at a time.
func each(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, n)
	for range 16 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = do(i)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}
