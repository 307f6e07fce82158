// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has the objects of Kubernetes' core that service discovery reads, with the fields that it reads.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NamespaceAll names all namespaces.
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

// NodeSpec is what a node was made with.
type NodeSpec struct {
	ProviderID string `json:"providerID"`
}

// NodeStatus is what a node says.
type NodeStatus struct {
	Conditions      []NodeCondition     `json:"conditions"`
	Addresses       []NodeAddress       `json:"addresses"`
	DaemonEndpoints NodeDaemonEndpoints `json:"daemonEndpoints"`
}

// A ConditionStatus is "True", "False" or "Unknown".
type ConditionStatus string

// ConditionUnknown is neither.
const ConditionUnknown ConditionStatus = "Unknown"

// A NodeCondition is one of a node's.
type NodeCondition struct {
	Type   string          `json:"type"`
	Status ConditionStatus `json:"status"`
}

// A NodeAddressType says of what kind an address is.
type NodeAddressType string

// Nodes have these.
const (
	NodeHostName    NodeAddressType = "Hostname"
	NodeInternalIP  NodeAddressType = "InternalIP"
	NodeExternalIP  NodeAddressType = "ExternalIP"
	NodeInternalDNS NodeAddressType = "InternalDNS"
	NodeExternalDNS NodeAddressType = "ExternalDNS"
)

// A NodeAddress is one of a node's.
type NodeAddress struct {
	Type    NodeAddressType `json:"type"`
	Address string          `json:"address"`
}

// NodeDaemonEndpoints are the ports of a node's own services.
type NodeDaemonEndpoints struct {
	KubeletEndpoint DaemonEndpoint `json:"kubeletEndpoint"`
}

// A DaemonEndpoint is the port of one of them.
type DaemonEndpoint struct {
	Port int32 `json:"Port"`
}

// A Pod is a set of containers.
type Pod struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec   PodSpec   `json:"spec"`
	Status PodStatus `json:"status"`
}

// PodSpec is what a pod was made with.
type PodSpec struct {
	NodeName       string      `json:"nodeName"`
	Containers     []Container `json:"containers"`
	InitContainers []Container `json:"initContainers"`
}

// A Container is one of a pod's.
type Container struct {
	Name  string          `json:"name"`
	Image string          `json:"image"`
	Ports []ContainerPort `json:"ports"`
}

// A Protocol is "TCP", "UDP" or "SCTP".
type Protocol string

// A ContainerPort is one of a container's.
type ContainerPort struct {
	Name          string   `json:"name"`
	ContainerPort int32    `json:"containerPort"`
	Protocol      Protocol `json:"protocol"`
}

// A PodPhase is what a pod goes through.
type PodPhase string

// PodStatus is what is known of a pod.
type PodStatus struct {
	Phase                 PodPhase          `json:"phase"`
	Conditions            []PodCondition    `json:"conditions"`
	HostIP                string            `json:"hostIP"`
	PodIP                 string            `json:"podIP"`
	ContainerStatuses     []ContainerStatus `json:"containerStatuses"`
	InitContainerStatuses []ContainerStatus `json:"initContainerStatuses"`
}

// A PodConditionType names a condition.
type PodConditionType string

// PodReady is true of a pod that can serve.
const PodReady PodConditionType = "Ready"

// A PodCondition is one of a pod's.
type PodCondition struct {
	Type   PodConditionType `json:"type"`
	Status ConditionStatus  `json:"status"`
}

// A ContainerStatus is what is known of a container.
type ContainerStatus struct {
	Name        string `json:"name"`
	ContainerID string `json:"containerID"`
}

// A Service is a name for what pods serve.
type Service struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec ServiceSpec `json:"spec"`
}

// A ServiceType says how a service can be reached.
type ServiceType string

// Two of them have fields of their own.
const (
	ServiceTypeLoadBalancer ServiceType = "LoadBalancer"
	ServiceTypeExternalName ServiceType = "ExternalName"
)

// An IPFamily is "IPv4" or "IPv6".
type IPFamily string

// An IPFamilyPolicy reports whether a service has both.
type IPFamilyPolicy string

// By these it may.
const (
	IPFamilyPolicyPreferDualStack  IPFamilyPolicy = "PreferDualStack"
	IPFamilyPolicyRequireDualStack IPFamilyPolicy = "RequireDualStack"
)

// ServiceSpec is what a service was made with.
type ServiceSpec struct {
	Ports          []ServicePort   `json:"ports"`
	ClusterIP      string          `json:"clusterIP"`
	Type           ServiceType     `json:"type"`
	LoadBalancerIP string          `json:"loadBalancerIP"`
	ExternalName   string          `json:"externalName"`
	IPFamilies     []IPFamily      `json:"ipFamilies"`
	IPFamilyPolicy *IPFamilyPolicy `json:"ipFamilyPolicy"`
}

// A ServicePort is one of a service's.
type ServicePort struct {
	Name     string   `json:"name"`
	Protocol Protocol `json:"protocol"`
	Port     int32    `json:"port"`
}

// EndpointsOverCapacity labels an object that is too small for what it names.
const EndpointsOverCapacity = "endpoints.kubernetes.io/over-capacity"

// Endpoints are the addresses behind a service.
type Endpoints struct {
	metav1.ObjectMeta `json:"metadata"`

	Subsets []EndpointSubset `json:"subsets"`
}

// An EndpointSubset is addresses with the same ports.
type EndpointSubset struct {
	Addresses         []EndpointAddress `json:"addresses"`
	NotReadyAddresses []EndpointAddress `json:"notReadyAddresses"`
	Ports             []EndpointPort    `json:"ports"`
}

// An EndpointAddress is one of them.
type EndpointAddress struct {
	IP        string           `json:"ip"`
	Hostname  string           `json:"hostname"`
	NodeName  *string          `json:"nodeName"`
	TargetRef *ObjectReference `json:"targetRef"`
}

// An EndpointPort is one of their ports.
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
