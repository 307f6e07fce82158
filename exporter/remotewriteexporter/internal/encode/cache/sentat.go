// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "sync/atomic"

// sentAt is when something was last sent, by the time of the points that it was sent with; 0 if it was not.
type sentAt struct{ time atomic.Int64 }

// Due says whether it is to be sent again at a time, and takes note that it will be.
// A time a little in the past is late, not due; one far in the past corrects a clock that was wrong.
func (s *sentAt) Due(time, interval int64) bool {
	was := s.time.Load()
	if was != 0 && time-was < interval && was-time < 10*interval+1 {
		return false
	}
	return s.time.CompareAndSwap(was, time)
}
