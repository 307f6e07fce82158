// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has the client of a group of Kubernetes' API.
package v1

import (
	"k8s.io/client-go/rest"
)

// CoreV1Interface has the collections of the group that service discovery reads.
type CoreV1Interface interface {
	Namespaces() rest.Collection
	Nodes() rest.Collection
	Pods(namespace string) rest.Collection
	Services(namespace string) rest.Collection
	Endpoints(namespace string) rest.Collection
}
