// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// BenchmarkKnownWhileExpiring has 400,000 series expire within one epoch of the shortest idle timeout while batches of a
// thousand known ones pass, and reports how long the longest in a thousand of these take beside half of them. It counts
// what a batch computes and what it waits for others of this process. Batches that lose their CPU to another process are
// left out, and garbage is not collected meanwhile. What the machine itself adds to the longest is told by as much work of
// which nothing waits for anything.
func BenchmarkKnownWhileExpiring(b *testing.B) {
	for _, others := range []int{0, 400_000} {
		b.Run(fmt.Sprintf("expiring=%d", others), func(b *testing.B) {
			r := newRig(b, threeLimits)
			md := workload(1000)
			require.Equal(b, 1000, r.consume(md).DataPointCount())
			clock := newThreadClock(b)
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				before := r.limiter.expired.Load()
				fill(r.limiter, others)
				for range idleEpochs + 1 {
					r.epochs(1)
					r.consume(md)
				}
				r.epochs(1)
				runtime.GC()
				b.StartTimer()
				took = append(took, passWhileSweeping(b, r, md, clock)...)
				require.Equal(b, int64(others), r.limiter.expired.Load()-before)
			}
			reportTail(b, took)
		})
	}
	b.Run("nothing", func(b *testing.B) {
		clock := newThreadClock(b)
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		fp, took := uint64(1), []time.Duration(nil)
		for b.Loop() {
			for range 10_000 {
				clock.start()
				for range 22_000 { // takes about as long as a batch
					fp = settled(mix(fp, 1))
				}
				if d, disturbed := clock.stop(); !disturbed {
					took = append(took, d)
				}
			}
		}
		require.NotZero(b, fp)
		reportTail(b, took)
	})
}

func reportTail(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	half, longest := took[len(took)/2], took[len(took)*999/1000]
	b.ReportMetric(float64(half.Nanoseconds()), "p50-ns/batch")
	b.ReportMetric(float64(longest.Nanoseconds()), "p99.9-ns/batch")
	b.ReportMetric(float64(longest)/float64(half), "p99.9/p50")
	b.ReportMetric(0, "ns/op")
}

// passWhileSweeping passes batches while an epoch goes by, and returns what each took.
func passWhileSweeping(b *testing.B, r *rig, md pmetric.Metrics, clock *threadClock) (took []time.Duration) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		shards := r.limiter.shards()
		for left := shards; left > 0; {
			swept := r.sweepSome(min(left, shards/sweepsPerEpoch))
			left -= swept
			time.Sleep(minIdleTimeout / idleEpochs / time.Duration(shards) * time.Duration(swept))
		}
	}()
	for {
		select {
		case <-over:
			return took
		default:
		}
		clock.start()
		if _, err := r.process(b.Context(), md); err != nil {
			b.Fatal(err)
		}
		if d, disturbed := clock.stop(); !disturbed {
			took = append(took, d)
		}
	}
}

// A threadClock times what its thread does. It stands still while the thread could run and has no CPU.
type threadClock struct {
	file   *os.File
	begun  time.Time
	waited time.Duration
	lost   int64 // how often another one was given its CPU
}

func newThreadClock(b *testing.B) *threadClock {
	runtime.LockOSThread()
	b.Cleanup(runtime.UnlockOSThread)
	file, err := os.Open("/proc/thread-self/schedstat")
	if err != nil {
		b.Skip("the kernel does not tell: ", err)
	}
	b.Cleanup(func() { file.Close() })
	return &threadClock{file: file}
}

func (c *threadClock) start() {
	c.lost, c.waited = c.read()
	c.begun = time.Now()
}

// stop says how long it took, and whether another process had the CPU meanwhile and left its caches cold.
func (c *threadClock) stop() (took time.Duration, disturbed bool) {
	took = time.Since(c.begun)
	lost, waited := c.read()
	return took - (waited - c.waited), lost != c.lost
}

func (c *threadClock) read() (lost int64, waited time.Duration) {
	var use syscall.Rusage
	var text [64]byte
	n, err := c.file.ReadAt(text[:], 0)
	if n == 0 || syscall.Getrusage(syscall.RUSAGE_THREAD, &use) != nil {
		panic(err)
	}
	fields := 0
	for _, digit := range text[:n] { // the second of three numbers
		if digit == ' ' {
			fields++
		} else if fields == 1 {
			waited = 10*waited + time.Duration(digit-'0')
		}
	}
	return use.Nivcsw, waited
}
