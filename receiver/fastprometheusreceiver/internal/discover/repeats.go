// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A mechanism logs each of its attempts that fails: a server that is down, or a folder that does not exist, is a line
// every few seconds. Of warnings and errors that are alike the first is logged, and while they go on one an hour.
const (
	// pause is how long a line must not have come for the next one to be news.
	pause = 10 * time.Minute
	// reminder is how often a line is logged that keeps coming.
	reminder = time.Hour
	// maxLines bounds how many different lines are remembered.
	maxLines = 1024
)

// withoutRepeats is a handler that passes on what is news.
type withoutRepeats struct {
	next slog.Handler
	of   uint64 // a hash of the attributes of all lines
	said *lines
}

func newWithoutRepeats(next slog.Handler) slog.Handler {
	return withoutRepeats{next: next, said: &lines{seed: maphash.MakeSeed(), all: map[uint64]*line{}}}
}

func (h withoutRepeats) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h withoutRepeats) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		id := h.said.hash(h.of, slog.String(slog.MessageKey, r.Message))
		r.Attrs(func(a slog.Attr) bool {
			id = h.said.hash(id, a)
			return true
		})
		if !h.said.isNews(id, r.Time) {
			return nil
		}
	}
	return h.next.Handle(ctx, r)
}

func (h withoutRepeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.of = h.said.hash(h.of, a)
	}
	h.next = h.next.WithAttrs(attrs)
	return h
}

func (h withoutRepeats) WithGroup(name string) slog.Handler {
	h.of = h.said.hash(h.of, slog.String("", name))
	h.next = h.next.WithGroup(name)
	return h
}

// lines is what was logged lately.
type lines struct {
	seed maphash.Seed
	mu   sync.Mutex
	all  map[uint64]*line
}

type line struct{ came, logged time.Time }

func (s *lines) hash(of uint64, a slog.Attr) uint64 {
	text := a.Value.String()
	if from, to, ok := strings.Cut(text, "->"); ok { // an error of package net: the connection's own port is another one each time
		text = from[:strings.LastIndexByte(from, ' ')+1] + to
	}
	return maphash.Comparable(s.seed, [3]any{of, a.Key, text})
}

// isNews reports whether a line is to be logged.
func (s *lines) isNews(id uint64, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.all[id]
	if l == nil {
		if len(s.all) >= maxLines {
			s.forget(now)
		}
		if len(s.all) >= maxLines { // so many differ that no list helps
			return true
		}
		s.all[id] = &line{came: now, logged: now}
		return true
	}
	isNews := now.Sub(l.came) >= pause || now.Sub(l.logged) >= reminder
	l.came = now
	if isNews {
		l.logged = now
	}
	return isNews
}

// forget removes the lines that would be news again.
func (s *lines) forget(now time.Time) {
	for id, l := range s.all {
		if now.Sub(l.came) >= pause {
			delete(s.all, id)
		}
	}
}
