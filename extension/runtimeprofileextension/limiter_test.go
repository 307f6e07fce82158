// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func effective(t *testing.T, yaml string) *confmap.Conf {
	t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	return conf
}

func TestLimiterIsTheTightestInUse(t *testing.T) {
	f := func(yaml string, want limiter) {
		t.Helper()
		got, err := findLimiter(effective(t, yaml), 1000*mib)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	f("{}", limiter{})
	f("processors: {memory_limiter: {limit_mib: 400}}", limiter{}) // in no pipeline
	f(`
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 400, spike_limit_mib: 100}
service: {pipelines: {metrics: {processors: [memory_limiter]}}}`,
		limiter{soft: 300 * mib, hard: 400 * mib})
	f(`
processors:
  memory_limiter/a: {limit_mib: 400}
  memory_limiter/b: {limit_percentage: 30, spike_limit_percentage: 5}
  memory_limiter_not: {limit_mib: 1}
  batch:
service:
  pipelines:
    metrics: {processors: [batch, memory_limiter/a, memory_limiter_not]}
    logs: {processors: [memory_limiter/b]}`,
		limiter{soft: 250 * mib, hard: 300 * mib})
	f(`
extensions:
  memory_limiter: {limit_percentage: 50}
service: {extensions: [memory_limiter], pipelines: {metrics: {}}}`,
		limiter{soft: 400 * mib, hard: 500 * mib})
}

func TestLimiterThatCannotBeRead(t *testing.T) {
	got, err := findLimiter(effective(t, `
processors: {memory_limiter: {limit_mib: much}}
service: {pipelines: {metrics: {processors: [memory_limiter]}}}`), 0)
	require.ErrorContains(t, err, "cannot read processors::memory_limiter")
	assert.Zero(t, got)
}

func TestDisagreement(t *testing.T) {
	box := budget{cgroup: 500 * mib, host: hostMemory}
	l := limiter{soft: 300 * mib, hard: 400 * mib}
	f := func(limit int64, l limiter, want string) {
		t.Helper()
		got := disagreement(limit, l, box)
		assert.True(t, (got == "") == (want == "") && strings.Contains(got, want), "%d: %q", limit/mib, got)
	}
	f(noLimit, l, "")
	f(299*mib, l, "below the memory_limiter's soft limit")
	f(300*mib, l, "")
	f(l.middle(), l, "")
	f(400*mib, l, "")
	f(401*mib, l, "above the memory_limiter's hard limit")
	f(501*mib, l, "above the memory budget")
	f(501*mib, limiter{}, "above the memory budget")
	f(200*mib, limiter{}, "")
	f(400*mib, limiter{soft: 4 << 30, hard: 5 << 30}, "limiter's soft limit is above the memory budget")
}

// memory_limiter uses percentages of the memory that it detects, which is not always the limit of the process.
func TestPercentagesAreOfWhatTheLimiterKnows(t *testing.T) {
	f := func(root fs.FS, want int64) {
		t.Helper()
		b, err := readBudget(root)
		require.NoError(t, err)
		assert.Equal(t, want, knownToLimiter(root, b))
	}
	f(tree(nil), hostMemory)
	f(treeV2("max\n"), hostMemory)
	f(treeV2("1073741824\n"), 1<<30)
	high := treeV2("1073741824\n")
	high["sys/fs/cgroup/memory.high"] = &fstest.MapFile{Data: []byte("536870912\n")}
	f(high, 1<<30)
	// A systemd service without a cgroup namespace.
	f(tree(map[string]string{
		"proc/self/cgroup": "0::/system.slice/godwit.service\n", "proc/self/mountinfo": mountV2,
		"sys/fs/cgroup/system.slice/godwit.service/memory.max": "536870912\n",
	}), hostMemory)
	f(tree(map[string]string{
		"proc/self/cgroup":                               "4:memory:/box\n",
		"proc/self/mountinfo":                            "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
		"sys/fs/cgroup/memory/box/memory.limit_in_bytes": "536870912\n",
	}), 512*mib)
}
