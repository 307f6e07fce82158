// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package interop has the tests of the fastprometheus receiver that need a whole Collector: how it reads the pipelines
// that it is in, and what arrives at their ends. It is a separate module so that the receiver depends on none of it.
package interop
