// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package farm

import (
	"fmt"
	"strconv"
)

// bounds has no integers, which text and OpenMetrics format differently.
var bounds = []string{
	"0.005", "0.01", "0.025", "0.05", "0.075", "0.1", "0.25", "0.5", "0.75", "1.5", "2.5", "5.5", "7.5", "+Inf",
}

// histogram adds one labelled histogram. Every fourth bucket has an exemplar.
func (p *Page) histogram(name, labels string) {
	p.groups++
	add := func(series string, kind kind, value, exemplar float64) {
		p.lines = append(p.lines, line{series: series, kind: kind, value: value, exemplar: exemplar, group: p.groups})
	}
	for i, bound := range bounds {
		share := float64(i+1) / float64(len(bounds))
		exemplar := 0.0
		if le, err := strconv.ParseFloat(bound, 64); err == nil && i%4 == 1 {
			exemplar = le * 0.9
		}
		add(fmt.Sprintf("%s_bucket{%s,le=%q}", name, labels, bound), counted, share*share, exemplar)
	}
	add(name+"_sum{"+labels+"}", summed, 0.137, 0)
	add(name+"_count{"+labels+"}", counted, 1, 0)
	p.created(name, labels, p.groups)
}

// created adds a `_created` line with a time of about last year.
func (p *Page) created(name, labels string, seed int) {
	at := 1.7e9 + float64(hash(0, 1, seed)%30_000_000) + 0.125
	p.lines = append(p.lines, line{series: name + "_created{" + labels + "}", kind: created, value: at})
}

// App generates the page of a large application: histograms with exemplars, counters, gauges, `_created`. cardinality
// is the number of names of routes.
func App(samples, cardinality int) *Page {
	p := &Page{openMetrics: true}
	var routes []string
	// Per route: 2 methods, each with a histogram, 3 counters by code, and 2 gauges.
	const perRoute = 2 * (16 + 3 + 2)
	for i := range max(1, samples/perRoute) {
		routes = append(routes, fmt.Sprintf(`consumer="team-%d",route="/api/v2/%s/{id}"`, i/cardinality, word(i%cardinality)))
	}
	each := func(do func(labels string, seed int)) {
		for i, route := range routes {
			for j, method := range []string{"GET", "POST"} {
				do(fmt.Sprintf(`%s,method=%q`, route, method), 2*i+j+1)
			}
		}
	}
	p.family("app_info", "gauge", "The version that runs.")
	p.sample(`app_info{commit="8f14e45fceea167a5a36dedd4bea2543",version="4.12.3"}`, 1)
	p.family("http_server_request_duration_seconds", "histogram", "Duration of requests.")
	each(func(labels string, _ int) { p.histogram("http_server_request_duration_seconds", labels) })
	p.family("http_server_requests_total", "counter", "Requests by code.")
	each(func(labels string, seed int) {
		for i, code := range []string{"200", "404", "503"} {
			labels := fmt.Sprintf(`code=%q,%s`, code, labels)
			p.lines = append(p.lines, line{
				series: "http_server_requests_total{" + labels + "}", exemplar: 1,
				value: float64(hash(0, 2, 3*seed+i)%9_000_000 + 2),
			})
			p.created("http_server_requests", labels, 3*seed+i)
		}
	})
	p.family("http_server_requests_in_flight", "gauge", "Requests being served.")
	each(func(labels string, seed int) {
		p.sample("http_server_requests_in_flight{"+labels+"}", float64(hash(0, 3, seed)%200))
	})
	p.family("http_server_queue_age_seconds", "gauge", "Age of the oldest waiting request.")
	each(func(labels string, seed int) {
		p.sample("http_server_queue_age_seconds{"+labels+"}", round(unit(hash(0, 4, seed))*9, 6))
	})
	return p
}

// pod holds what the families of kube-state-metrics' page repeat for each pod.
type pod struct {
	id        string // namespace, pod and uid: on each of its series
	container string
	node      string
	owner     string
	seed      int
}

// gauge opens a family and adds one series per pod and set of further labels.
func (p *Page) gauge(name, help string, pods []pod, series func(pod *pod, add func(labels string, value float64))) {
	p.family(name, "gauge", help)
	for i := range pods {
		series(&pods[i], func(labels string, value float64) {
			if labels != "" {
				labels = "," + labels
			}
			p.sample(name+"{"+pods[i].id+labels+"}", value)
		})
	}
}

// KubeState generates a page like kube-state-metrics': families over all pods of a cluster, long label sets, and mostly
// values of 0 and 1. cardinality is the number of names of namespaces and nodes.
func KubeState(samples, cardinality int) *Page {
	const perPod = 27
	pods := make([]pod, max(1, samples/perPod))
	for i := range pods {
		h, g := hash(0, 5, i), hash(0, 6, i)
		app := word(int(g % 997))
		owner := fmt.Sprintf("%s-%08x", app, uint32(h>>32))
		pods[i] = pod{
			id: fmt.Sprintf(`namespace="team-%s",pod="%s-%05x",uid="%08x-%04x-4%03x-9%03x-%012x"`,
				word(int(h%uint64(cardinality))), owner, i, h>>32, h>>16&0xffff, h&0xfff, g&0xfff, g>>16),
			container: fmt.Sprintf(`container=%q`, app),
			node:      fmt.Sprintf("ip-10-20-%d-%d.eu-central-1.compute.internal", h%uint64(cardinality)/250, h%uint64(cardinality)%250),
			owner:     owner,
			seed:      i,
		}
	}
	p := &Page{openMetrics: true}
	always := func(value float64, labels ...string) func(*pod, func(string, float64)) {
		return func(_ *pod, add func(string, float64)) {
			for _, l := range labels {
				add(l, value)
			}
		}
	}
	oneOf := func(format string, states ...string) func(*pod, func(string, float64)) {
		return func(pod *pod, add func(string, float64)) {
			// Most pods are in the first state.
			current := max(0, int(hash(0, 7, pod.seed)%uint64(8*len(states)))-7*len(states))
			for i, state := range states {
				value := 0.0
				if i == current {
					value = 1
				}
				add(fmt.Sprintf(format, state), value)
			}
		}
	}
	perContainer := func(value func(seed int) float64, labels ...string) func(*pod, func(string, float64)) {
		return func(pod *pod, add func(string, float64)) {
			for i, l := range labels {
				add(pod.container+l, value(4*pod.seed+i))
			}
		}
	}
	flag := func(seed int) float64 { return float64(min(1, hash(0, 8, seed)%20)) }
	moment := func(seed int) float64 { return float64(1_700_000_000 + hash(0, 9, seed)%30_000_000) }

	p.gauge("kube_pod_info", "Information about pod.", pods, func(pod *pod, add func(string, float64)) {
		add(fmt.Sprintf(`host_ip="10.20.%d.%d",pod_ip="10.64.%d.%d",node=%q,created_by_kind="ReplicaSet",created_by_name=%q,priority_class="",host_network="false"`,
			pod.seed>>8&0xff, pod.seed&0xff, pod.seed>>7&0xff, pod.seed*7&0xff, pod.node, pod.owner), 1)
	})
	p.gauge("kube_pod_created", "Unix creation timestamp", pods, func(pod *pod, add func(string, float64)) { add("", moment(pod.seed)) })
	p.gauge("kube_pod_start_time", "Start time in unix timestamp for a pod.", pods, func(pod *pod, add func(string, float64)) { add("", moment(pod.seed)+4) })
	p.gauge("kube_pod_owner", "Information about the Pod's owner.", pods, func(pod *pod, add func(string, float64)) {
		add(fmt.Sprintf(`owner_kind="ReplicaSet",owner_name=%q,owner_is_controller="true"`, pod.owner), 1)
	})
	p.gauge("kube_pod_labels", "Kubernetes labels converted to Prometheus labels.", pods, func(pod *pod, add func(string, float64)) {
		add(fmt.Sprintf(`label_app_kubernetes_io_name=%q,label_app_kubernetes_io_managed_by="Helm",label_pod_template_hash="%08x",label_topology_kubernetes_io_zone="eu-central-1%c"`,
			pod.owner, uint32(hash(0, 10, pod.seed)), 'a'+pod.seed%3), 1)
	})
	p.gauge("kube_pod_status_phase", "The pods current phase.", pods, oneOf("phase=%q", "Running", "Pending", "Succeeded", "Failed", "Unknown"))
	p.gauge("kube_pod_status_ready", "Describes whether the pod is ready to serve requests.", pods, oneOf("condition=%q", "true", "false", "unknown"))
	p.gauge("kube_pod_status_scheduled", "Describes the status of the scheduling process for the pod.", pods, oneOf("condition=%q", "true", "false", "unknown"))
	p.gauge("kube_pod_restart_policy", "Describes the restart policy in use by this pod.", pods, always(1, `type="Always"`))
	p.gauge("kube_pod_container_info", "Information about a container in a pod.", pods, func(pod *pod, add func(string, float64)) {
		h := hash(0, 11, pod.seed)
		add(fmt.Sprintf(`%s,image="registry.example.org/%s:1.%d.%d",image_id="registry.example.org/app@sha256:%016x%016x",container_id="containerd://%016x%016x"`,
			pod.container, pod.owner, h%40, h>>8%20, h, h>>1, h^0xabcdef, h*3), 1)
	})
	p.gauge("kube_pod_container_status_ready", "Describes whether the containers readiness check succeeded.", pods, perContainer(flag, ""))
	p.gauge("kube_pod_container_status_running", "Describes whether the container is currently in running state.", pods, perContainer(flag, ""))
	p.gauge("kube_pod_container_status_restarts", "The number of container restarts per container.", pods,
		perContainer(func(seed int) float64 { return float64(hash(0, 12, seed) % 30) }, ""))
	p.gauge("kube_pod_container_resource_requests", "The number of requested request resource by a container.", pods,
		perContainer(func(seed int) float64 { return float64(1<<20) * float64(hash(0, 13, seed)%900+100) },
			`,resource="memory",unit="byte"`, `,resource="cpu",unit="core"`))
	p.gauge("kube_pod_container_resource_limits", "The number of requested limit resource by a container.", pods,
		perContainer(func(seed int) float64 { return float64(1<<21) * float64(hash(0, 14, seed)%900+100) },
			`,resource="memory",unit="byte"`, `,resource="cpu",unit="core"`))
	p.gauge("kube_pod_tolerations", "Information about the pod tolerations", pods, always(1,
		`key="node.kubernetes.io/not-ready",operator="Exists",effect="NoExecute",toleration_seconds="300"`,
		`key="node.kubernetes.io/unreachable",operator="Exists",effect="NoExecute",toleration_seconds="300"`))
	return p
}
