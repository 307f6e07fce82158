// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package fake is empty. Prometheus' discovery imports it in tests only: go mod tidy requires it, but nothing here uses
// it.
package fake
