// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
)

const (
	fleetInterval = 10 * time.Second
	fleetTimeout  = 8 * time.Second
	fleetLatency  = 50 * time.Millisecond
	fleetSlices   = 20 // of the interval
	// idleRoutines is the number of goroutines whatever the number of targets: discovery, the clock, and those kept for
	// the next run.
	idleRoutines = 40
	// idleBytes is the memory that a target may take between scrapes.
	idleBytes = 8 << 10
)

// fleetTargets are ten thousand, but fewer with the race detector, with which each costs ten times as much.
func fleetTargets() int { return racetest.Size(10_000, 2_500) }

// maxAtOnce is the maximum of scrapes at a time. They start in hundredths of the interval, and each may have twice its
// share.
func maxAtOnce() int { return 2 * fleetTargets() / 100 }

// A fleet is targets that exist only in memory, in synctest's time. All other goroutines and memory belong to the
// receiver. Metrics are only counted.
type fleet struct {
	latency time.Duration
	down    atomic.Bool                        // the targets refuse connections
	answers func(address string) time.Duration // response times by address, in place of latency; nil if all are equal

	open    atomic.Int64 // number of connections
	crowd   atomic.Int64 // their maximum
	waiting atomic.Int64 // number of requests that wait for a response
	most    atomic.Int64 // their maximum
	firsts  histogram    // first scrapes of targets

	// Results.
	routines atomic.Int64 // maximum of goroutines
	ended    histogram    // targets whose up became stale
	mu       sync.Mutex
	endings  map[string]int // staleness markers by target
}

const (
	fleetPage   = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: 10\r\n\r\ngeese 1.5\n"
	fleetSeries = 6 // including those about the scrape itself
)

// histogram counts events in slices of the interval.
type histogram [fleetSlices]atomic.Int64

func (h *histogram) add(at time.Time) {
	h[time.Duration(at.UnixNano())%fleetInterval*fleetSlices/fleetInterval].Add(1)
}

func (h *histogram) total() (n int64) {
	for i := range h {
		n += h[i].Load()
	}
	return n
}

// assertSpread asserts that there were this many events, evenly over the interval.
func (h *histogram) assertSpread(t *testing.T, want int) {
	t.Helper()
	var deviation float64
	for i := range h {
		n := h[i].Load()
		assert.LessOrEqual(t, n, int64(2*want/len(h)), "slice %d has more than twice its share", i)
		d := float64(n) - float64(want)/float64(len(h))
		deviation += d * d / (float64(want) / float64(len(h)))
	}
	assert.Equal(t, int64(want), h.total())
	assert.Less(t, deviation, 62.0, "chance deviates as much once in a million times: chi-square of 19 degrees")
}

func (f *fleet) dial(_ context.Context, _, address string) (net.Conn, error) {
	f.count()
	if f.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	atMost(&f.crowd, f.open.Add(1))
	return &link{fleet: f, address: address}, nil
}

// count records the number of goroutines. While a garbage collection frees the stacks of goroutines that have ended,
// runtime.NumGoroutine counts them too: thousands at once, because each scrape has one.
func (f *fleet) count() {
	const sudden = 1000
	n := runtime.NumGoroutine()
	if int64(n) > f.routines.Load()+sudden {
		n = alive()
	}
	atMost(&f.routines, int64(n))
}

// atMost raises a maximum.
func atMost(most *atomic.Int64, n int64) {
	for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
	}
}

// A link is a connection to a target of a fleet.
type link struct {
	fleet   *fleet
	address string
	known   bool // whether it was used before

	mu       sync.Mutex
	deadline time.Time
	wake     chan struct{} // closed when the deadline becomes earlier; nil while nobody reads
}

func (l *link) Write(request []byte) (int, error) {
	f := l.fleet
	if !l.known {
		f.firsts.add(time.Now())
		l.known = true
	}
	atMost(&f.most, f.waiting.Add(1))
	f.count()
	return len(request), nil
}

func (l *link) Read(buf []byte) (int, error) {
	defer l.fleet.waiting.Add(-1)
	latency := l.fleet.latency
	if l.fleet.answers != nil {
		latency = l.fleet.answers(l.address)
	}
	l.mu.Lock()
	left := time.Until(l.deadline)
	l.wake = make(chan struct{})
	wake := l.wake
	l.mu.Unlock()
	select {
	case <-wake:
		return 0, os.ErrDeadlineExceeded
	case <-time.After(min(left, latency)):
	}
	if left < latency {
		return 0, os.ErrDeadlineExceeded
	}
	return copy(buf, fleetPage), nil
}

func (l *link) SetDeadline(at time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = at
	if l.wake != nil && !at.After(time.Now()) {
		close(l.wake)
		l.wake = nil
	}
	return nil
}

func (l *link) Close() error {
	l.fleet.open.Add(-1)
	return nil
}

func (l *link) LocalAddr() net.Addr              { return nil }
func (l *link) RemoteAddr() net.Addr             { return nil }
func (l *link) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (l *link) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

func (f *fleet) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (f *fleet) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	f.count()
	for _, p := range points([]pmetric.Metrics{md}) {
		if !p.stale {
			continue
		}
		f.mu.Lock()
		f.endings[p.instance]++
		f.mu.Unlock()
		if p.name == "up" {
			f.ended.add(time.Now())
		}
	}
	return nil
}

// jobs returns a configuration with this many targets, to which discovery adds large unused labels.
func jobs(targets int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "scrape_configs:\n- job_name: fleet\n  scrape_interval: %s\n  scrape_timeout: %s\n  static_configs:\n  - labels: {__meta_story: %s}\n    targets:\n", fleetInterval, fleetTimeout, strings.Repeat("x", idleBytes))
	for i := range targets {
		fmt.Fprintf(&text, "    - %s\n", fleetAddress(i))
	}
	return text.String()
}

func fleetAddress(i int) string { return fmt.Sprintf("10.1.%d.%d:9100", i/250, i%250) }

// launch starts a receiver of the fleet. It returns the file with the jobs, which is read every second.
func (f *fleet) launch(t *testing.T, targets int, options string) (*rig, string) {
	t.Helper()
	f.endings = map[string]int{}
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	fill(t, file, jobs(targets))
	r := prepare(t, configure(t, fmt.Sprintf("%s\nreload_interval: 1s\nconfig: {scrape_config_files: [%q]}\n", options, file)), withConsumer(f), withoutTraces)
	r.dial = f.dial
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	return r, file
}

// lull waits for a moment between two scrapes.
func lull() {
	const grid = 100 * time.Millisecond // scrapes start at multiples of this
	time.Sleep(grid - time.Duration(time.Now().UnixNano())%grid + (grid+fleetLatency)/2)
	synctest.Wait()
}

func heap() int64 {
	for range 3 { // the first two empty pools
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// alive counts goroutines. runtime.NumGoroutine also counts those that have ended until they are freed.
func alive() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("\n\ngoroutine ")) + 1
}

// Ten thousand targets are scraped one after the other, each at its offset in the interval. Between scrapes they take
// only memory. When the receiver stops they are gone at once.
func TestTenThousandTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{latency: fleetLatency}
		routines, memory := alive(), heap()
		r, _ := f.launch(t, fleetTargets(), "")
		time.Sleep(fleetInterval + time.Second)
		f.firsts.assertSpread(t, fleetTargets())

		time.Sleep(fleetInterval)
		lull()
		assert.Equal(t, fleetTargets(), r.census()[stateHealthy])
		assert.Equal(t, int64(fleetTargets()), f.open.Load(), "connections are kept")
		assert.LessOrEqual(t, runtime.NumGoroutine(), routines+idleRoutines)
		each := (heap() - memory) / int64(fleetTargets())
		t.Logf("%d bytes for an idle target; at most %d scrapes at a time, %d goroutines", each, f.most.Load(), f.routines.Load())
		assert.LessOrEqual(t, each, int64(idleBytes))
		assert.LessOrEqual(t, f.most.Load(), int64(maxAtOnce()))
		assert.LessOrEqual(t, f.routines.Load(), f.most.Load()+int64(routines+idleRoutines))

		asked := time.Now()
		require.NoError(t, r.Shutdown(t.Context()))
		assert.Zero(t, time.Since(asked), "nothing is waited for")
		assert.Zero(t, f.open.Load())
		assert.Empty(t, f.endings, "a receiver that stops ends no series")
		synctest.Wait()
		assert.LessOrEqual(t, alive(), routines)
	})
}

// When a reload removes all targets except one, the series of each end once, at its offset in the interval, and nothing
// leaks.
func TestTenThousandTargetsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{latency: fleetLatency}
		routines, memory := runtime.NumGoroutine(), heap()
		r, file := f.launch(t, fleetTargets(), "")
		time.Sleep(fleetInterval + time.Second)
		fill(t, file, jobs(1))
		time.Sleep(5 * time.Second)
		require.Len(t, r.Snapshot().Jobs[0].Targets, 1)
		f.mu.Lock()
		assert.Empty(t, f.endings, "they may come back")
		f.mu.Unlock()

		time.Sleep(3 * fleetInterval)
		lull()
		f.ended.assertSpread(t, fleetTargets()-1)
		assert.Len(t, f.endings, fleetTargets()-1)
		for target, n := range f.endings {
			assert.Equal(t, fleetSeries, n, target)
		}
		assert.NotContains(t, f.endings, fleetAddress(0))
		assert.Equal(t, 1, r.census()[stateHealthy])
		assert.Equal(t, int64(1), f.open.Load())
		assert.LessOrEqual(t, f.routines.Load(), f.most.Load()+int64(routines+idleRoutines))
		assert.LessOrEqual(t, runtime.NumGoroutine(), routines+idleRoutines)
		f.endings = nil
		left := heap() - memory
		t.Logf("%d bytes stay; there were at most %d goroutines", left, f.routines.Load())
		assert.LessOrEqual(t, left, int64(fleetTargets()*idleBytes/20))
	})
}

// When a change of labels makes all targets new ones, the old ones close their connections before the new ones connect.
func TestTenThousandTargetsBecomeOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{latency: fleetLatency}
		r, file := f.launch(t, fleetTargets(), "")
		time.Sleep(fleetInterval + time.Second)
		fill(t, file, strings.Replace(jobs(fleetTargets()), "labels: {", "labels: {pond: north, ", 1))
		time.Sleep(fleetInterval + 6*time.Second)
		lull()
		assert.Equal(t, fleetTargets(), r.census()[stateHealthy])
		assert.Equal(t, int64(2*fleetTargets()), f.firsts.total())
		assert.LessOrEqual(t, f.crowd.Load(), int64(fleetTargets()+maxAtOnce()))
	})
}

// If ten thousand targets go down at once, each is logged once, however often it is scraped, and again when it is up.
func TestTenThousandTargetsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{latency: fleetLatency}
		f.down.Store(true)
		routines := runtime.NumGoroutine()
		r, _ := f.launch(t, fleetTargets(), "")
		time.Sleep(3*fleetInterval + time.Second)
		assert.Equal(t, fleetTargets(), r.census()[stateFailing])
		assert.Equal(t, r.counters.scrapes.Load(), r.failures(t, "connection_refused"))
		assert.Greater(t, r.counters.scrapes.Load(), int64(2*fleetTargets()))
		assert.Equal(t, fleetTargets(), r.log.FilterMessage("Target is down").Len())
		lull()
		assert.LessOrEqual(t, runtime.NumGoroutine(), routines+idleRoutines)
		f.down.Store(false)
		time.Sleep(fleetInterval + time.Second)
		assert.Equal(t, fleetTargets(), r.census()[stateHealthy])
		assert.Equal(t, fleetTargets(), r.log.FilterMessage("Target is up again").Len())
		assert.Equal(t, 1+2*fleetTargets(), r.log.Len(), "the first is about memory")
	})
}

// Targets that never respond hold a goroutine each until their timeout, unless there is a limit. None of them keeps the
// receiver from stopping.
func TestTenThousandTargetsHang(t *testing.T) {
	for _, limit := range []int64{0, 100} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{latency: time.Hour}
			routines := alive()
			r, _ := f.launch(t, fleetTargets(), fmt.Sprintf("max_concurrent_scrapes: %d", limit))
			time.Sleep(fleetInterval + fleetTimeout + time.Second)
			most := f.most.Load()
			if limit > 0 {
				assert.Equal(t, limit, most)
			} else {
				share := int64(fleetTargets()) * int64(fleetTimeout) / int64(fleetInterval)
				assert.InDelta(t, share, most, float64(share)/10)
				assert.Equal(t, fleetTargets(), r.census()[stateFailing])
			}
			assert.LessOrEqual(t, f.routines.Load(), most+int64(maxAtOnce()+routines+idleRoutines), "as many may end while others begin")
			assert.Positive(t, f.waiting.Load())

			asked := time.Now()
			require.NoError(t, r.Shutdown(t.Context()))
			assert.Zero(t, time.Since(asked), "nothing is waited for")
			assert.Zero(t, f.open.Load())
			synctest.Wait()
			assert.LessOrEqual(t, alive(), routines)
		})
	}
}
