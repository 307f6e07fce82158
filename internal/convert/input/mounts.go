// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package input

import "strings"

// A Mount maps a file or directory in a container to the host's.
type Mount struct{ Inside, Outside string }

// outside returns the host's name of a file in a container, or name if it is not in a mount.
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
