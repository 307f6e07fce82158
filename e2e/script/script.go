// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package script hands out the steps by which a test's server behaves.
package script

import "sync"

// Script gives each request its step: first those queued by Then, in order, and
// when there are none, the one set by Always. The zero value always gives the
// zero step. It is safe for concurrent use.
type Script[Step any] struct {
	mu     sync.Mutex
	queue  []Step
	always Step
}

// Then queues steps behind those not yet taken.
func (s *Script[Step]) Then(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, steps...)
}

// Always sets the step of every request that finds the queue empty.
func (s *Script[Step]) Always(step Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = step
}

// Next takes a step.
func (s *Script[Step]) Next() Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return s.always
	}
	step := s.queue[0]
	s.queue = s.queue[1:]
	return step
}

// Left tells how many queued steps are not yet taken.
func (s *Script[Step]) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}
