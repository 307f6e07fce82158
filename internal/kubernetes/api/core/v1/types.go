// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has the objects of Kubernetes' core that service discovery reads, with the fields that it reads.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NamespaceAll stands for all namespaces.
const NamespaceAll = ""

// A Namespace holds objects.
type Namespace struct {
	metav1.ObjectMeta `json:"metadata"`
}

// A Node runs pods.
type Node struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec   NodeSpec   `json:"spec"`
	Status NodeStatus `json:"status"`
}

// NodeSpec is the specification of a node.
type NodeSpec struct {
	ProviderID string `json:"providerID"`
}

// NodeStatus is the status of a node.
type NodeStatus struct {
	Conditions      []NodeCondition     `json:"conditions"`
	Addresses       []NodeAddress       `json:"addresses"`
	DaemonEndpoints NodeDaemonEndpoints `json:"daemonEndpoints"`
}

// A ConditionStatus is "True", "False" or "Unknown".
type ConditionStatus string

// ConditionUnknown means that a condition is not known.
const ConditionUnknown ConditionStatus = "Unknown"

// A NodeCondition is a condition of a node.
type NodeCondition struct {
	Type   string          `json:"type"`
	Status ConditionStatus `json:"status"`
}

// A NodeAddressType is the type of a node's address.
type NodeAddressType string

// The types of addresses.
const (
	NodeHostName    NodeAddressType = "Hostname"
	NodeInternalIP  NodeAddressType = "InternalIP"
	NodeExternalIP  NodeAddressType = "ExternalIP"
	NodeInternalDNS NodeAddressType = "InternalDNS"
	NodeExternalDNS NodeAddressType = "ExternalDNS"
)

// A NodeAddress is an address of a node.
type NodeAddress struct {
	Type    NodeAddressType `json:"type"`
	Address string          `json:"address"`
}

// NodeDaemonEndpoints are the ports of a node's own services.
type NodeDaemonEndpoints struct {
	KubeletEndpoint DaemonEndpoint `json:"kubeletEndpoint"`
}

// A DaemonEndpoint is the port of such a service.
type DaemonEndpoint struct {
	Port int32 `json:"Port"`
}

// A Pod is a set of containers.
type Pod struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec   PodSpec   `json:"spec"`
	Status PodStatus `json:"status"`
}

// PodSpec is the specification of a pod.
type PodSpec struct {
	NodeName       string      `json:"nodeName"`
	Containers     []Container `json:"containers"`
	InitContainers []Container `json:"initContainers"`
}

// A Container is a container of a pod.
type Container struct {
	Name  string          `json:"name"`
	Image string          `json:"image"`
	Ports []ContainerPort `json:"ports"`
}

// A Protocol is "TCP", "UDP" or "SCTP".
type Protocol string

// A ContainerPort is a port of a container.
type ContainerPort struct {
	Name          string   `json:"name"`
	ContainerPort int32    `json:"containerPort"`
	Protocol      Protocol `json:"protocol"`
}

// A PodPhase is the phase of a pod's life.
type PodPhase string

// PodStatus is the status of a pod.
type PodStatus struct {
	Phase                 PodPhase          `json:"phase"`
	Conditions            []PodCondition    `json:"conditions"`
	HostIP                string            `json:"hostIP"`
	PodIP                 string            `json:"podIP"`
	ContainerStatuses     []ContainerStatus `json:"containerStatuses"`
	InitContainerStatuses []ContainerStatus `json:"initContainerStatuses"`
}

// A PodConditionType is the type of a pod's condition.
type PodConditionType string

// PodReady is the condition of a pod that can serve.
const PodReady PodConditionType = "Ready"

// A PodCondition is a condition of a pod.
type PodCondition struct {
	Type   PodConditionType `json:"type"`
	Status ConditionStatus  `json:"status"`
}

// A ContainerStatus is the status of a container.
type ContainerStatus struct {
	Name        string `json:"name"`
	ContainerID string `json:"containerID"`
}

// A Service is a name for what pods offer.
type Service struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec ServiceSpec `json:"spec"`
}

// A ServiceType says how a service is exposed.
type ServiceType string

// Types with fields of their own.
const (
	ServiceTypeLoadBalancer ServiceType = "LoadBalancer"
	ServiceTypeExternalName ServiceType = "ExternalName"
)

// An IPFamily is "IPv4" or "IPv6".
type IPFamily string

// An IPFamilyPolicy says whether a service may have both families.
type IPFamilyPolicy string

// Policies under which it may.
const (
	IPFamilyPolicyPreferDualStack  IPFamilyPolicy = "PreferDualStack"
	IPFamilyPolicyRequireDualStack IPFamilyPolicy = "RequireDualStack"
)

// ServiceSpec is the specification of a service.
type ServiceSpec struct {
	Ports          []ServicePort   `json:"ports"`
	ClusterIP      string          `json:"clusterIP"`
	Type           ServiceType     `json:"type"`
	LoadBalancerIP string          `json:"loadBalancerIP"`
	ExternalName   string          `json:"externalName"`
	IPFamilies     []IPFamily      `json:"ipFamilies"`
	IPFamilyPolicy *IPFamilyPolicy `json:"ipFamilyPolicy"`
}

// A ServicePort is a port of a service.
type ServicePort struct {
	Name     string   `json:"name"`
	Protocol Protocol `json:"protocol"`
	Port     int32    `json:"port"`
}

// EndpointsOverCapacity is the annotation of an object that cannot hold all addresses.
const EndpointsOverCapacity = "endpoints.kubernetes.io/over-capacity"

// Endpoints are the addresses behind a service.
type Endpoints struct {
	metav1.ObjectMeta `json:"metadata"`

	Subsets []EndpointSubset `json:"subsets"`
}

// An EndpointSubset is a set of addresses with the same ports.
type EndpointSubset struct {
	Addresses         []EndpointAddress `json:"addresses"`
	NotReadyAddresses []EndpointAddress `json:"notReadyAddresses"`
	Ports             []EndpointPort    `json:"ports"`
}

// An EndpointAddress is an address of a subset.
type EndpointAddress struct {
	IP        string           `json:"ip"`
	Hostname  string           `json:"hostname"`
	NodeName  *string          `json:"nodeName"`
	TargetRef *ObjectReference `json:"targetRef"`
}

// An EndpointPort is a port of a subset.
type EndpointPort struct {
	Name     string   `json:"name"`
	Port     int32    `json:"port"`
	Protocol Protocol `json:"protocol"`
}

// An ObjectReference names an object.
type ObjectReference struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}
