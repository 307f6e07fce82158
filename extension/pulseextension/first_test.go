// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pulseextension

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const nothingYet = "info nothing is flowing yet"

func TestTheFirstLineWaitsForSomethingToSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f, logs := startedQuiet(t, &Config{First: 3 * time.Second, Interval: time.Minute}, 10*time.Second)
		sleep(12*time.Second - 1)
		assert.Empty(t, take(logs))
		assert.EqualValues(t, 4, f.reads.Load()) // at 0, 3, 6 and 9 s

		// Two spans in twelve seconds, not in the three since the previous reading.
		sleep(1)
		entry := logs.All()[0]
		assert.Equal(t, []string{"info flowing: 0.167 spans/s in, nothing out, 0 refused, 0 dropped"}, take(logs))
		assert.InDelta(t, 12, entry.ContextMap()["seconds"], 0)

		sleep(time.Minute - 1)
		assert.Empty(t, take(logs))
		assert.EqualValues(t, 5, f.reads.Load())
		sleep(1)
		assert.Equal(t, []string{spanFlows}, take(logs))
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestTheFirstLineComesAtTheDeadlineAtLast(t *testing.T) {
	f := func(cfg *Config, after time.Duration, wantReads int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			p, f, logs := startedQuiet(t, cfg, 1000*time.Hour)
			sleep(after - 1)
			assert.Empty(t, take(logs))
			sleep(1)
			entry := logs.All()[0]
			assert.Equal(t, []string{nothingYet}, take(logs))
			assert.InDelta(t, after.Seconds(), entry.ContextMap()["seconds"], 0)
			assert.EqualValues(t, wantReads, f.reads.Load())

			sleep(10 * time.Minute)
			if cfg.Interval > 0 {
				assert.Len(t, take(logs), int(10*time.Minute/cfg.Interval))
			} else {
				assert.Empty(t, take(logs))
				assert.EqualValues(t, wantReads, f.reads.Load())
			}
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
	f(&Config{First: 3 * time.Second, Interval: time.Minute}, time.Minute, 21)
	f(&Config{First: 7 * time.Second, Interval: time.Minute}, time.Minute, 10)        // the last reading does not wait until 63 s
	f(&Config{First: 3 * time.Second}, time.Minute, 21)                               // no interval: the limit is a minute
	f(&Config{First: 10 * time.Second, Interval: 2 * time.Second}, 10*time.Second, 2) // the deadline is earlier
	f(&Config{First: 1, Interval: time.Minute}, time.Minute, 62)                      // at most one reading a second
}

func TestAPageLostBeforeTheFirstLine(t *testing.T) {
	const lost = "warn cannot tell what is flowing until own metrics can be read"
	cfg := &Config{First: 3 * time.Second, Interval: time.Minute}
	synctest.Test(t, func(t *testing.T) {
		p, f, logs := started(t, cfg)
		f.breaks("connection refused")
		sleep(15 * time.Second)
		assert.Equal(t, []string{lost}, take(logs))
		f.broken.Store(nil)
		sleep(3 * time.Second)
		entry := logs.All()[1]
		assert.Equal(t, []string{"info own metrics can be read again", spanFlows}, take(logs))
		assert.InDelta(t, 18, entry.ContextMap()["seconds"], 0)
		require.NoError(t, p.Shutdown(t.Context()))
	})
	// A page that stays unavailable is not requested so often for ever.
	synctest.Test(t, func(t *testing.T) {
		p, f, logs := started(t, cfg)
		f.breaks("connection refused")
		sleep(time.Minute)
		assert.EqualValues(t, 21, f.reads.Load())
		sleep(10 * time.Minute)
		assert.EqualValues(t, 31, f.reads.Load())
		assert.Equal(t, []string{lost}, take(logs))
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestShutdownEndsTheWaitForTheFirstLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f, logs := startedQuiet(t, &Config{First: 3 * time.Second, Interval: time.Minute}, time.Hour)
		sleep(10 * time.Second)
		require.NoError(t, p.Shutdown(t.Context()))
		sleep(time.Hour)
		assert.Empty(t, take(logs))
		assert.EqualValues(t, 4, f.reads.Load())
	})
}

func TestAnyCounterThatMovesIsSomethingToSay(t *testing.T) {
	f := func(before, now string, want bool) {
		t.Helper()
		assert.Equal(t, want, aMinute(t, before, now).still(), now)
	}
	for _, counter := range []string{
		`receiver_accepted_spans{receiver="otlp"}`, `exporter_sent_spans{exporter="otlp"}`,
		`receiver_refused_spans{receiver="otlp"}`, `receiver_failed_spans{receiver="otlp"}`,
		`exporter_send_failed_spans{exporter="otlp"}`, `exporter_enqueue_failed_spans{exporter="otlp"}`,
	} {
		f(``, counter+`=1`, false)
		f(counter+`=1`, counter+`=2`, false)
		f(``, counter+`=0`, true)
		f(counter+`=1`, counter+`=1`, true)
	}
	f(``, `exporter_queue_size{exporter="a",data_type="traces"}=1 exporter_queue_capacity{exporter="a",data_type="traces"}=9
		process_cpu_seconds=1 process_memory_rss=1`, true)
}
