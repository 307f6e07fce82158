// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	hostMemory = 8 << 30
	meminfo    = "MemTotal:        8388608 kB\nMemFree:  1 kB\n"
	mountV2    = "31 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
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

// The lower one of memory.max and memory.high applies.
func TestBudgetIsTheTightestLimit(t *testing.T) {
	f := func(root fs.FS, want budget) {
		t.Helper()
		got, err := readBudget(root)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	f(tree(nil), budget{host: hostMemory})
	f(treeV2("max\n"), budget{host: hostMemory})
	root := treeV2("1073741824\n")
	root["sys/fs/cgroup/memory.high"] = &fstest.MapFile{Data: []byte("1048576\n")}
	f(root, budget{cgroup: 1 << 20, host: hostMemory})
	_, err := readBudget(denied{root, "sys/fs/cgroup/memory.max"})
	require.ErrorContains(t, err, "cannot read the cgroup's limit")
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

func TestTooLittleMemoryIsReported(t *testing.T) {
	quietEnv(t)
	for limit, told := range map[string]int{"134217727\n": 1, "134217728\n": 0, "max\n": 0} {
		s := newSubject(&Config{Profile: ProfileMinimal}, treeV2(limit))
		s.start(t)
		require.Equal(t, told, s.said("so low"), limit)
		s.shutdown(t)
	}
}
