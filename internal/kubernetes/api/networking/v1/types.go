// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has ingresses, with the fields that service discovery reads.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Ingress routes requests from outside to services.
type Ingress struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec IngressSpec `json:"spec"`
}

// IngressSpec is the specification of an ingress.
type IngressSpec struct {
	IngressClassName *string       `json:"ingressClassName"`
	TLS              []IngressTLS  `json:"tls"`
	Rules            []IngressRule `json:"rules"`
}

// IngressTLS lists hosts with a certificate.
type IngressTLS struct {
	Hosts []string `json:"hosts"`
}

// An IngressRule is the rule for a host.
type IngressRule struct {
	IngressRuleValue

	Host string `json:"host"`
}

// IngressRuleValue has the paths of a rule.
type IngressRuleValue struct {
	HTTP *HTTPIngressRuleValue `json:"http"`
}

// HTTPIngressRuleValue has the HTTP paths of a rule.
type HTTPIngressRuleValue struct {
	Paths []HTTPIngressPath `json:"paths"`
}

// An HTTPIngressPath is a path of a rule.
type HTTPIngressPath struct {
	Path string `json:"path"`
}
