// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package meter

// CPUSeconds is not known here.
func CPUSeconds() float64 { return -1 }
