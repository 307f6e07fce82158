// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"
)

const (
	// sharedFor is how long an answer is given to all who ask the same. Pages ask every five seconds.
	sharedFor = time.Second
	// maxShared answers to requests of up to maxAsked bytes are kept; others are worked out for each who asks.
	maxShared = 32
	maxAsked  = 4 << 10
)

var errNoAnswer = errors.New("cannot answer: something went wrong with it")

// shared holds the latest answers, so that many who look cost little more than one.
type shared struct {
	mu      sync.Mutex
	answers map[string]*sharedAnswer // by request
}

type sharedAnswer struct {
	at   time.Time
	once sync.Once
	got  any // encoded, or a file
	err  error
}

// An encoded answer is JSON already.
type encoded []byte

// share makes those who ask the same at nearly the same time wait for one answer.
func (c *console) share(answer func(*http.Request) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		a := c.shared.find(r.URL.RequestURI(), c.now())
		a.once.Do(func() { a.got, a.err = encode(answer(r)) })
		return a.got, a.err
	}
}

func (s *shared) find(request string, now time.Time) *sharedAnswer {
	s.forget(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answers[request]
	if a == nil {
		a = &sharedAnswer{at: now, err: errNoAnswer} // unless there is one
		if len(s.answers) < maxShared && len(request) <= maxAsked {
			s.answers[request] = a
		}
	}
	return a
}

// forget lets go of what is no longer given to others.
func (s *shared) forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.answers, func(_ string, a *sharedAnswer) bool { return now.Sub(a.at) >= sharedFor })
}

func encode(got any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	switch got.(type) {
	case *file, encoded:
		return got, nil
	}
	data, err := json.Marshal(got)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the answer: %w", err)
	}
	return encoded(data), nil
}
