// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build purego

package intern

// Same says whether two equal strings share their memory already. It may say no when they do.
func Same(string, string) bool { return false }
