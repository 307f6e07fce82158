// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math/bits"
	"sync"
	"time"
)

// Latencies is a histogram of recent answer times: accurate to an eighth, in a few hundred bytes.
type Latencies struct {
	mu     sync.Mutex
	counts [8 * 40]uint32
	n      uint32
}

// After this many answers, each count is halved, so that old answers count less and less.
const latencyMemory = 4096

// Latency is how long recent answers took.
type Latency struct {
	Count    int // number of answers that the others are about
	P50, P99 time.Duration
}

// Record counts an answer.
func (l *Latencies) Record(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n >= latencyMemory {
		l.n = 0
		for i := range l.counts {
			l.counts[i] /= 2
			l.n += l.counts[i]
		}
	}
	l.counts[bucketOf(d)]++
	l.n++
}

// Snapshot returns what is known about them.
func (l *Latencies) Snapshot() Latency {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Latency{Count: int(l.n), P50: l.quantile(0.5), P99: l.quantile(0.99)}
}

func (l *Latencies) quantile(q float64) time.Duration {
	rank := uint32(q * float64(l.n))
	for i, n := range l.counts {
		if rank < n {
			return upperBound(i)
		}
		rank -= n
	}
	return 0
}

// Buckets are eighths of powers of two microseconds.
func bucketOf(d time.Duration) int {
	us := uint64(max(0, d.Microseconds()))
	if us < 8 {
		return int(us)
	}
	exponent := bits.Len64(us) - 4
	return min(8*(exponent+1)+int(us>>exponent)-8, 8*40-1)
}

func upperBound(bucket int) time.Duration {
	if bucket < 8 {
		return time.Duration(bucket+1) * time.Microsecond
	}
	exponent := bucket/8 - 1
	return time.Duration(bucket%8+8+1) << exponent * time.Microsecond
}
