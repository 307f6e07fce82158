// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/slab"
)

// deferringRoad is a configuration in which points are written only when they are read, so a limiter cannot have seen them.
const deferringRoad = `
receivers: {remotewrite: {endpoint: "%s"}}
processors: {memory_limiter: {check_interval: 10ms, limit_mib: %d, spike_limit_mib: 32}}
exporters: {remotewrite: {endpoint: "%s", target_info: {enabled: false}, batch: {timeout: %s}%s}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [remotewrite], processors: [memory_limiter], exporters: [remotewrite]}}
`

// startDeferring starts a collector with the given limit in MiB and the given batch timeout of its exporter, and returns
// the URL to send to.
func startDeferring(t *testing.T, mib int, round time.Duration, to, more string) (c *collector, url string) {
	t.Helper()
	address := freeAddress(t)
	c = start(t, fmt.Sprintf(deferringRoad, address, mib, to, round, more))
	said := c.log.FilterMessage(used).All()
	require.Len(t, said, 1)
	require.Equal(t, slab.Places(), said[0].ContextMap()["points_are_written_when_read"])
	return c, "http://" + address + "/api/v1/write"
}

// owner sends the same series again and again, so that they are stored in runs, and records which requests were
// accepted.
type owner struct {
	url    string
	labels [][]promwrite.Label
	begun  int64
	sent   int
	taken  []int64 // times of accepted requests
}

const ownerSeries = 100

func newOwner(url string, number int) *owner {
	o := &owner{url: url, begun: time.Now().UnixMilli() - 10_000_000}
	for i := range ownerSeries {
		o.labels = append(o.labels, []promwrite.Label{
			{Name: "__name__", Value: fmt.Sprint("deferred_", i/5)},
			{Name: "code", Value: fmt.Sprint(i % 5)},
			{Name: "instance", Value: fmt.Sprintf("host-%d:9100", number)},
			{Name: "job", Value: "node"},
		})
	}
	return o
}

// send sends all series once, and returns the response, or nil if there was none.
func (o *owner) send() (*http.Response, error) {
	o.sent++
	at := o.begun + int64(o.sent)
	body, err := encodeWrite(o.labels, at)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, o.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil //nolint:nilerr // whoever stops answers nobody, and who was not answered has been told nothing
	}
	_ = resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		o.taken = append(o.taken, at)
	}
	return resp, nil
}

// arrived waits until all accepted samples of the owners have arrived, and checks them.
func (w *warehouse) arrived(t *testing.T, owners ...*owner) {
	t.Helper()
	missing := func() (n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, o := range owners {
			for _, at := range o.taken {
				for _, labels := range o.labels {
					if w.found[fmt.Sprint(labels, at)] == 0 {
						n++
					}
				}
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return missing() == 0 }, patience/2, 10*glance, "what was taken has arrived")
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(t, w.wrong[:min(len(w.wrong), 3)])
}

// A limiter refuses requests whose points are not written yet: senders get an error that they may retry, no accepted
// sample is lost, no refused one arrives, and once there is memory again everything continues as before.
func TestALimiterRefusesPointsWithDeferredValues(t *testing.T) {
	sink := &warehouse{found: map[string]int{}}
	far := httptest.NewServer(sink)
	t.Cleanup(far.Close)
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	const mib, ballast = 256, 384 << 20 // far more than what else is allocated
	_, url := startDeferring(t, int(now.Alloc>>20)+mib, 50*time.Millisecond, far.URL, "")
	o := newOwner(url, 1)
	until := func(code int) {
		t.Helper()
		for end := time.Now().Add(patience); ; {
			resp, err := o.send()
			require.NoError(t, err)
			require.NotNil(t, resp)
			switch resp.StatusCode {
			case http.StatusServiceUnavailable:
				require.NotEmpty(t, resp.Header.Get("Retry-After"))
			default:
				require.Equal(t, http.StatusNoContent, resp.StatusCode)
			}
			if resp.StatusCode == code {
				return
			}
			require.True(t, time.Now().Before(end))
		}
	}
	for range 40 {
		until(http.StatusNoContent)
	}
	press := func() {
		weight := make([]byte, ballast) // the limiter counts allocated memory
		until(http.StatusServiceUnavailable)
		for range 20 {
			resp, err := o.send()
			require.NoError(t, err)
			require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		}
		runtime.KeepAlive(weight)
	}
	for range 3 {
		press()
		runtime.GC()
		until(http.StatusNoContent)
		for range 20 {
			until(http.StatusNoContent)
		}
	}
	sink.arrived(t, o)
	sink.mu.Lock()
	defer sink.mu.Unlock()
	require.Len(t, sink.found, len(o.taken)*ownerSeries, "nothing arrives that was refused")
}

// A collector that stops during requests whose points are not written yet has sent all accepted samples, either from
// memory or, with a queue on disk, by its successor.
func TestWhoStopsLosesNoDeferredValues(t *testing.T) {
	for name, disk := range map[string]bool{"memory": false, "disk": true} {
		t.Run(name, func(t *testing.T) {
			sink := &warehouse{found: map[string]int{}}
			far := httptest.NewServer(sink)
			t.Cleanup(far.Close)
			more, round := "", 2*time.Second // long enough that one is pending when it stops
			if disk {
				round = 50 * time.Millisecond // senders wait for it
				more = fmt.Sprintf(", queue: {directory: %q}", t.TempDir())
			}
			c, url := startDeferring(t, 4000, round, far.URL, more)
			var owners []*owner
			var all sync.WaitGroup
			var stops atomic.Bool
			var requests atomic.Int64
			for i := range 4 {
				o := newOwner(url, i)
				owners = append(owners, o)
				all.Go(func() {
					for !stops.Load() {
						resp, err := o.send()
						if err != nil {
							t.Error(err)
						}
						if resp == nil {
							return
						}
						requests.Add(1)
					}
				})
			}
			require.Eventually(t, func() bool { return requests.Load() > 200 }, patience, glance)
			c.stop()
			stops.Store(true)
			all.Wait()
			if disk {
				startDeferring(t, 4000, round, far.URL, more)
			}
			for _, o := range owners {
				require.NotEmpty(t, o.taken)
			}
			sink.arrived(t, owners...)
		})
	}
}
