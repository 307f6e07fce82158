// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"
)

const (
	// sharedFor is how long an answer is shared by equal requests. Pages ask every five seconds.
	sharedFor = time.Second
	// maxShared limits the answers that are kept, maxAsked the size of their requests in bytes. Other answers are
	// computed for each request.
	maxShared = 32
	maxAsked  = 4 << 10
)

var errNoAnswer = errors.New("cannot answer: something went wrong with it")

// Shared holds the latest answers, so that many readers cost little more than one.
type Shared struct {
	now func() time.Time

	mu      sync.Mutex
	answers map[string]*sharedAnswer // by request
}

type sharedAnswer struct {
	at   time.Time
	once sync.Once
	got  any // JSON, or a file
	err  error
}

// NewShared returns an empty Shared.
func NewShared(now func() time.Time) *Shared {
	return &Shared{now: now, answers: map[string]*sharedAnswer{}}
}

// Share makes equal requests at nearly the same time wait for one answer.
func (s *Shared) Share(answer Func) Func {
	return func(r *http.Request) (any, error) {
		a := s.find(r.URL.RequestURI())
		a.once.Do(func() { a.got, a.err = encode(answer(r)) })
		return a.got, a.err
	}
}

func (s *Shared) find(request string) *sharedAnswer {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
	a := s.answers[request]
	if a == nil {
		a = &sharedAnswer{at: now, err: errNoAnswer} // until there is an answer
		if len(s.answers) < maxShared && len(request) <= maxAsked {
			s.answers[request] = a
		}
	}
	return a
}

// Forget removes answers that are no longer shared.
func (s *Shared) Forget() {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
}

// The caller of forget must hold s.mu.
func (s *Shared) forget(now time.Time) {
	maps.DeleteFunc(s.answers, func(_ string, a *sharedAnswer) bool { return now.Sub(a.at) >= sharedFor })
}
