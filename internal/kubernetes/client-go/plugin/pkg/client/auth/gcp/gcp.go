// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package gcp is imported by service discovery for a way to log in that Kubernetes no longer has.
package gcp
