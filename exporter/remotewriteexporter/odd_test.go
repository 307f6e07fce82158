// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// TestAnswersWhoseBodiesDoNotEndAreAnswers: the status code counts, and the rest is not waited for.
func TestAnswersWhoseBodiesDoNotEndAreAnswers(t *testing.T) {
	for _, code := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			var d *received
			d = newReceived(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
				if code != http.StatusOK && n%2 == 0 {
					return false
				}
				if code == http.StatusOK {
					written, err := d.take(r)
					if err != nil {
						panic(err)
					}
					written.SetHeaders(w.Header())
				}
				w.Header().Set("Content-Length", "1000000000")
				w.WriteHeader(code)
				_, _ = io.WriteString(w, "to be continued")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return true
			})
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint, c.Timeout = d.URL, time.Hour })
			for n := range 3 {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
				eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Samples == int64(10*(n+1)) }, "it is delivered")
			}
			require.Equal(t, 30, d.samples())
			d.requireOrdered(t)
		})
	}
}

// hasty responds to each request after its header, and closes the connection without reading the body.
func hasty(t *testing.T, answer string) (url string, answered *atomic.Int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	answered = new(atomic.Int64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReaderSize(c, 64)); err == nil {
				_, _ = io.WriteString(c, answer)
				answered.Add(1)
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String(), answered
}

// TestAnswersThatComeBeforeTheBody count if they are received; otherwise the request is repeated, and nothing is
// counted that was not reported.
func TestAnswersThatComeBeforeTheBody(t *testing.T) {
	const series = 20_000 // more than fits into socket buffers
	wait := func(e *remoteWrite, answered *atomic.Int64, done func(o Outcome) bool) {
		t.Helper()
		eventually(t, func() bool { return answered.Load() > 0 && done(e.Snapshot().Destinations[0].Outcome) }, "it comes to an end")
	}
	written := fmt.Sprintf("HTTP/1.1 204 No Content\r\n%s: %d\r\n\r\n", promwrite.HeaderSamplesWritten, series)
	url, answered := hasty(t, written)
	e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint, c.Compression, c.ShutdownTimeout = url, snappy, time.Millisecond })
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(series, 0)))
	wait(e, answered, func(o Outcome) bool { return o.Samples == series || o.Requests[0] > 2 })

	url, answered = hasty(t, "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno")
	e = start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint, c.Compression, c.ShutdownTimeout = url, snappy, time.Millisecond })
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(series, 0)))
	wait(e, answered, func(o Outcome) bool { return o.Dropped["rejected"] == series || o.Requests[0] > 2 })
}

// TestOddRetryAfter: a time in the past or too far in the future does not cause an immediate retry, or none.
func TestOddRetryAfter(t *testing.T) {
	for name, header := range map[string]string{
		"passed":        time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat),
		"in an hour":    time.Now().Add(time.Hour).UTC().Format(http.TimeFormat),
		"in centuries":  "Fri, 31 Dec 9999 23:59:59 GMT",
		"many seconds":  "2000000000",
		"none at all":   "0",
		"too many":      "99999999999999999999",
		"negative":      "-1",
		"nothing known": "tomorrow",
	} {
		for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			t.Run(fmt.Sprint(name, " ", code), func(t *testing.T) {
				t.Parallel()
				const pause = 100 * time.Millisecond
				times := make(chan time.Time, 2)
				d := newReceived(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
					if n < 2 {
						times <- time.Now()
					}
					return status(1, code, "Retry-After", header)(n, w, r)
				})
				e := start(t, componenttest.NewNopHost(), func(c *Config) {
					c.Endpoint, c.Retry.MaxRetryAfter = d.URL, pause
					c.Retry.InitialInterval, c.Retry.MaxInterval, c.Retry.RandomizationFactor = pause, pause, 0
				})
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
				first, second := <-times, <-times
				require.GreaterOrEqual(t, second.Sub(first), pause)
				eventually(t, func() bool { return d.samples() == 10 }, "it arrives")
			})
		}
	}
}

// TestRedirectsAreNotFollowed: the other server would get the password.
func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
			t.Cleanup(other.Close)
			d := newReceived(t, status(3, code, "Location", other.URL+"/api/v1/write"))
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint = d.URL
				c.HTTP.Headers = configopaque.MapList{{Name: "Authorization", Value: "Bearer secret"}}
			})
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			eventually(t, func() bool { return d.samples() == 10 }, "it arrives once the redirect is gone")
			require.Zero(t, asked.Load())
			require.Len(t, d.headers(), 4)
		})
	}
}
