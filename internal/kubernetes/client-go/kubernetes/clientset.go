// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes makes clients of the API's groups.
package kubernetes

import (
	appsv1api "k8s.io/api/apps/v1"
	batchv1api "k8s.io/api/batch/v1"
	corev1api "k8s.io/api/core/v1"
	discoveryv1api "k8s.io/api/discovery/v1"
	networkingv1api "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	batchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryv1 "k8s.io/client-go/kubernetes/typed/discovery/v1"
	networkingv1 "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/client-go/rest"
)

const (
	core       = "/api/v1"
	apps       = "/apis/apps/v1"
	batch      = "/apis/batch/v1"
	discovery  = "/apis/discovery.k8s.io/v1"
	networking = "/apis/networking.k8s.io/v1"
)

// A Clientset is a client of an API.
type Clientset struct {
	client *rest.Client
}

// NewForConfig makes a client. It sends no requests yet.
func NewForConfig(c *rest.Config) (*Clientset, error) {
	client, err := rest.NewClient(c)
	if err != nil {
		return nil, err
	}
	return &Clientset{client: client}, nil
}

// CoreV1 returns the client of this group.
func (c *Clientset) CoreV1() corev1.CoreV1Interface { return group{c.client} }

// AppsV1 returns the client of this group.
func (c *Clientset) AppsV1() appsv1.AppsV1Interface { return group{c.client} }

// BatchV1 returns the client of this group.
func (c *Clientset) BatchV1() batchv1.BatchV1Interface { return group{c.client} }

// DiscoveryV1 returns the client of this group.
func (c *Clientset) DiscoveryV1() discoveryv1.DiscoveryV1Interface { return group{c.client} }

// NetworkingV1 returns the client of this group.
func (c *Clientset) NetworkingV1() networkingv1.NetworkingV1Interface { return group{c.client} }

// A group has the collections of all groups.
type group struct {
	client *rest.Client
}

func (g group) Namespaces() rest.Collection {
	return g.client.Collection(core, "", "namespaces", func() metav1.Object { return new(corev1api.Namespace) })
}

func (g group) Nodes() rest.Collection {
	return g.client.Collection(core, "", "nodes", func() metav1.Object { return new(corev1api.Node) })
}

func (g group) Pods(namespace string) rest.Collection {
	return g.client.Collection(core, namespace, "pods", func() metav1.Object { return new(corev1api.Pod) })
}

func (g group) Services(namespace string) rest.Collection {
	return g.client.Collection(core, namespace, "services", func() metav1.Object { return new(corev1api.Service) })
}

func (g group) Endpoints(namespace string) rest.Collection {
	return g.client.Collection(core, namespace, "endpoints", func() metav1.Object { return new(corev1api.Endpoints) })
}

func (g group) ReplicaSets(namespace string) rest.Collection {
	return g.client.Collection(apps, namespace, "replicasets", func() metav1.Object { return new(appsv1api.ReplicaSet) })
}

func (g group) Jobs(namespace string) rest.Collection {
	return g.client.Collection(batch, namespace, "jobs", func() metav1.Object { return new(batchv1api.Job) })
}

func (g group) EndpointSlices(namespace string) rest.Collection {
	return g.client.Collection(discovery, namespace, "endpointslices", func() metav1.Object { return new(discoveryv1api.EndpointSlice) })
}

func (g group) Ingresses(namespace string) rest.Collection {
	return g.client.Collection(networking, namespace, "ingresses", func() metav1.Object { return new(networkingv1api.Ingress) })
}
