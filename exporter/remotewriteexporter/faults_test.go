// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
)

// status responds to the first requests with a code and headers.
func status(requests, code int, header ...string) func(int, http.ResponseWriter, *http.Request) bool {
	return func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n >= requests {
			return false
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		http.Error(w, "no thanks", code)
		return true
	}
}

// page responds to the first requests like a proxy that requires a login.
func page(requests int) func(int, http.ResponseWriter, *http.Request) bool {
	return func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n < requests {
			_, _ = io.WriteString(w, "\n<!DOCTYPE html><title>Log in</title>")
		}
		return n < requests
	}
}

// resets closes the connection of the first requests, after or before reading the body.
func resets(requests int, afterBody bool) func(int, http.ResponseWriter, *http.Request) bool {
	return func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n >= requests {
			return false
		}
		if afterBody {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
		return true
	}
}

func TestFaultsThatPassLoseNothing(t *testing.T) {
	proven := func(answer func(int, http.ResponseWriter, *http.Request) bool) func(int, http.ResponseWriter, *http.Request) bool {
		return func(n int, w http.ResponseWriter, r *http.Request) bool { return n > 0 && answer(n-1, w, r) }
	}
	for name, answer := range map[string]func(int, http.ResponseWriter, *http.Request) bool{
		"401":                  proven(status(3, http.StatusUnauthorized)),
		"403":                  proven(status(3, http.StatusForbidden)),
		"404":                  proven(status(3, http.StatusNotFound)),
		"408":                  proven(status(3, http.StatusRequestTimeout)),
		"429":                  proven(status(3, http.StatusTooManyRequests)),
		"429 for seconds":      proven(status(1, http.StatusTooManyRequests, "Retry-After", "1")),
		"500":                  proven(status(3, http.StatusInternalServerError)),
		"503":                  proven(status(8, http.StatusServiceUnavailable)),
		"500 at first":         status(3, http.StatusInternalServerError),
		"redirect":             proven(status(3, http.StatusFound, "Location", "/login")),
		"a page to log in at":  proven(page(3)),
		"a page at first":      page(3),
		"400 at first":         status(2, http.StatusBadRequest),
		"415 at first":         status(2, http.StatusUnsupportedMediaType),
		"415 all of a sudden":  proven(status(1, http.StatusUnsupportedMediaType)),
		"no counts at first":   status(2, http.StatusNoContent),
		"no counts on 200":     status(2, http.StatusOK),
		"reset before body":    proven(resets(2, false)),
		"reset after body":     proven(resets(2, true)),
		"endless error bodies": proven(endless(2)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newReceived(t, answer)
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			eventually(t, func() bool { return d.samples() == 10 }, "the first request arrives")
			for n := 1; n < 20; n++ {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
			}
			eventually(t, func() bool { return d.samples() == 200 }, "all samples arrive")
			d.requireOrdered(t)
			eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Samples == 200 }, "all samples are counted")
			require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
		})
	}
}

// endless responds with a body that never ends.
func endless(requests int) func(int, http.ResponseWriter, *http.Request) bool {
	return func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n >= requests {
			return false
		}
		w.WriteHeader(http.StatusInternalServerError)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				break
			}
		}
		return true
	}
}

func TestRetriesSayHowManyTheyAre(t *testing.T) {
	d := newReceived(t, status(2, http.StatusInternalServerError))
	e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(1, 0)))
	eventually(t, func() bool { return d.samples() == 1 }, "the sample arrives")
	var got []string
	for _, h := range d.headers() {
		got = append(got, h.Get("Retry-Attempt"))
	}
	require.Equal(t, []string{"", "1", "2"}, got)
}

// reporting is a host that records the reported status.
type reporting struct {
	component.Host

	mu     sync.Mutex
	status []componentstatus.Status
}

func (h *reporting) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = append(h.status, e.Status())
}

func TestStatusFollowsTheDestinations(t *testing.T) {
	host := &reporting{Host: componenttest.NewNopHost()}
	d := newReceived(t, status(8, http.StatusServiceUnavailable))
	e := start(t, host, func(c *Config) { c.Endpoint = d.URL })
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return d.samples() == 10 && e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "the samples arrive")
	host.mu.Lock()
	defer host.mu.Unlock()
	require.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, host.status)
}

func TestRetryAfterIsObeyed(t *testing.T) {
	seconds := func() string { return "1" }
	date := func() string { return time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat) } // with a resolution of a second
	for name, test := range map[string]struct {
		code   int
		header func() string
	}{
		"503, seconds": {http.StatusServiceUnavailable, seconds},
		"503, date":    {http.StatusServiceUnavailable, date},
		"429, seconds": {http.StatusTooManyRequests, seconds},
		"429, date":    {http.StatusTooManyRequests, date},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked time.Time
			pause := make(chan time.Duration, 1)
			d := newReceived(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 0 {
					asked = time.Now()
					return status(1, test.code, "Retry-After", test.header())(n, w, r)
				}
				pause <- time.Since(asked)
				return false
			})
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(1, 0)))
			require.GreaterOrEqual(t, <-pause, 990*time.Millisecond)
		})
	}
}

func TestHangsAndSlowReadersEndWithTheTimeout(t *testing.T) {
	for name, read := range map[string]int64{"hang": 0, "slow read": 1} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			d := newReceived(t, func(n int, _ http.ResponseWriter, r *http.Request) bool {
				if n > 0 {
					return false
				}
				_, _ = io.CopyN(io.Discard, r.Body, read)
				select {
				case <-release:
				case <-r.Context().Done():
				}
				return true
			})
			defer close(release)
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint, c.Timeout = d.URL, 300*time.Millisecond })
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			eventually(t, func() bool { return d.samples() == 10 }, "the samples arrive")
			require.Equal(t, int64(1), e.Snapshot().Destinations[0].Outcome.Requests[0])
		})
	}
}

func TestDestinationsThatCannotBeReachedKeepTheirData(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs our errors
	secure.StartTLS()
	defer secure.Close()
	for name, endpoint := range map[string]string{
		"TLS":  secure.URL, // with an unknown authority
		"DNS":  "http://no-such-host.invalid/api/v1/write",
		"port": "http://127.0.0.1:1/api/v1/write",
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint, c.ShutdownTimeout = endpoint, time.Millisecond })
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			eventually(t, func() bool { return e.Snapshot().Destinations[0].BreakerOpen }, "the breaker opens")
			s := e.Snapshot().Destinations[0]
			require.Equal(t, 1, s.QueuedBlocks)
			require.Empty(t, s.Outcome.Dropped)
			require.NoError(t, e.Shutdown(t.Context()))
			require.Equal(t, map[string]int64{"shutdown": 10}, e.telemetry.destinations[0].snapshot().Dropped)
		})
	}
}

func TestRetriesEndWhenToldSo(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		change func(*Config)
	}{
		"max_elapsed_time": {"max_elapsed_time", func(c *Config) { c.Retry.MaxElapsedTime = time.Millisecond }},
		"max_age":          {"max_age", func(c *Config) { c.Queue.MaxAge = time.Millisecond }},
	} {
		t.Run(name, func(t *testing.T) {
			d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL; test.change(c) })
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Dropped[test.reason] == 10 }, "the block is given up")
		})
	}
}
