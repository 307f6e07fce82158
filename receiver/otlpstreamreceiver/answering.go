// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"runtime"
	"time"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// send sends an answer, together with others that are ready and only report success.
func (s *session) send(a answer) error {
	response := otlpstream.Response{ID: a.id, Rejected: uint64(a.rejected.items), Message: a.rejected.message}
	n := 1
	var other *answer
	if a.status != nil {
		response.Code = resultOf(a.status)
		response.Message = a.status.Message()
		response.Delay, _ = otlpstream.RetryDelay(a.status)
	} else if a.rejected.items == 0 && s.caps&otlpstream.CapCoalesce != 0 {
		runtime.Gosched() // lets requests finish that are about to
		response.IDs, other = s.ready()
		n += len(response.IDs)
	}
	result := resultName(response.Code, a.refused, a.rejected)
	s.r.counts.count(s.transport, result, n)
	s.answered[resultIndex(result)].Add(int64(n))
	err := s.say(&response)
	s.active.Store(moment(time.Now()))
	for range n {
		<-s.slots
	}
	if other == nil {
		return err
	}
	if err != nil {
		<-s.slots // the other cannot be sent either
		return err
	}
	return s.send(*other)
}

// say sends a response, and limits the time for that.
func (s *session) say(response *otlpstream.Response) error {
	s.late.Reset(s.r.sendTimeout)
	defer s.late.Stop()
	return s.conn.Send(response)
}

// unread ends a stream whose client does not read.
func (s *session) unread() {
	close(s.stuck)
	if s.cut != nil {
		s.cut()
	}
}

// ready takes the waiting answers, up to the first that is not a plain success.
func (s *session) ready() (ids []uint64, other *answer) {
	for {
		a, ok := s.answers.take()
		switch {
		case !ok:
			return ids, nil
		case a.status != nil || a.rejected.items > 0:
			return ids, &a
		}
		ids = append(ids, a.id)
	}
}
