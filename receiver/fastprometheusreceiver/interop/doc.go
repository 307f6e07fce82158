// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package interop has the tests of the fastprometheus receiver that need a whole Collector: what it makes of the pipelines
// that it is in, and what arrives at their ends. They are a module of their own so that the receiver depends on none of it.
package interop
