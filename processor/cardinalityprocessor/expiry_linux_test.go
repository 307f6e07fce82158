// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"golang.org/x/sys/unix"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
)

const (
	knownSeries = 64_000
	comings     = 4 // of each of them in an epoch: every 10 s with the default idle timeout
	churnEpochs = moment.IdleEpochs
)

// BenchmarkKnownWhileExpiring sends batches of known series in turn, while other series expire in every epoch as new
// ones arrive. It reports how long the longest in a thousand batches take compared with half of them: by the CPU time
// of the thread and by the wall clock. Sweeps run at the same time as the batches, on another CPU, or within them: then
// each batch is timed together with its part of the sweep, as if there were only one CPU. That time is CPU time: a
// sweep yields now and then, for which a locked thread has to wait. New series are not timed, and garbage is not
// collected meanwhile.
//
// Interrupts, other processes and cold caches delay single batches by either clock, as they delay plain computing. They
// do not recur: the schedule is the same in each run (-benchtime 5x has five), and "least" is the least CPU time that
// each of its batches took in any run. It includes what the limiter does to a batch, and little else.
func BenchmarkKnownWhileExpiring(b *testing.B) {
	for _, points := range []int{1000, 8000} {
		for _, sweeps := range []string{"beside", "within"} {
			for _, churn := range []int{0, 25_000} {
				b.Run(fmt.Sprintf("points=%d/sweeps=%s/expiring=%d", points, sweeps, churn), func(b *testing.B) {
					var all tails
					var expired int64
					for b.Loop() {
						b.StopTimer()
						c := newChurning(b, points, churn)
						before := c.Limiter.Expired.Load()
						b.StartTimer()
						all.add(c.pass(b, sweeps == "beside"))
						gone := c.Limiter.Expired.Load() - before
						require.Equal(b, int64(churnEpochs*churn), gone)
						expired += gone
					}
					all.report(b, sweeps == "beside")
					b.ReportMetric(float64(expired)/float64(len(all.cpu)), "expired/batch")
				})
			}
		}
		b.Run(fmt.Sprintf("points=%d/computing", points), func(b *testing.B) {
			var all tails
			for b.Loop() {
				all.add(compute(b, points))
			}
			all.report(b, true)
		})
	}
}

// compute takes about as long as the batches, and waits for nothing.
func compute(b *testing.B, points int) (took []timing) {
	clock := newThreadClock(b)
	fp := uint64(1)
	for range churnEpochs * comings * knownSeries / points {
		clock.start()
		for range 70 * points {
			fp = ident.Settled(ident.Mix(fp, 1))
		}
		took = append(took, clock.stop())
	}
	require.NotZero(b, fp)
	return took
}

// churning is a processor in which as many series expire in an epoch as new ones arrive.
type churning struct {
	*rig

	senders []pmetric.Metrics
	churn   int
}

func newChurning(b *testing.B, points, churn int) *churning {
	c := &churning{rig: newRig(b, threeLimits), churn: churn}
	for i := range knownSeries / points {
		md := workload(points)
		md.ResourceMetrics().At(0).Resource().Attributes().PutInt("sender", int64(i))
		c.senders = append(c.senders, md)
	}
	for range moment.IdleEpochs + 2 {
		fill(c.Limiter, churn)
		for _, md := range c.senders {
			require.Equal(b, points, c.consume(md).DataPointCount())
		}
		c.epochs(1)
	}
	return c
}

// newcomers admits one of the given number of parts of an epoch's new series.
func (c *churning) newcomers(part, parts int) {
	fill(c.Limiter, c.churn*(part+1)/parts-c.churn*part/parts)
}

// pass sends the batches of some epochs.
func (c *churning) pass(b *testing.B, beside bool) (took []timing) {
	clock := newThreadClock(b)
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	part := c.Limiter.Shards() / comings / len(c.senders)
	require.Equal(b, c.Limiter.Shards(), part*comings*len(c.senders))
	due, done := make(chan struct{}, comings*len(c.senders)), make(chan struct{})
	sweep := func() {
		for range part {
			c.Sweep()
		}
	}
	for _, md := range c.senders { // after the garbage collector used the caches
		c.consume(md)
	}
	for range churnEpochs {
		if beside {
			go func() {
				for range due {
					sweep()
				}
				done <- struct{}{}
			}()
		}
		for i := range comings {
			for j, md := range c.senders {
				c.newcomers(i*len(c.senders)+j, comings*len(c.senders))
				if beside {
					due <- struct{}{}
				}
				clock.start()
				if _, err := c.process(b.Context(), md); err != nil {
					b.Fatal(err)
				}
				if !beside {
					sweep()
				}
				took = append(took, clock.stop())
			}
		}
		if beside {
			close(due)
			<-done
			due = make(chan struct{}, cap(due))
		}
	}
	return took
}

// tails collects the times of the batches of all runs.
type tails struct {
	cpu, wall []time.Duration
	least     []time.Duration // of the CPU time of each batch in all runs
	slept     int64
}

func (t *tails) add(took []timing) {
	for i, d := range took {
		t.cpu, t.wall, t.slept = append(t.cpu, d.cpu), append(t.wall, d.wall), t.slept+d.slept
		if i == len(t.least) {
			t.least = append(t.least, d.cpu)
		}
		t.least[i] = min(t.least[i], d.cpu)
	}
}

func (t *tails) report(b *testing.B, wall bool) {
	clocks := map[string][]time.Duration{"cpu": t.cpu, "least": t.least}
	if wall {
		clocks["wall"] = t.wall
		b.ReportMetric(float64(t.slept)/float64(len(t.cpu)), "waits/batch")
	}
	for clock, all := range clocks {
		slices.Sort(all)
		half, longest := all[len(all)/2], all[len(all)*999/1000]
		b.ReportMetric(float64(half.Nanoseconds()), clock+"-p50-ns")
		b.ReportMetric(float64(longest.Nanoseconds()), clock+"-p99.9-ns")
		b.ReportMetric(float64(all[len(all)-1].Nanoseconds()), clock+"-max-ns")
		b.ReportMetric(float64(longest)/float64(half), clock+"-p99.9/p50")
	}
	b.ReportMetric(0, "ns/op")
}

// timing is how long something took, and how often it waited for others.
type timing struct {
	cpu, wall time.Duration
	slept     int64
}

// A threadClock times its thread.
type threadClock struct {
	b     *testing.B
	begun time.Time
	cpu   time.Duration
	slept int64
}

func newThreadClock(b *testing.B) *threadClock {
	runtime.LockOSThread()
	b.Cleanup(runtime.UnlockOSThread)
	return &threadClock{b: b}
}

func (c *threadClock) start() {
	c.slept, c.cpu = c.read()
	c.begun = time.Now()
}

func (c *threadClock) stop() timing {
	wall := time.Since(c.begun)
	slept, cpu := c.read()
	return timing{wall: wall, cpu: cpu - c.cpu, slept: slept - c.slept}
}

func (c *threadClock) read() (slept int64, cpu time.Duration) {
	var use unix.Rusage
	var now unix.Timespec
	require.NoError(c.b, unix.Getrusage(unix.RUSAGE_THREAD, &use))
	require.NoError(c.b, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now))
	return use.Nvcsw, time.Duration(now.Nano())
}
