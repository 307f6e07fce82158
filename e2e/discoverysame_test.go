// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/cluster"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// Each field that discovery reads is set in one of these objects.
const richObjects = `
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {zone: a}, annotations: {note: "a node"}}
spec: {providerID: "test://1"}
status:
  conditions: [{type: Ready, status: "True"}, {type: DiskPressure, status: Unknown}]
  addresses: [{type: InternalIP, address: 10.1.0.1}, {type: Hostname, address: node-1}, {type: ExternalIP, address: 192.0.2.1}]
  daemonEndpoints: {kubeletEndpoint: {Port: 10250}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: shop}, annotations: {note: "a namespace"}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web-1, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: "1", controller: true}]}
spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: nightly-1, namespace: shop, ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: nightly, uid: "2", controller: true}]}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: nightly, image: nightly}]}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1-a
  namespace: shop
  labels: {app: web, "example.com/team": shop}
  annotations: {"prometheus.io/scrape": "true", note: "a \"quoted\" <note> ü"}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: "3", controller: true}]
spec:
  nodeName: node-1
  initContainers: [{name: first, image: first, ports: [{name: early, containerPort: 9000}]}]
  containers: [{name: web, image: "web:1", ports: [{name: http, containerPort: 8080}, {name: dns, containerPort: 53, protocol: UDP}]}, {name: side, image: side}]
status:
  phase: Running
  podIP: 10.2.0.1
  podIPs: [{ip: 10.2.0.1}]
  hostIP: 10.1.0.1
  conditions: [{type: Ready, status: "True"}]
  containerStatuses: [{name: web, image: "web:1", imageID: web, ready: true, restartCount: 0, containerID: "containerd://1"}]
  initContainerStatuses: [{name: first, image: first, imageID: first, ready: true, restartCount: 0, containerID: "containerd://2"}]
---
apiVersion: v1
kind: Pod
metadata: {name: nightly-1-a, namespace: shop, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: nightly-1, uid: "4", controller: true}]}
spec: {nodeName: node-1, containers: [{name: nightly, image: nightly}]}
status: {phase: Pending, podIP: 10.2.0.2, podIPs: [{ip: 10.2.0.2}]}
---
{apiVersion: v1, kind: Pod, metadata: {name: waiting, namespace: shop}, spec: {containers: [{name: waiting, image: waiting}]}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {type: LoadBalancer, loadBalancerIP: 192.0.2.2, ipFamilyPolicy: PreferDualStack, selector: {app: web}, ports: [{name: http, port: 80, nodePort: 30080}]}
---
{apiVersion: v1, kind: Service, metadata: {name: outside, namespace: shop}, spec: {type: ExternalName, externalName: example.com, ports: [{name: https, port: 443}]}}
---
apiVersion: v1
kind: Endpoints
metadata: {name: web, namespace: shop, labels: {app: web}}
subsets:
  - addresses: [{ip: 10.2.0.1, hostname: web-a, nodeName: node-1, targetRef: {kind: Pod, name: web-1-a, namespace: shop}}, {ip: 10.1.0.1, targetRef: {kind: Node, name: node-1}}]
    notReadyAddresses: [{ip: 10.2.0.9}]
    ports: [{name: http, port: 8080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints:
  - {addresses: [10.2.0.1], conditions: {ready: true, serving: true, terminating: false}, hostname: web-a, nodeName: node-1, zone: a, targetRef: {kind: Pod, name: web-1-a, namespace: shop}}
  - {addresses: [10.1.0.1], targetRef: {kind: Node, name: node-1}}
ports: [{name: http, port: 8080, protocol: TCP, appProtocol: http}]
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: bare, namespace: shop}, addressType: FQDN, endpoints: [{addresses: [example.com]}], ports: [{}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: shop, labels: {app: front}}
spec:
  ingressClassName: nginx
  tls: [{hosts: ["*.example.com"]}]
  rules:
    - {host: shop.example.com, http: {paths: [{path: /a, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}
    - {host: example.org}
`

// The agent discovers Kubernetes objects with a client of ours, godwit with Kubernetes' own. Both find the same labels
// for all that discovery reads, at first and after changes.
func TestAgentAndGodwitFindTheSameInKubernetes(t *testing.T) {
	t.Parallel()
	k := cluster.Start(t)
	k.Create(t, richObjects)
	target := targets.New(t, targets.Page{Body: goodPage})
	var lines []string
	for role, more := range map[string]string{
		"node":          "",
		"pod":           "attach_metadata: {node: true, namespace: true, deployment: true, job: true, cronjob: true}",
		"service":       "attach_metadata: {namespace: true}, namespaces: {names: [shop]}",
		"endpoints":     "attach_metadata: {node: true, namespace: true, deployment: true}, selectors: [{role: endpoints, label: app=web}, {role: service, label: app in (web)}]",
		"endpointslice": "attach_metadata: {node: true, namespace: true, deployment: true, job: true}, namespaces: {names: [shop, default]}",
		"ingress":       "attach_metadata: {namespace: true}",
	} {
		lines = append(lines, fmt.Sprintf(`        - {job_name: %s, %s, relabel_configs: [{action: labelmap, regex: __meta_(.+)}, {source_labels: [__address__], target_label: address}, {target_label: __address__, replacement: %q}]}
`, role, k.Discovery(role, more), target.Addr()))
	}
	slices.Sort(lines)
	type side struct {
		*collector

		server *rwserver.Server
	}
	var sides []side
	for _, name := range []string{"godwit-agent", repository.Full} {
		server := rwserver.New(t, rwserver.Options{})
		sides = append(sides, side{startDistribution(t, name, fmt.Sprintf(scraping, server.URL(), jobs(lines...))), server})
	}
	scraped := func(s side) (all []string) {
		for _, series := range s.server.Series("up") {
			if !series.Samples[len(series.Samples)-1].Stale() {
				all = append(all, series.Labels.String())
			}
		}
		slices.Sort(all)
		return all
	}
	// same waits until both have found the same targets, with these words in them and without those that begin with an
	// exclamation mark.
	same := func(words ...string) {
		t.Helper()
		wait.Until(t, firstSeries, func() (bool, string) {
			ours, theirs := scraped(sides[0]), scraped(sides[1])
			for _, word := range words {
				gone := strings.HasPrefix(word, "!")
				if strings.Contains(strings.Join(theirs, "\n"), strings.TrimPrefix(word, "!")) == gone {
					return false, word + "\n" + strings.Join(theirs, "\n")
				}
			}
			return slices.Equal(ours, theirs), "not the same:\n" + strings.Join(ours, "\n") + "\n\n" + strings.Join(theirs, "\n")
		})
	}
	same(
		`job="node"`, `job="pod"`, `job="service"`, `job="endpoints"`, `job="endpointslice"`, `job="ingress"`,
		`kubernetes_pod_deployment_name="web"`, `kubernetes_pod_cronjob_name="nightly"`, `kubernetes_pod_container_id="containerd://2"`, `kubernetes_pod_container_init="true"`,
		`kubernetes_namespace_label_team="shop"`, `kubernetes_node_condition_diskpressure="unknown"`, `kubernetes_ingress_scheme="https"`, `kubernetes_service_external_name="example.com"`,
		`kubernetes_endpointslice_port_app_protocol="http"`, `kubernetes_endpoint_ready="false"`, `kubernetes_node_label_zone="a"`,
	)

	// The labels of a node and a namespace change, which changes targets of others too; a pod is added; then a pod and
	// an ingress are deleted.
	one := func(kind string) cluster.Object {
		all := cluster.Objects(t, richObjects)
		return all[slices.IndexFunc(all, func(o cluster.Object) bool { return o.Kind() == kind })]
	}
	labelled := func(value string) cluster.Object {
		return cluster.Object{"metadata": cluster.Object{"labels": cluster.Object{"changed": value}}}
	}
	k.Patch(t, one("Node"), labelled("node"))
	k.Patch(t, one("Namespace"), labelled("namespace"))
	k.Patch(t, one("Service"), labelled("service"))
	k.Patch(t, one("Ingress"), labelled("ingress"))
	k.Create(t, pod("late", "node-1", "10.2.0.3"))
	same(
		`kubernetes_node_label_changed="node"`, `kubernetes_namespace_label_changed="namespace"`, `kubernetes_service_label_changed="service"`, `kubernetes_ingress_label_changed="ingress"`,
		`kubernetes_pod_name="late"`,
	)
	require.NoError(t, k.Remove(one("Pod")))
	require.NoError(t, k.Remove(one("Ingress")))
	same(`!kubernetes_pod_container_id="containerd://1"`, `!job="ingress"`) // addresses of endpoints keep their pod until they change
	for _, s := range sides {
		assert.Zero(t, s.Stop(syscall.SIGTERM, drainTime))
	}
}
