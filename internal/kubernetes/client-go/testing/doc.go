// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package testing is empty. go mod tidy looks for what the tests of Prometheus' discovery import, and nobody runs these against this module.
package testing
