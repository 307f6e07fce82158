// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"time"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
)

// lendLimit is how long a slot stays with a scrape whose metrics the pipeline is taking. A pipeline that works returns
// sooner; one that waits, for a network or a full queue, must not keep the processors from other scrapes.
const lendLimit = 20 * time.Millisecond

// slots are as many as there are processors. Bodies are decompressed and read, and their metrics handed on, only with
// one in hand, so the memory this takes is bounded by processors and not by targets.
type slots chan *slot

type slot struct {
	home    slots
	decoder fetch.Decoder
}

func newSlots(n int) slots {
	s := make(slots, n)
	for range n {
		s <- &slot{home: s}
	}
	return s
}

func (s slots) take() *slot { return <-s }

func (s *slot) release() { s.home <- s }

// lend runs f and then releases the slot, or earlier if f takes long.
func (s *slot) lend(f func()) {
	timer := time.AfterFunc(lendLimit, s.release)
	f()
	if timer.Stop() {
		s.release()
	}
}
