// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package alloctest

const raced = true
