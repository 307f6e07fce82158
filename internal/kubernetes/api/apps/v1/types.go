// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has what service discovery reads of a replica set: who owns it.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A ReplicaSet keeps the pods of a deployment.
type ReplicaSet struct {
	metav1.ObjectMeta `json:"metadata"`
}
