// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/godwit-otel/godwit/e2e/cluster"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	// The pods' addresses are on this machine, so that connections come from them. No other test listens there.
	scrapedIP = "127.0.159.11"
	sendingIP = "127.0.159.12"
	laterIP   = "127.0.159.13"

	// shop is a namespace with a deployment, and the permissions that contrib's README asks for.
	shop = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: geese}}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-1, labels: {zone: north}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: attributes}
rules:
  - {apiGroups: [""], resources: [pods, namespaces, nodes], verbs: [get, watch, list]}
  - {apiGroups: [apps], resources: [replicasets], verbs: [get, watch, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: attributes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: attributes}
subjects: [{kind: ServiceAccount, name: godwit-agent, namespace: godwit}]
`

	shopReplicas = `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web-5d4f, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: %q, controller: true}]}
spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}
`

	shopPod = `
apiVersion: v1
kind: Pod
metadata:
  name: %[1]s
  namespace: shop
  labels: {app: web, release: one}
  annotations: {owner: the-flock}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-5d4f, uid: %[2]q, controller: true}]
spec: {nodeName: node-1, containers: [{name: web, image: "registry.example.com/web:1.2", ports: [{name: http, containerPort: %[4]s}]}]}
status:
  phase: Running
  podIP: %[3]s
  podIPs: [{ip: %[3]s}]
  hostIP: 10.1.0.1
  conditions: [{type: Ready, status: "True"}]
  containerStatuses: [{name: web, image: web, imageID: web, ready: true, restartCount: 0, containerID: "containerd://id-of-%[1]s", state: {running: {}}}]
`

	// A configuration of contrib, with the processor's name from before it was renamed.
	podAttributes = `
receivers:
  otlp: {protocols: {grpc: {endpoint: %[1]s}}}
  prometheus:
    config:
      scrape_configs: [{job_name: pods, scrape_interval: 1s, scrape_timeout: 1s, %[2]s}]
processors:
  k8sattributes:
    auth_type: kubeConfig
    wait_for_metadata: true
    extract:
      metadata: [k8s.pod.name, k8s.pod.uid, k8s.namespace.name, k8s.node.name, k8s.replicaset.name, k8s.deployment.name, k8s.deployment.uid, k8s.container.name, container.id, container.image.name, container.image.tag]
      labels: [{from: pod, key_regex: (.*), tag_name: label.$$1}, {from: namespace, key: team, tag_name: team}, {from: node, key: zone, tag_name: zone}]
      annotations: [{from: pod, key: owner, tag_name: owner}]
    pod_association:
      - sources: [{from: resource_attribute, name: k8s.pod.ip}]
      - sources: [{from: resource_attribute, name: k8s.pod.uid}]
      - sources: [{from: connection}]
  batch: {timeout: 100ms}
exporters:
  otlp: {endpoint: %[3]s, tls: {insecure: true}}
service:
  pipelines:
    metrics: {receivers: [otlp, prometheus], processors: [k8sattributes, batch], exporters: [otlp]}
    logs: {receivers: [otlp], processors: [k8sattributes, batch], exporters: [otlp]}
    traces: {receivers: [otlp], processors: [k8sattributes, batch], exporters: [otlp]}
`
)

// Pods' metadata are added to what pods send and to what is scraped from them, however the pod is identified: by an
// address in the resource, by a uid that scraping adds, or by the address of the connection.
func TestAttributesOfPodsInKubernetes(t *testing.T) {
	t.Parallel()
	k := cluster.Start(t)
	k.Create(t, shop)
	deployment := k.UID(t, cluster.Objects(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}`)[0])
	k.Create(t, fmt.Sprintf(shopReplicas, deployment))
	replicas := k.UID(t, cluster.Objects(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-5d4f, namespace: shop}}`)[0])
	// start creates a pod that serves a page at its address, and returns its uid.
	start := func(name, ip string) (pod cluster.Object, uid string) {
		l := serve.Listen(t, ip+":0")
		serve.HTTP(t, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = fmt.Fprint(w, goodPage)
		}))
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		text := fmt.Sprintf(shopPod, name, replicas, ip, port)
		k.Create(t, text)
		pod = cluster.Objects(t, text)[0]
		return pod, k.UID(t, pod)
	}
	scraped, scrapedUID := start("web-a", scrapedIP)
	_, sendingUID := start("web-b", sendingIP)

	destination, in := otlpserver.New(t, otlpserver.Options{}), freeport.Addr(t)
	agent := *k
	agent.Token = cluster.AgentToken
	c := startUnder(t, []string{"env", "KUBECONFIG=" + agent.Kubeconfig(t)}, repository.Full,
		fmt.Sprintf(podAttributes, in, k.DiscoveryAs(cluster.AgentToken, "pod", "namespaces: {names: [shop]}"), destination.GRPCAddr()))
	want := func(pod, uid, release string) map[string]any {
		return map[string]any{
			"k8s.pod.name": pod, "k8s.pod.uid": uid, "k8s.namespace.name": "shop", "k8s.node.name": "node-1",
			"k8s.replicaset.name": "web-5d4f", "k8s.deployment.name": "web", "k8s.deployment.uid": deployment, "k8s.container.name": "web",
			"container.id": "id-of-" + pod, "container.image.name": "registry.example.com/web", "container.image.tag": "1.2",
			"label.app": "web", "label.release": release, "team": "geese", "zone": "north", "owner": "the-flock",
		}
	}
	arrives := func(what string, among func() []map[string]any, attributes map[string]any) {
		t.Helper()
		wait.Until(t, firstSeries, func() (bool, string) {
			all := among()
			for _, has := range all {
				if contains(has, attributes) {
					return true, ""
				}
			}
			return false, fmt.Sprintf("%s has not arrived with what the cluster knows, but: %v", what, all[max(0, len(all)-2):])
		})
	}
	scrapes := func() []map[string]any { return resourcesOfMetrics(destination, "geese_flying") }
	arrives("what is scraped", scrapes, want("web-a", scrapedUID, "one"))
	arrives("what is scraped of another", scrapes, want("web-b", sendingUID, "one"))

	byConnection := dialFrom(t, sendingIP, in)
	sendLog(t, byConnection, nil)
	arrives("a record over the pod's connection", func() []map[string]any { return resourcesOfLogs(destination) }, want("web-b", sendingUID, "one"))
	stranger := dial(t, in)
	sendSpan(t, stranger, map[string]string{"k8s.pod.ip": scrapedIP})
	arrives("a span that names an address", func() []map[string]any { return resourcesOfTraces(destination) }, want("web-a", scrapedUID, "one"))
	sendPoint(t, byConnection, map[string]string{"k8s.pod.uid": scrapedUID, "owner": "mine"})
	named := want("web-a", scrapedUID, "one")
	named["owner"] = "mine" // attributes that a resource has already stay
	arrives("a point that names a pod", func() []map[string]any { return resourcesOfMetrics(destination, "sent") }, named)
	sendLog(t, stranger, map[string]string{"from": "nobody"})
	nobody := func() (all []map[string]any) {
		for _, has := range resourcesOfLogs(destination) {
			if has["from"] == "nobody" {
				all = append(all, has)
			}
		}
		return all
	}
	arrives("what no pod sent", nobody, map[string]any{"from": "nobody"})
	assert.Equal(t, []map[string]any{{"from": "nobody"}}, nobody(), "nothing is known of it")

	// The cluster changes, and the attributes with it. A new label of a pod does not add a second resource.
	k.Patch(t, scraped, cluster.Object{"metadata": cluster.Object{"labels": cluster.Object{"release": "two"}}})
	arrives("a label that has changed", scrapes, want("web-a", scrapedUID, "two"))
	_, laterUID := start("web-c", laterIP)
	arrives("a pod that came later", scrapes, want("web-c", laterUID, "one"))
	for _, has := range scrapes() {
		if len(has) > 0 && has["k8s.pod.uid"] == scrapedUID {
			assert.True(t, contains(has, want("web-a", scrapedUID, fmt.Sprint(has["label.release"]))), "%v", has)
		}
	}
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	for line := range strings.Lines(c.Output()) {
		assert.NotContains(t, line, "\terror\t")
		assert.NotContains(t, line, "forbidden")
	}
}

// contains reports whether has includes all of these attributes.
func contains(has, attributes map[string]any) bool {
	for name, value := range attributes {
		if has[name] != value {
			return false
		}
	}
	return true
}

// resourcesOfMetrics returns the attributes of the resources that have a metric, in order of arrival.
func resourcesOfMetrics(s *otlpserver.Server, name string) (all []map[string]any) {
	for _, md := range s.Metrics() {
		for _, resource := range md.ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					if m.Name() == name {
						all = append(all, resource.Resource().Attributes().AsRaw())
					}
				}
			}
		}
	}
	return all
}

func resourcesOfLogs(s *otlpserver.Server) (all []map[string]any) {
	for _, ld := range s.Logs() {
		for _, resource := range ld.ResourceLogs().All() {
			all = append(all, resource.Resource().Attributes().AsRaw())
		}
	}
	return all
}

func resourcesOfTraces(s *otlpserver.Server) (all []map[string]any) {
	for _, td := range s.Traces() {
		for _, resource := range td.ResourceSpans().All() {
			all = append(all, resource.Resource().Attributes().AsRaw())
		}
	}
	return all
}

// dialFrom connects from one of this machine's addresses.
func dialFrom(t *testing.T, ip, addr string) *grpc.ClientConn {
	t.Helper()
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return from.DialContext(ctx, "tcp", addr) }))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func describe(resource pcommon.Resource, attributes map[string]string) {
	for name, value := range attributes {
		resource.Attributes().PutStr(name, value)
	}
}

func sendLog(t *testing.T, conn *grpc.ClientConn, attributes map[string]string) {
	t.Helper()
	ld := plog.NewLogs()
	resource := ld.ResourceLogs().AppendEmpty()
	describe(resource.Resource(), attributes)
	resource.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("honk")
	_, err := plogotlp.NewGRPCClient(conn).Export(t.Context(), plogotlp.NewExportRequestFromLogs(ld))
	require.NoError(t, err)
}

func sendSpan(t *testing.T, conn *grpc.ClientConn, attributes map[string]string) {
	t.Helper()
	td := ptrace.NewTraces()
	resource := td.ResourceSpans().AppendEmpty()
	describe(resource.Resource(), attributes)
	resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("flight")
	_, err := ptraceotlp.NewGRPCClient(conn).Export(t.Context(), ptraceotlp.NewExportRequestFromTraces(td))
	require.NoError(t, err)
}

func sendPoint(t *testing.T, conn *grpc.ClientConn, attributes map[string]string) {
	t.Helper()
	md := pmetric.NewMetrics()
	resource := md.ResourceMetrics().AppendEmpty()
	describe(resource.Resource(), attributes)
	m := resource.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("sent")
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
	_, err := pmetricotlp.NewGRPCClient(conn).Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(md))
	require.NoError(t, err)
}
