// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has the client of a group of Kubernetes' API.
package v1

import (
	"k8s.io/client-go/rest"
)

// NetworkingV1Interface has the collections of the group that service discovery reads.
type NetworkingV1Interface interface {
	Ingresses(namespace string) rest.Collection
}
