// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"strings"
	"sync"
)

// The limits of the output that is kept: enough for any test here, but bounded for a process that logs in a loop.
const (
	maxTranscript = 4 << 20 // bytes; the oldest lines are dropped first
	maxLine       = 64 << 10
)

// transcript keeps the last lines that a process printed.
type transcript struct {
	mu      sync.Mutex
	past    []string // complete lines
	partial []byte   // an incomplete line
	size    int      // of past, in bytes
	dropped int      // number of lines
	since   int      // index in past of the first line since the last restart
}

func newTranscript() *transcript { return &transcript{} }

// Write stores output of the process.
func (tr *transcript) Write(b []byte) (int, error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, c := range b {
		if c == '\n' || len(tr.partial) == maxLine {
			tr.end()
		}
		if c != '\n' {
			tr.partial = append(tr.partial, c)
		}
	}
	return len(b), nil
}

func (tr *transcript) end() {
	tr.past = append(tr.past, string(tr.partial))
	tr.size += len(tr.partial) + 1
	tr.partial = tr.partial[:0]
	for tr.size > maxTranscript {
		tr.size -= len(tr.past[0]) + 1
		tr.past = tr.past[1:]
		tr.dropped++
		tr.since = max(0, tr.since-1)
	}
}

// lines returns the lines since the last restart; the last one may be incomplete.
func (tr *transcript) lines() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	lines := append([]string(nil), tr.past[tr.since:]...)
	if len(tr.partial) > 0 {
		lines = append(lines, string(tr.partial))
	}
	return lines
}

// cut marks a restart.
func (tr *transcript) cut() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if len(tr.partial) > 0 {
		tr.end()
	}
	tr.partial = append(tr.partial, "--- started again ---"...)
	tr.end()
	tr.since = len(tr.past)
}

// String returns the output since the first start.
func (tr *transcript) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var b strings.Builder
	if tr.dropped > 0 {
		fmt.Fprintf(&b, "(%d earlier lines dropped)\n", tr.dropped)
	}
	for _, line := range tr.past {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	b.Write(tr.partial)
	return b.String()
}
