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

// install copies a binary into a directory in the small pieces in which packages and images are unpacked. Linux 6.18 maps a file by whole
// folios of the page cache, as large as the pieces in which it was written, and the linker's are 2 MB: what is resident would say how a
// binary came to this machine.
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
	// The structs hide ReadFrom and WriteTo, which would leave the size of the pieces to the kernel.
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 32<<10))
	if err = errors.Join(err, to.Close()); err != nil {
		return "", fmt.Errorf("cannot install %s: %w", binary, err)
	}
	return path, nil
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

// Fields of /proc/<pid>/stat that follow the command: cutime and cstime, the times of children that have ended.
const (
	firstTime = 13
	lastTime  = 14
)

// clockTicks is USER_HZ, which Linux fixes at 100 for all that /proc shows.
const clockTicks = 100

// cpuClock is the clock that counts the CPU time of a process, user and
// system of all its threads. The ticks of /proc would be too coarse for small work.
func cpuClock(pid int) int32 {
	const scheduled = 2 // CPUCLOCK_SCHED
	return int32(^pid<<3 | scheduled)
}

// cpu is the CPU time of the process tree, user and system, in seconds.
func (p *process) cpu() (float64, error) {
	var nanos int64
	ticks := 0
	for _, pid := range tree(p.cmd.Process.Pid) {
		var clock unix.Timespec
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || unix.ClockGettime(cpuClock(pid), &clock) != nil {
			continue // it has ended; its parent's cutime has its time
		}
		nanos += clock.Nano()
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
	return float64(nanos)/1e9 + float64(ticks)/clockTicks, nil
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
