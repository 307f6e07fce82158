// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"golang.org/x/sys/unix"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// TestHostileInputTakesTimeByItsSize: input of eight times the size takes about eight times as long, and not 64 times.
// It measures CPU time without garbage collection, which other work on the machine hardly affects.
func TestHostileInputTakesTimeByItsSize(t *testing.T) {
	racetest.Sequential(t)
	const times, allowed, slack = 8, 4 * 8, 2 * time.Millisecond
	for name, h := range hostile {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			spent := func(n int) time.Duration {
				least := time.Hour
				for range 3 {
					r := newRig(t, everything)
					var all []pmetric.Metrics
					for range 2 { // the second one is then known
						md := pmetric.NewMetrics()
						h.make(md, n)
						all = append(all, md)
					}
					runtime.GC()
					percent := debug.SetGCPercent(-1)
					begin := threadTime(t)
					for _, md := range all {
						r.consume(md)
					}
					least = min(least, threadTime(t)-begin)
					debug.SetGCPercent(percent)
				}
				return least
			}
			small, large := spent(h.size/times), spent(h.size)
			require.Less(t, large, allowed*small+slack, "%v for an eighth of it", small)
		})
	}
}

func threadTime(t *testing.T) time.Duration {
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now))
	return time.Duration(now.Nano())
}
