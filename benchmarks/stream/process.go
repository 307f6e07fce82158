// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time of a process, user and system, in seconds; pid 0 is this one.
func cpuTime(pid int) float64 {
	clock := int32(unix.CLOCK_PROCESS_CPUTIME_ID)
	if pid != 0 {
		const schedulerClock = 2 // the kernel's CPUCLOCK_SCHED, of a whole process
		clock = int32(^pid)<<3 | schedulerClock
	}
	var t unix.Timespec
	if unix.ClockGettime(clock, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano()).Seconds()
}

// memoryOf returns the peak of resident memory of a process and the resident bytes of files; pid 0 is this one.
func memoryOf(pid int) (peak, files int64) {
	of := "self"
	if pid != 0 {
		of = strconv.Itoa(pid)
	}
	status := "/proc/" + of + "/status"
	return statusBytes(status, "\nVmHWM:"), statusBytes(status, "\nRssFile:")
}

func statusBytes(file, key string) int64 {
	status, _ := os.ReadFile(file)
	_, rest, _ := bytes.Cut(status, []byte(key))
	fields := strings.Fields(string(rest[:max(0, bytes.IndexByte(rest, '\n'))]))
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10
}

// child is a process that the kernel kills when the thread that started it ends: it must be started from the main
// thread.
type child struct {
	cmd *exec.Cmd
	out *bufio.Reader
	log string
}

// startChild starts a program. Its standard error goes to a log file in dir.
func startChild(dir, name, path string, args ...string) (*child, error) {
	c := &child{cmd: exec.CommandContext(context.Background(), path, args...), log: filepath.Join(dir, name+".log")}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	defer log.Close()
	c.cmd.Stderr = log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	c.out = bufio.NewReader(out)
	return c, nil
}

// line reads one line of JSON that the child prints.
func (c *child) line(into any) error {
	text, err := c.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("cannot understand %s: %w\n%s", filepath.Base(c.cmd.Path), err, c.tail())
	}
	return nil
}

// tail returns the end of the child's standard error.
func (c *child) tail() string {
	text, _ := os.ReadFile(c.log)
	return string(text[max(0, len(text)-2000):])
}

func (c *child) cpu() float64 { return cpuTime(c.cmd.Process.Pid) }

// forgetPeak resets the peak of memory.
func (c *child) forgetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.cmd.Process.Pid), []byte("5"), 0)
}

// memory returns the peak of resident memory since forgetPeak and the resident bytes of files.
func (c *child) memory() (peak, files int64) { return memoryOf(c.cmd.Process.Pid) }

// terminate sends SIGTERM.
func (c *child) terminate() { _ = c.cmd.Process.Signal(syscall.SIGTERM) }

// stop ends the child, and kills it if that takes long.
func (c *child) stop() {
	c.terminate()
	t := time.AfterFunc(15*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer t.Stop()
	_ = c.cmd.Wait()
}
