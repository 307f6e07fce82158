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

// maxLent bounds the scrapes that wait in the pipeline without a slot, each of which holds its metrics. With so many
// waiting, the next keep their slots, and all others wait before they are read.
const maxLent = 64

// slots are as many as there are processors. Bodies are decompressed and read, and their metrics handed on, only with
// one in hand, so the memory this takes is bounded by processors and not by targets.
type slots struct {
	free chan *slot
	lent chan struct{}
}

type slot struct {
	home    slots
	decoder fetch.Decoder
}

func newSlots(n int) slots {
	s := slots{free: make(chan *slot, n), lent: make(chan struct{}, maxLent)}
	for range n {
		s.free <- &slot{home: s}
	}
	return s
}

func (s slots) take() *slot { return <-s.free }

func (s *slot) release() { s.home.free <- s }

// lend runs f and then releases the slot, or earlier if f takes long.
func (s *slot) lend(f func()) {
	late := make(chan bool, 1) // whether the slot was released early, once there was cause to
	timer := time.AfterFunc(lendLimit, func() {
		select {
		case s.home.lent <- struct{}{}:
			late <- true
			s.release()
		default:
			late <- false
		}
	})
	f()
	if timer.Stop() || !<-late {
		s.release()
		return
	}
	<-s.home.lent
}
