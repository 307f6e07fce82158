// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// attributes put the process into a process group of its own, and make the kernel kill it when its parent ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// The unit of CPU times in /proc is 100 Hz on every architecture that Go supports.
const clockTick = 10 * time.Millisecond

func usageOf(pid int) (Usage, error) {
	var u Usage
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	// The name in parentheses may contain anything; fields from the third on follow it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const utime, stime = 14 - 3, 15 - 3
	if len(fields) <= stime {
		return u, fmt.Errorf("cannot read the CPU time of process %d: %d fields", pid, len(fields))
	}
	for _, field := range [][]byte{fields[utime], fields[stime]} {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return u, fmt.Errorf("cannot read the CPU time of process %d: %w", pid, err)
		}
		u.CPU += time.Duration(ticks) * clockTick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	fieldsOf := map[string]*int64{"VmRSS": &u.RSS, "VmHWM": &u.PeakRSS, "RssAnon": &u.Anon}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		if key == "Threads" {
			if u.Threads, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return u, fmt.Errorf("cannot read the threads of process %d: %w", pid, err)
			}
		}
		field, wanted := fieldsOf[key]
		if !wanted {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return u, fmt.Errorf("cannot read the memory of process %d: %w", pid, err)
		}
		*field = kib << 10
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	u.Files = len(files)
	return u, err
}
