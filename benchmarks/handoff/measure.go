// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Producers are the numbers of producers that are compared.
var Producers = []int{1, 2, 5, 10, 20}

// Flood hands over this many items as fast as possible, and returns how long that took.
func Flood(q Queue, producers, items int) (time.Duration, error) {
	var consumer, putting sync.WaitGroup
	taken := 0
	consumer.Go(func() { q.Run(func(n int) { taken += n }) })
	begun := time.Now()
	for p := range producers {
		putting.Go(func() {
			item := new(int)
			for range items/producers + min(1, max(0, items%producers-p)) {
				q.Put(item)
			}
		})
	}
	putting.Wait()
	q.Close()
	consumer.Wait()
	took := time.Since(begun)
	if taken != items {
		return 0, fmt.Errorf("cannot hand over %d items: %d arrived", items, taken)
	}
	return took, nil
}

// perProducer is the number of items per second of a producer at the steady rate, a few every millisecond.
const perProducer = 10_000

// Steady hands over items at a steady rate for d. It returns the CPU time per item of the consumer's thread and of the
// whole process.
func Steady(q Queue, producers int, d time.Duration) (consumer, process time.Duration) {
	var consuming, putting sync.WaitGroup
	taken := 0
	var before, after time.Duration
	consuming.Go(func() {
		q.Run(func(n int) {
			if taken == 0 {
				runtime.LockOSThread() // never unlocked: the goroutine ends with the queue
				before = clock(unix.CLOCK_THREAD_CPUTIME_ID)
			}
			taken += n
			after = clock(unix.CLOCK_THREAD_CPUTIME_ID)
		})
	})
	all := clock(unix.CLOCK_PROCESS_CPUTIME_ID)
	for range producers {
		putting.Go(func() {
			item := new(int)
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			begun := time.Now()
			for put := 0; ; {
				since := time.Since(begun)
				for due := int(since.Seconds() * perProducer); put < due; put++ {
					q.Put(item)
				}
				if since > d {
					return
				}
				<-tick.C
			}
		})
	}
	putting.Wait()
	q.Close()
	consuming.Wait()
	all = clock(unix.CLOCK_PROCESS_CPUTIME_ID) - all
	n := time.Duration(max(1, taken))
	return (after - before) / n, all / n
}

func clock(which int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(which, &t)
	return time.Duration(t.Nano())
}
