// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package memlimit

import (
	"io/fs"
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	hostMemory = 8 << 30
	meminfo    = "MemTotal:        8388608 kB\nMemFree:  1 kB\n"
	mountV2    = "31 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	mountV1    = "34 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	sentinelV1 = "9223372036854771712\n"
)

// tree returns the file system of a host with hostMemory and the given files.
func tree(files map[string]string) fstest.MapFS {
	root := fstest.MapFS{"proc/meminfo": {Data: []byte(meminfo)}}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

// treeV2 returns that of a container in cgroup v2 with the limit.
func treeV2(limit string) fstest.MapFS {
	return tree(map[string]string{
		"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/memory.max": limit,
	})
}

func TestTheTightestLimitCounts(t *testing.T) {
	bare := Limits{Host: hostMemory}
	limited := func(limit int64) Limits { return Limits{Max: limit, Host: hostMemory} }
	for name, c := range map[string]struct {
		files map[string]string
		want  Limits
	}{
		"no cgroups": {nil, bare},
		"v2 container": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/memory.max": "1073741824\n",
		}, limited(1 << 30)},
		"mount point with blanks": {map[string]string{
			"proc/self/cgroup":                "0::/a b\n",
			"proc/self/mountinfo":             "35 31 0:32 / /mnt/with\\040blank\\134 rw - cgroup2 cgroup2 rw\n",
			"mnt/with blank\\/a b/memory.max": "1073741824\n",
		}, limited(1 << 30)},
		"v2 max": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/memory.max": "max\n",
		}, bare},
		"v2 host root has no limit file": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountV2,
		}, bare},
		"v2 nested, the slice is tighter": {map[string]string{
			"proc/self/cgroup":                                     "0::/system.slice/agent.service\n",
			"proc/self/mountinfo":                                  mountV2,
			"sys/fs/cgroup/system.slice/memory.max":                "536870912\n",
			"sys/fs/cgroup/system.slice/agent.service/memory.max":  "1073741824\n",
			"sys/fs/cgroup/system.slice/other.service/memory.max":  "1048576\n",
			"sys/fs/cgroup/system.slice/agent.service/memory.high": "268435456\n",
			"sys/fs/cgroup/system.slice/memory.high":               "max\n",
			"sys/fs/cgroup/system.slice/other.service/memory.high": "1048576\n",
		}, Limits{Max: 512 << 20, High: 256 << 20, Host: hostMemory}},
		"v2 high above the host's memory": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/memory.high": "17179869184\n",
		}, bare},
		"v2 nested, the leaf is tighter": {map[string]string{
			"proc/self/cgroup":           "0::/a/b/c\n",
			"proc/self/mountinfo":        mountV2,
			"sys/fs/cgroup/a/memory.max": "1073741824\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
			"sys/fs/cgroup/a/b/c/memory.max": "268435456\n",
		}, limited(256 << 20)},
		"v2 above the host's memory": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/memory.max": "17179869184\n",
		}, bare},
		"v2 outside the namespace": {map[string]string{
			"proc/self/cgroup": "0::/../../x\n", "proc/self/mountinfo": mountV2, "sys/fs/cgroup/memory.max": "1073741824\n",
		}, limited(1 << 30)},
		"v1": {map[string]string{
			"proc/self/cgroup":                             "11:cpu,cpuacct:/x\n4:memory:/x\n1:name=systemd:/x\n0::/\n",
			"proc/self/mountinfo":                          mountV1,
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   sentinelV1,
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "1073741824\n",
			"sys/fs/cgroup/cpu/x/memory.limit_in_bytes":    "1048576\n",
		}, limited(1 << 30)},
		"v1 unlimited": {map[string]string{
			"proc/self/cgroup": "4:memory:/x\n", "proc/self/mountinfo": mountV1,
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": sentinelV1,
		}, bare},
		"v1 container that shows its subtree only": {map[string]string{
			"proc/self/cgroup":                               "4:memory:/docker/abc/sub\n",
			"proc/self/mountinfo":                            "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "1073741824\n",
			"sys/fs/cgroup/memory/sub/memory.limit_in_bytes": "268435456\n",
		}, limited(256 << 20)},
		"v1 container whose mount is another's": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/abcd\n",
			"proc/self/mountinfo":                        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
		}, limited(1 << 30)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(tree(c.files))
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

// denied refuses to open one file.
type denied struct {
	fs.FS

	name string
}

func (d denied) Open(name string) (fs.File, error) {
	if name == d.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.FS.Open(name)
}

func TestSaysWhatItCannotRead(t *testing.T) {
	f := func(root fs.FS, want Limits, fault string) {
		t.Helper()
		got, err := Read(root)
		require.ErrorContains(t, err, fault)
		assert.Equal(t, want, got)
	}
	nested := tree(map[string]string{
		"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": mountV2,
		"sys/fs/cgroup/a/memory.max": "1073741824\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
	})
	f(denied{nested, "sys/fs/cgroup/a/b/memory.max"}, Limits{Max: 1 << 30, Host: hostMemory}, "cannot read the cgroup's limit")
	f(denied{nested, "proc/self/cgroup"}, Limits{Host: hostMemory}, "cannot read the process's cgroup")
	f(denied{nested, "proc/self/mountinfo"}, Limits{Host: hostMemory}, "cannot read the cgroup mounts")
	f(denied{nested, "proc/meminfo"}, Limits{Max: 1 << 30}, "cannot read the host's memory")
	f(treeV2("lots\n"), Limits{Host: hostMemory}, "cannot parse the cgroup's limit \"lots\" of /sys/fs/cgroup/memory.max")
	f(treeV2("-5\n"), Limits{Host: hostMemory}, "cannot parse the cgroup's limit")
	f(tree(map[string]string{"proc/meminfo": "MemTotal: x kB\n"}), Limits{}, "cannot parse MemTotal \"x\"")
	f(tree(map[string]string{"proc/meminfo": "MemFree: 1 kB\n"}), Limits{}, "cannot find MemTotal")
}

func FuzzLimitsNeverExceedTheHost(f *testing.F) {
	f.Add("0::/a\n", mountV2, "1073741824\n")
	f.Add("4:memory:/a\n", mountV1, sentinelV1)
	f.Add("0::/../a/./b\n", "1 2 0:1 /.. /sys/fs/cgroup rw - cgroup2 x x", "max")
	f.Fuzz(func(t *testing.T, membership, mounts, limit string) {
		got, _ := Read(tree(map[string]string{
			"proc/self/cgroup": membership, "proc/self/mountinfo": mounts,
			"sys/fs/cgroup/memory.max": limit, "sys/fs/cgroup/memory.high": limit, "sys/fs/cgroup/memory/a/memory.limit_in_bytes": limit,
		}))
		if got.Max < 0 || got.Max >= hostMemory || got.High < 0 || got.High >= hostMemory || got.Host != hostMemory {
			t.Errorf("%+v of limit %q", got, limit)
		}
	})
}

func TestAvailableIsWhatBindsFirst(t *testing.T) {
	f := func(want int64, l Limits, goLimit int64) {
		t.Helper()
		assert.Equal(t, want, l.available(goLimit))
	}
	f(0, Limits{}, math.MaxInt64)
	f(8, Limits{Host: 8}, math.MaxInt64)
	f(4, Limits{Max: 4, Host: 8}, math.MaxInt64)
	f(3, Limits{Max: 4, High: 3, Host: 8}, math.MaxInt64)
	f(2, Limits{Max: 4, High: 3, Host: 8}, 2)
	f(5, Limits{}, 5)
	assert.Positive(t, Available(), "of this machine")
}

func TestSharesOfMemory(t *testing.T) {
	s := Share{Part: 8, Least: 16 << 20, Most: 256 << 20}
	f := func(memory, want int64, why string) {
		t.Helper()
		assert.Equal(t, want, s.Of(memory))
		assert.Equal(t, why, s.Why(memory))
	}
	f(0, 256<<20, "")
	f(512<<20, 64<<20, "an eighth of the memory there is (512MiB)")
	f(32<<20, 16<<20, "the least there is, with 32MiB of memory")
	f(64<<30, 256<<20, "")
	assert.Equal(t, "half of the memory there is (8GiB)", Share{Part: 2, Most: 1 << 40}.Why(8<<30))
	assert.Equal(t, "a 5th of the memory there is (3KiB)", Share{Part: 5, Most: 1 << 40}.Why(3<<10))
	assert.Equal(t, "1000 bytes", Size(1000))
}

func TestDataHasWhatTheProgramLeaves(t *testing.T) {
	for memory, want := range map[int64]int64{
		0: 0, 24 << 20: 8 << 20, 36 << 20: 12 << 20, 72 << 20: 32 << 20, 120 << 20: 64 << 20, 512 << 20: 456 << 20,
	} {
		assert.Equal(t, want, forData(memory), "of %s", Size(memory))
	}
	for _, memory := range []int64{64 << 20, 96 << 20, 128 << 20} {
		var all int64 // what an agent that relays may hold at most, by the shares of its components: see their defaults
		for _, s := range []Share{{3, 0, 1 << 40}, {64, 4 << 20, 1 << 40}, {4, 4 << 20, 1 << 40}, {16, 1 << 20, 1 << 40}, {8, 1 << 20, 64 << 20}, {32, 1 << 20, 1 << 40}} {
			all += s.Of(forData(memory))
		}
		assert.Less(t, programMemory+all*3/2, memory, "with half as much garbage, of %s", Size(memory))
	}
}
