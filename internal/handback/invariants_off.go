// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !invariants

package handback

const invariants = false
