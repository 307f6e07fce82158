// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"net"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

const nodeName = "k8s.node.name"

// fromKubernetes names the attributes that Kubernetes discovery fills.
var fromKubernetes = []struct{ label, attribute string }{
	{"__meta_kubernetes_pod_name", "k8s.pod.name"},
	{"__meta_kubernetes_pod_uid", "k8s.pod.uid"},
	{"__meta_kubernetes_pod_container_name", "k8s.container.name"},
	{"__meta_kubernetes_namespace", "k8s.namespace.name"},
	{"__meta_kubernetes_pod_node_name", nodeName},
	{"__meta_kubernetes_node_name", nodeName},
	{"__meta_kubernetes_endpoint_node_name", nodeName},
}

var controllers = map[string]string{
	"ReplicaSet":  "k8s.replicaset.name",
	"DaemonSet":   "k8s.daemonset.name",
	"StatefulSet": "k8s.statefulset.name",
	"Job":         "k8s.job.name",
	"CronJob":     "k8s.cronjob.name",
}

// discoveredAttributes returns the attributes that discovery gives to every resource of a target.
func discoveredAttributes(discovered labels.Labels) []labels.Label {
	all := []labels.Label{{Name: "url.scheme", Value: discovered.Get(model.SchemeLabel)}}
	for _, k := range fromKubernetes {
		if v := discovered.Get(k.label); v != "" {
			all = put(all, k.attribute, v)
		}
	}
	name := discovered.Get("__meta_kubernetes_pod_controller_name")
	attribute, ok := controllers[discovered.Get("__meta_kubernetes_pod_controller_kind")]
	if ok && name != "" {
		all = put(all, attribute, name)
	}
	return all
}

func put(ls []labels.Label, name, value string) []labels.Label {
	for i := range ls {
		if ls[i].Name == name {
			ls[i].Value = value
			return ls
		}
	}
	return append(ls, labels.Label{Name: name, Value: value})
}

// resourceAttributes appends the attributes of the resource of a job and an instance. lacking leaves out empty ones.
func resourceAttributes(dst []labels.Label, job, instance string, lacking bool, common []labels.Label) []labels.Label {
	host, port, err := net.SplitHostPort(instance)
	if err != nil {
		host = instance
	}
	if job != "" || !lacking {
		dst = append(dst, labels.Label{Name: "service.name", Value: job})
	}
	if instance == "" && lacking {
		return append(dst, common...)
	}
	if isDiscernible(host) {
		dst = append(dst, labels.Label{Name: "server.address", Value: host})
	}
	dst = append(dst,
		labels.Label{Name: "service.instance.id", Value: instance},
		labels.Label{Name: "server.port", Value: port})
	return append(dst, common...)
}

// isDiscernible reports whether a host's name has a meaning on other hosts.
func isDiscernible(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return !ip.IsLoopback() && !ip.IsUnspecified()
	}
	return host != "localhost"
}
