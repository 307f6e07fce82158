// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a child process in its own process group. The kernel kills it when the thread that started it ends, so
// that a killed runner leaves nothing behind: start must be called from a goroutine that is locked to the main thread.
type process struct {
	name   string
	cmd    *exec.Cmd
	stdout io.Reader
	log    string // the file for its standard error
	exited chan struct{}
	err    error
}

// install copies a binary to a directory in small chunks, as package managers and container engines do. Linux 6.18 maps
// a file by whole folios of the page cache, which are as large as the chunks that were written, and those of the linker
// have 2 MB: otherwise the resident size would depend on how a binary came to this machine.
func install(binary, dir string) (path string, err error) {
	from, err := os.Open(binary)
	if err != nil {
		return "", fmt.Errorf("cannot install: %w", err)
	}
	defer from.Close()
	path = filepath.Join(dir, filepath.Base(binary))
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return "", fmt.Errorf("cannot install: %w", err)
	}
	// The structs hide ReadFrom and WriteTo, which would leave the size of the chunks to the kernel.
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 32<<10))
	if err = errors.Join(err, to.Close()); err != nil {
		return "", fmt.Errorf("cannot install %s: %w", binary, err)
	}
	return path, nil
}

// start runs a command in a directory. If piped is set, its standard output can be read; otherwise it goes to the log
// with standard error.
func start(name, dir, path string, args []string, piped bool) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	defer log.Close()
	p.cmd = exec.CommandContext(context.Background(), path, args...) // stop ends it more gently than a context would
	p.cmd.Dir = dir
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.Stdout = log
	if piped {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("cannot start %s: %w", name, err)
		}
		defer w.Close()
		p.cmd.Stdout, p.stdout = w, r
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

var errExited = errors.New("process ended by itself")

// alive returns an error if the process has ended.
func (p *process) alive() error {
	select {
	case <-p.exited:
		return fmt.Errorf("cannot go on with %s: %w: %w\n%s", p.name, errExited, p.err, lastLines(p.log))
	default:
		return nil
	}
}

// stop sends SIGTERM, waits for patience, and then kills the process group.
func (p *process) stop(patience time.Duration) {
	if p == nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(patience):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // also for children that are left
	<-p.exited
}

// tree returns the process and all its descendants.
func tree(pid int) []int {
	all := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for child := range strings.FieldsSeq(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				all = append(all, tree(n)...)
			}
		}
	}
	return all
}

// Fields of /proc/<pid>/stat after the command: cutime and cstime, the times of children that have ended.
const (
	firstTime = 13
	lastTime  = 14
)

// clockTicks is USER_HZ, which is always 100 in Linux' /proc.
const clockTicks = 100

// cpuClock returns the clock of a process' CPU time, user and system of all its threads. The ticks in /proc are too
// coarse for little work.
func cpuClock(pid int) int32 {
	const scheduled = 2 // CPUCLOCK_SCHED
	return int32(^pid<<3 | scheduled)
}

// cpu returns the CPU time of the process tree, user and system, in seconds.
func (p *process) cpu() (float64, error) {
	var nanos int64
	ticks := 0
	for _, pid := range tree(p.cmd.Process.Pid) {
		var clock unix.Timespec
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || unix.ClockGettime(cpuClock(pid), &clock) != nil {
			continue // it has ended; its parent's cutime includes it
		}
		nanos += clock.Nano()
		// The command's name is in parentheses and may contain anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) <= lastTime {
			return 0, fmt.Errorf("cannot read CPU time of process %d: %q", pid, stat)
		}
		for _, f := range fields[firstTime : lastTime+1] {
			n, err := strconv.Atoi(f)
			if err != nil {
				return 0, fmt.Errorf("cannot read CPU time of process %d: %w", pid, err)
			}
			ticks += n
		}
	}
	return float64(nanos)/1e9 + float64(ticks)/clockTicks, nil
}

// forgetPeak resets the peak of memory.
func (p *process) forgetPeak() {
	for _, pid := range tree(p.cmd.Process.Pid) {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) // if it fails, the peak is that of the whole life
	}
}

// memory returns the resident memory of the process tree, its anonymous part, and its peak since forgetPeak, in bytes.
func (p *process) memory() (rss, anon, peak int64) {
	for _, pid := range tree(p.cmd.Process.Pid) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		rss += statusBytes(status, "\nVmRSS:")
		anon += statusBytes(status, "\nRssAnon:")
		peak += statusBytes(status, "\nVmHWM:")
	}
	return rss, anon, peak
}

func statusBytes(status []byte, key string) int64 {
	_, rest, _ := bytes.Cut(status, []byte(key))
	fields := strings.Fields(string(rest[:max(0, bytes.IndexByte(rest, '\n'))]))
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10
}
