// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "sync/atomic"

// sentAt is when something was last sent, by the timestamp of the points that it was sent with; 0 if never.
type sentAt struct{ time atomic.Int64 }

// Due reports whether it must be sent again at this time, and records that it will be. A time a little before the last
// is late, not due; one far before corrects a clock that was wrong.
func (s *sentAt) Due(time, interval int64) bool {
	was := s.time.Load()
	if was != 0 && time-was < interval && was-time < 10*interval+1 {
		return false
	}
	return s.time.CompareAndSwap(was, time)
}
