// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package runtimeprofileextension

func usedSeconds() (float64, bool) { return 0, false }
