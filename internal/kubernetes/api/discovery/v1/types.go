// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has slices of the addresses behind a service, with the fields that service discovery reads.
package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelServiceName is the label with the service of a slice.
const LabelServiceName = "kubernetes.io/service-name"

// An AddressType is "IPv4", "IPv6" or "FQDN".
type AddressType string

// An EndpointSlice has some of a service's addresses.
type EndpointSlice struct {
	metav1.ObjectMeta `json:"metadata"`

	AddressType AddressType    `json:"addressType"`
	Endpoints   []Endpoint     `json:"endpoints"`
	Ports       []EndpointPort `json:"ports"`
}

// An Endpoint is an endpoint with its addresses.
type Endpoint struct {
	Addresses          []string                `json:"addresses"`
	Conditions         EndpointConditions      `json:"conditions"`
	Hostname           *string                 `json:"hostname"`
	TargetRef          *corev1.ObjectReference `json:"targetRef"`
	DeprecatedTopology map[string]string       `json:"deprecatedTopology"`
	NodeName           *string                 `json:"nodeName"`
	Zone               *string                 `json:"zone"`
}

// EndpointConditions are the conditions of an endpoint, nil if unknown.
type EndpointConditions struct {
	Ready       *bool `json:"ready"`
	Serving     *bool `json:"serving"`
	Terminating *bool `json:"terminating"`
}

// An EndpointPort is a port of a slice.
type EndpointPort struct {
	Name        *string          `json:"name"`
	Protocol    *corev1.Protocol `json:"protocol"`
	Port        *int32           `json:"port"`
	AppProtocol *string          `json:"appProtocol"`
}
