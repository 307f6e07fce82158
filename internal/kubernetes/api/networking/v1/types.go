// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has ingresses, with the fields that service discovery reads.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Ingress routes from outside to services.
type Ingress struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec IngressSpec `json:"spec"`
}

// IngressSpec is what an ingress was made with.
type IngressSpec struct {
	IngressClassName *string       `json:"ingressClassName"`
	TLS              []IngressTLS  `json:"tls"`
	Rules            []IngressRule `json:"rules"`
}

// IngressTLS names hosts with a certificate.
type IngressTLS struct {
	Hosts []string `json:"hosts"`
}

// An IngressRule is what is done for a host.
type IngressRule struct {
	IngressRuleValue

	Host string `json:"host"`
}

// IngressRuleValue is a rule's paths.
type IngressRuleValue struct {
	HTTP *HTTPIngressRuleValue `json:"http"`
}

// HTTPIngressRuleValue are paths of HTTP.
type HTTPIngressRuleValue struct {
	Paths []HTTPIngressPath `json:"paths"`
}

// An HTTPIngressPath is one of them.
type HTTPIngressPath struct {
	Path string `json:"path"`
}
