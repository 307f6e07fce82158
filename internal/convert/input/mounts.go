// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package input

import "strings"

// A Mount is where a container has a file or a folder of its host.
type Mount struct{ Inside, Outside string }

// outside is where the host has a file that a container sees, or what was asked for.
func outside(mounts []Mount, name string) string {
	found := Mount{}
	for _, m := range mounts {
		if (name == m.Inside || strings.HasPrefix(name, m.Inside+"/")) && len(m.Inside) > len(found.Inside) {
			found = m
		}
	}
	if found.Inside == "" {
		return name
	}
	return found.Outside + strings.TrimPrefix(name, found.Inside)
}
