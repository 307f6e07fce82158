// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"sync"
	"time"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// noticeInterval is how often a client is told about requests that the pipeline takes long for. It is a small part of
// the time that clients wait for an answer, so that one notice may be late.
const noticeInterval = 5 * time.Second

// inWork is the requests of a stream that the pipeline is working on.
type inWork struct {
	mu    sync.Mutex
	since map[uint64]time.Time
}

func (w *inWork) begin(id uint64, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since == nil {
		w.since = map[uint64]time.Time{}
	}
	w.since[id] = now
}

func (w *inWork) end(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, id)
}

// long returns the requests that have been in work for longer than a time.
func (w *inWork) long(now time.Time, than time.Duration) (ids []uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, since := range w.since {
		if now.Sub(since) >= than {
			ids = append(ids, id)
		}
	}
	return ids
}

// notices is the clock of noticeWork; it is stopped for clients that do not understand notices.
func (s *session) notices() *time.Ticker {
	ticker := time.NewTicker(s.r.noticeInterval)
	if s.caps&otlpstream.CapWorking == 0 {
		ticker.Stop()
	}
	return ticker
}

// noticeWork reports to the client which requests are still in work, so that it does not take them for lost and resend
// them to a pipeline that is slow already.
func (s *session) noticeWork() error {
	ids := s.work.long(time.Now(), s.r.noticeInterval)
	if len(ids) == 0 {
		return nil
	}
	return s.say(&otlpstream.Response{IDs: ids, Working: true})
}
