// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has what service discovery reads of a job: who owns it.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Job runs pods until they complete.
type Job struct {
	metav1.ObjectMeta `json:"metadata"`
}
