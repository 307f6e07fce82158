// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// rivalType is contrib's extension that sets GOMEMLIMIT once, to a part of the cgroup's limit.
const rivalType = "cgroupruntime"

// findRival returns the extension in use that also sets GOMEMLIMIT, "" if there is none. It does so by default.
func findRival(conf *confmap.Conf) string {
	for _, id := range names(section(conf, "service")["extensions"]) {
		if kind, _, _ := strings.Cut(id, "/"); kind != rivalType {
			continue
		}
		enabled := conf.Get(strings.Join([]string{"extensions", id, "gomemlimit", "enabled"}, confmap.KeyDelimiter))
		if on, ok := enabled.(bool); !ok || on {
			return id
		}
	}
	return ""
}
