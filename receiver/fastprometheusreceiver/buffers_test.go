// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
)

func TestBuffersHaveTheRoomThatWasAskedFor(t *testing.T) {
	b := buffers{most: 1 << 30}
	for _, size := range []int{1, minBuffer, minBuffer + 1, maxBuffer, maxBuffer + 1, 3 * maxBuffer, 2 * maxBuffer, 100, 5 * maxBuffer} {
		for range 3 {
			buf := b.Take(size)
			require.GreaterOrEqual(t, len(buf), size)
			require.Equal(t, len(buf), cap(buf))
			b.Give(buf[:size/2])
		}
	}
	require.Zero(t, b.held())
	for _, odd := range []int{0, 1, minBuffer - 1, minBuffer + 1, fetch.Share - 1} {
		b.Give(make([]byte, odd)) // not one of its own
	}
	require.GreaterOrEqual(t, len(b.Take(2*minBuffer)), 2*minBuffer)
	require.Zero(t, b.held())
}

// However much others hold, a body gets its share, and no body gets more than a quarter of the total.
func TestBuffersAreBounded(t *testing.T) {
	const most = 8 << 20
	b := buffers{most: most}
	require.Nil(t, b.Take(most/bodyPart+1))
	_, err := b.Wait(t.Context(), 2*most/bodyPart)
	require.ErrorContains(t, err, "more than 1MiB in zstd")
	var taken [][]byte
	for buf := b.Take(256 << 10); buf != nil; buf = b.Take(256 << 10) {
		taken = append(taken, buf)
	}
	require.Len(t, taken, most/(256<<10))
	require.EqualValues(t, most, b.held())
	for range 1000 {
		require.NotNil(t, b.Take(fetch.Share))
	}
	for _, buf := range taken {
		b.Give(buf)
	}
	require.Zero(t, b.held())
}

func TestWaitingForABuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := buffers{most: 8 << 20}
		var taken [][]byte
		for range 8 {
			taken = append(taken, b.Take(1<<20))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.Wait(ctx, 1<<20)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		var waiting sync.WaitGroup
		for range 20 { // more than there is memory for at a time
			waiting.Go(func() {
				buf, err := b.Wait(t.Context(), 1<<20)
				if err == nil {
					time.Sleep(time.Second)
					b.Give(buf)
				} else {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		for _, buf := range taken {
			b.Give(buf)
		}
		waiting.Wait()
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Zero(t, b.held())
	})
}

// A page within the limit is always held, even if its length is unknown or it was as large the last time: a buffer with
// some reserve could exceed the limit.
func TestAPageIsHeldThatMayBe(t *testing.T) {
	for _, most := range []int64{16 << 20, 50 << 20} { // a quarter of the first is a size that buffers grow to, of the second it is not
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			var size atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "zstd")
				_ = http.NewResponseController(w).Flush() // so that there is no Content-Length
				_, _ = w.Write(make([]byte, size.Load()))
			}))
			defer server.Close()
			b := &buffers{most: most}
			client, err := fetch.NewClient(&promconfig.ScrapeConfig{JobName: "node"}, fetch.Options{Memory: b})
			require.NoError(t, err)
			defer client.Close()
			target := client.NewTarget(server.URL, "", time.Minute, "text/plain")
			defer target.Close()
			get := func(n int64) error {
				size.Store(n)
				r, err := target.Get(t.Context(), b.Take(minBuffer), func(fetch.Response) error { return nil })
				if err == nil {
					require.Len(t, r.Body, int(n))
				}
				b.Give(r.Body)
				require.Zero(t, b.held())
				return err
			}
			for range 3 {
				require.NoError(t, get(most/bodyPart/32*31))
			}
			require.ErrorContains(t, get(most/bodyPart+1), "in zstd")
		})
	}
}
