// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package script says how a test's server responds to its requests.
package script

import "sync"

// Script returns a step for each request: first those queued by Then, in order, and after them the one set by Always.
// The zero value always returns the zero step. It is safe for concurrent use.
type Script[Step any] struct {
	mu     sync.Mutex
	queue  []Step
	always Step
}

// Then appends steps to the queue.
func (s *Script[Step]) Then(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, steps...)
}

// Always sets the step for requests that find the queue empty.
func (s *Script[Step]) Always(step Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = step
}

// Next returns the step for a request.
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

// Left returns the number of queued steps.
func (s *Script[Step]) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}
