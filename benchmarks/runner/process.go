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
)

// process is a child in a process group of its own. The kernel kills it when
// the thread that started it ends, so that a killed runner leaves nothing
// behind: start only from a goroutine that is locked to the main thread.
type process struct {
	name   string
	cmd    *exec.Cmd
	stdout io.Reader
	log    string // where its standard error goes
	exited chan struct{}
	err    error
}

// start runs a command in a directory. Its standard output can be read when
// piped is set, else it joins standard error in the log.
func start(name, dir, path string, args []string, piped bool) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	defer log.Close()
	p.cmd = exec.CommandContext(context.Background(), path, args...) // ended by stop, which is gentler than a context
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

// alive tells an error if the process has ended.
func (p *process) alive() error {
	select {
	case <-p.exited:
		return fmt.Errorf("cannot go on with %s: %w: %w\n%s", p.name, errExited, p.err, lastLines(p.log))
	default:
		return nil
	}
}

// stop asks the process to end, waits a while, and then kills its group.
func (p *process) stop(patience time.Duration) {
	if p == nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(patience):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // also what it left behind
	<-p.exited
}

// tree lists the process and all its descendants.
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

// Fields of /proc/<pid>/stat that follow the command: utime, stime, cutime, cstime.
const (
	firstTime = 11
	lastTime  = 14
)

// clockTicks is USER_HZ, which Linux fixes at 100 for all that /proc shows.
const clockTicks = 100

// cpu is the CPU time of the process tree, user and system, in seconds.
func (p *process) cpu() (float64, error) {
	ticks := 0
	for _, pid := range tree(p.cmd.Process.Pid) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended; its parent's cutime has its time
		}
		// The command's name is in brackets and may hold anything.
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
	return float64(ticks) / clockTicks, nil
}

// forgetPeak begins anew what peak tells.
func (p *process) forgetPeak() {
	for _, pid := range tree(p.cmd.Process.Pid) {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) // without it the peak is the whole life's
	}
}

// memory is the resident memory of the process tree, its anonymous part, and
// the most that was resident since forgetPeak, in bytes.
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
