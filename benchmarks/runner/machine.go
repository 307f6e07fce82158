// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/godwit-otel/godwit/benchmarks/report"
)

// Machine describes the machine.
func Machine() report.Machine {
	m := report.Machine{Cores: runtime.NumCPU(), Go: runtime.Version()}
	m.Model = lineValue("/proc/cpuinfo", "model name")
	kib, _ := strconv.ParseInt(strings.TrimSuffix(lineValue("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	m.Memory = kib << 10
	// The version number is enough; the rest of the kernel's release is long.
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	number, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
	m.Kernel = "Linux " + number
	return m
}

// lineValue returns the value of the first line `key : value` in a file.
func lineValue(file, key string) string {
	body, _ := os.ReadFile(file)
	for line := range strings.Lines(string(body)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
