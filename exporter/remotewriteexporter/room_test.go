// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	// roomWithin is how soon the room of delivered data has to be free again.
	roomWithin = time.Second
	// lastFile is the maximum size of the file that is being written, with the other files.
	lastFile = 1<<20 + 64<<10
)

// bulky returns points that take 4 KiB each, however they are compressed.
func bulky(r *rand.ChaCha8, series, n int) pmetric.Metrics {
	md := gauges(series, n)
	points := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
	noise := make([]byte, 4<<10)
	for i := range points.Len() {
		_, _ = r.Read(noise)
		points.At(i).Attributes().PutStr("noise", hex.EncodeToString(noise))
	}
	return md
}

// held returns the size of all files in a directory.
func held(t *testing.T, folder string) (bytes int64) {
	t.Helper()
	require.NoError(t, filepath.Walk(folder, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			bytes += info.Size()
		}
		return nil // it may be deleted by now
	}))
	return bytes
}

// TestRoomIsBackWithinASecond: delivered data takes no room a second later, whether the queue becomes empty or not.
func TestRoomIsBackWithinASecond(t *testing.T) {
	const series, batches = 125, 20 // of half a MiB
	d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	folder := t.TempDir()
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Queue.Directory, c.Queue.Size = d.URL, folder, 1<<30
		c.Batch.MaxSamples = 2 * series
	})
	r, n := rand.NewChaCha8([32]byte{20, 86}), 0
	put := func() {
		assert.NoError(t, e.ConsumeMetrics(t.Context(), bulky(r, series, n)))
		n++
	}
	for range batches {
		put()
	}
	before := held(t, folder)
	require.Greater(t, before, int64(batches*series*4<<10))

	// At any time the files contain no more than what was undelivered a second ago, the file that is being written, and
	// one that is mostly unneeded.
	type moment struct {
		at   time.Time
		left int64
	}
	var seen []moment
	allowed := func() int64 {
		now := time.Now()
		seen = append(seen, moment{now, e.Snapshot().Destinations[0].QueueBytes})
		for len(seen) > 1 && now.Sub(seen[1].at) >= roomWithin {
			seen = seen[1:]
		}
		return seen[0].left + 3*8<<20
	}
	allowed()
	d.recover()
	eventually(t, func() bool {
		if n < batches+5 {
			put()
		}
		most := allowed()
		return !assert.LessOrEqual(t, held(t, folder), most) || d.samples() == n*series
	}, "all samples arrive")
	began := time.Now()
	require.Eventually(t, func() bool { return held(t, folder) < lastFile }, roomWithin, time.Millisecond, "%d bytes are left", held(t, folder))
	t.Logf("%d MB were back %v after the last sample arrived", before>>20, time.Since(began))
	d.requireOrdered(t)
}

// TestRoomInAFullFileIsBackWithinASecond: a file of file_storage does not shrink, but there is room in it again.
func TestRoomInAFullFileIsBackWithinASecond(t *testing.T) {
	const series = 25
	d := newReceived(t, nil)
	e := start(t, newFiles(t, t.TempDir(), func(c *filestorage.Config) { c.MaxSize = 4 << 20 }), func(c *Config) {
		c.Endpoint, c.Queue.Storage, c.Batch.Timeout = d.URL, &storageID, time.Millisecond
	})
	r, n, acknowledged := rand.NewChaCha8([32]byte{20, 87}), 0, 0
	put := func() error {
		err := e.ConsumeMetrics(t.Context(), bulky(r, series, n))
		if n++; err == nil {
			acknowledged++
		}
		return err
	}
	for round := range 3 {
		d.fail(http.StatusServiceUnavailable)
		for put() == nil {
		}
		require.Greater(t, e.Snapshot().Destinations[0].QueueBytes, int64(1<<20), "round %d", round)
		d.recover()
		eventually(t, func() bool { return d.samples() == series*acknowledged }, "what was acknowledged arrives")
		began := time.Now()
		require.Eventually(t, func() bool { return put() == nil }, roomWithin, time.Millisecond, fmt.Sprint("round ", round))
		t.Logf("there was room %v after the last sample arrived", time.Since(began))
		eventually(t, func() bool { return d.samples() == series*acknowledged }, "it arrives, too")
	}
	d.requireOrdered(t)
}
