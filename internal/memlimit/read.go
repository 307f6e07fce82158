// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package memlimit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Limits are the limits on the process's memory in bytes; 0 means unknown or none.
type Limits struct {
	// Max is the lowest hard limit (memory.max, memory.limit_in_bytes) from the process's cgroup up to the root, if it
	// is below the host's memory.
	Max int64
	// High is the lowest memory.high there, above which the kernel slows the process down, under the same condition.
	High int64
	// Host is the memory of the host.
	Host int64
}

// Read reads the limits below root, which is / except in tests. It returns what it could read even with an error.
func Read(root fs.FS) (Limits, error) {
	host, errHost := readMemTotal(root)
	most, high, errCgroup := readCgroup(root)
	if host > 0 && most >= host {
		most = 0 // this includes "unlimited" of v1
	}
	if host > 0 && high >= host {
		high = 0
	}
	return Limits{Max: most, High: high, Host: host}, errors.Join(errHost, errCgroup)
}

// OfMount returns the hard limit at the usual mount point of cgroup v2, 0 if there is none, and whether it is mounted.
func OfMount(root fs.FS) (limit int64, isV2 bool, err error) {
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return 0, false, fmt.Errorf("cannot read the cgroup mounts: %w", err)
	}
	const usual = "/sys/fs/cgroup"
	v2 := hierarchies[0]
	for _, point := range v2.mounts(mounts) {
		if point == usual {
			limit, err = readLimit(root, path.Join(usual[1:], v2.maxFile))
			return limit, true, err
		}
	}
	return 0, false, nil
}

func readMemTotal(root fs.FS) (int64, error) {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("cannot read the host's memory: %w", err)
	}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || kib <= 0 || kib > math.MaxInt64>>10 {
			return 0, fmt.Errorf("cannot parse MemTotal %q of /proc/meminfo", fields[1])
		}
		return kib << 10, nil
	}
	return 0, errors.New("cannot find MemTotal in /proc/meminfo")
}

// hierarchy is a version of memory cgroups: how it is mounted, and the names of its files.
type hierarchy struct {
	fsType, controller string
	maxFile, highFile  string
}

var hierarchies = []hierarchy{
	{fsType: "cgroup2", controller: "", maxFile: "memory.max", highFile: "memory.high"},
	{fsType: "cgroup", controller: "memory", maxFile: "memory.limit_in_bytes"},
}

// readCgroup returns the lowest limits of either hierarchy, 0 if there are none. A machine has the memory controller in
// one of the two; the other has no such files and does not count.
func readCgroup(root fs.FS) (most, high int64, err error) {
	memberships, err := fs.ReadFile(root, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil // a kernel without cgroups, or no Linux at all
	}
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the process's cgroup: %w", err)
	}
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the cgroup mounts: %w", err)
	}
	var errs []error
	for _, h := range hierarchies {
		member, ok := h.membership(memberships)
		if !ok {
			continue
		}
		for mountRoot, mountPoint := range h.mounts(mounts) {
			dir := below(mountRoot, member)
			limit, err := walk(root, mountPoint, dir, h.maxFile)
			most = tighter(most, limit)
			errs = append(errs, err)
			if h.highFile != "" {
				limit, err = walk(root, mountPoint, dir, h.highFile)
				high = tighter(high, limit)
				errs = append(errs, err)
			}
		}
	}
	return most, high, errors.Join(errs...)
}

// membership finds the process's path in lines such as "4:memory:/a" (v1) and
// "0::/a" (v2).
func (h hierarchy) membership(text []byte) (string, bool) {
	for line := range bytes.Lines(text) {
		parts := strings.SplitN(strings.TrimRight(string(line), "\n"), ":", 3)
		if len(parts) == 3 && slices.Contains(strings.Split(parts[1], ","), h.controller) {
			return parts[2], true
		}
	}
	return "", false
}

// mounts yields root and mount point of each mount of the hierarchy from lines
// such as "35 31 0:32 /box /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory".
func (h hierarchy) mounts(text []byte) func(yield func(root, point string) bool) {
	return func(yield func(root, point string) bool) {
		for line := range bytes.Lines(text) {
			before, after, _ := strings.Cut(string(line), " - ")
			left, right := strings.Fields(before), strings.Fields(after)
			if len(left) < 5 || len(right) < 3 || right[0] != h.fsType {
				continue
			}
			if h.controller != "" && !slices.Contains(strings.Split(right[2], ","), h.controller) {
				continue
			}
			if !yield(unescape(left[3]), unescape(left[4])) {
				return
			}
		}
	}
}

// unescape undoes what the kernel does to blanks and backslashes in mountinfo.
func unescape(field string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(field)
}

// below maps the process's cgroup path into a mount that shows only the subtree mountRoot, as a container's bind mount
// does. For a path outside, it returns the mount's root, whose limits are more likely to apply than none.
func below(mountRoot, member string) string {
	member = path.Clean("/" + member)
	if mountRoot == "/" {
		return member
	}
	rest, ok := strings.CutPrefix(member+"/", mountRoot+"/")
	if !ok {
		return "/"
	}
	return path.Clean("/" + rest)
}

// walk reads the limit in file at dir and every level above it up to the mount point.
func walk(root fs.FS, mountPoint, dir, file string) (int64, error) {
	tightest := int64(0)
	var errs []error
	for ; ; dir = path.Dir(dir) {
		limit, err := readLimit(root, strings.TrimPrefix(path.Join(mountPoint, dir, file), "/"))
		tightest = tighter(tightest, limit)
		errs = append(errs, err)
		if dir == "/" {
			return tightest, errors.Join(errs...)
		}
	}
}

// readLimit returns 0 for "max", for v1's page-rounded maximum and for a level without the file, such as v2's root.
func readLimit(root fs.FS, name string) (int64, error) {
	text, err := fs.ReadFile(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read the cgroup's limit: %w", err)
	}
	word := strings.TrimSpace(string(text))
	if word == "max" {
		return 0, nil
	}
	limit, err := strconv.ParseInt(word, 10, 64)
	if err != nil || limit < 0 {
		return 0, fmt.Errorf("cannot parse the cgroup's limit %q of /%s", word, name)
	}
	if limit >= 1<<62 {
		return 0, nil
	}
	return limit, nil
}

// tighter returns the smaller of two limits, of which 0 means none.
func tighter(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
