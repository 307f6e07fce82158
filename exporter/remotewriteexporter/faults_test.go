// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// status answers the first requests with a code and a header.
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

// resets closes the connection of the first requests, after the body was read or before.
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

// endless answers with more body than anybody wants to read.
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

func TestRequestsThatAreTooLargeAreSplitAndTheSizeIsRemembered(t *testing.T) {
	const limit = 4 << 10
	d := newReceived(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if r.ContentLength > limit {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		}
		return r.ContentLength > limit
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint, c.Compression = d.URL, snappy })
	for n := range 3 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(5000, n)))
		eventually(t, func() bool { return d.samples() == 5000*(n+1) }, "all samples arrive")
	}
	d.requireOrdered(t)
	o := e.Snapshot().Destinations[0].Outcome
	require.Empty(t, o.Dropped)
	require.Less(t, o.Requests[http.StatusRequestEntityTooLarge], int64(10))
}

func TestWhoFindsEverythingTooLargeIsNotAskedForEver(t *testing.T) {
	d := newReceived(t, status(1<<30, http.StatusRequestEntityTooLarge))
	e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(1000, 0)))
	eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Dropped["too_large"] == 1000 }, "the block is given up")
	require.Less(t, len(d.headers()), 100)
}

// TestAProxyThatFindsAlmostEverythingTooLargeCostsNothing: in no format, also what cannot be split any further; and requests are as large as before
// then.
func TestAProxyThatFindsAlmostEverythingTooLargeCostsNothing(t *testing.T) {
	for _, format := range []struct{ message, compression string }{
		{"2.0", zstd}, {"2.0", snappy}, {"1.0", zstd}, {"1.0", snappy},
	} {
		t.Run(format.message+" "+format.compression, func(t *testing.T) {
			t.Parallel()
			d := newReceived(t, nil)
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.ProtobufMessage, c.Compression = d.URL, format.message, format.compression
			})
			const batches = 20
			for n := range batches {
				if n == 5 {
					was := len(d.headers())
					d.setAnswer(func(n int, w http.ResponseWriter, _ *http.Request) bool {
						if n >= was+100 || n%29 == 0 {
							return false
						}
						http.Error(w, "too large", http.StatusRequestEntityTooLarge)
						return true
					})
				}
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(2000, n)))
			}
			eventually(t, func() bool { return d.samples() == 2000*batches }, "all samples arrive")
			d.requireOrdered(t)
			eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Samples == 2000*batches }, "all samples are counted")
			require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
			raw, wire := e.destinations[0].Largest()
			require.Zero(t, raw+wire)
		})
	}
}

func TestPoisonIsDroppedAndCountedAndBlocksNothing(t *testing.T) {
	for name, code := range map[string]int{"400": 400, "405": 405, "409": 409, "422": 422} {
		t.Run(name, func(t *testing.T) {
			d := newReceived(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
				series, err := decode(r)
				isBad := err != nil || slices.ContainsFunc(series[0].Samples, func(s promwrite.Sample) bool { return s.Value == 1 })
				if isBad {
					http.Error(w, "out of order", code)
				}
				return isBad
			})
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
			for n := range 3 {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
				eventually(t, func() bool {
					o := e.Snapshot().Destinations[0].Outcome
					return o.Samples+o.Dropped["rejected"] == int64(10*(n+1))
				}, "the block's fate is sealed")
			}
			require.Equal(t, 20, d.samples())
			require.Equal(t, map[string]int64{"rejected": 10}, e.Snapshot().Destinations[0].Outcome.Dropped)
		})
	}
}

// What went together is sent block by block where the destination does not take it as a whole.
func TestRefusalsOfSeveralBlocksSealTheFateOfEach(t *testing.T) {
	const blocks, size = 6, 1000
	for name, test := range map[string]struct {
		refuse  func(r *http.Request) int
		arrives int
		dropped map[string]int64
	}{
		"poison": {func(r *http.Request) int {
			series, err := decode(r)
			for i := range series {
				if err != nil || slices.ContainsFunc(series[i].Samples, func(s promwrite.Sample) bool { return s.Value == 3 }) {
					return http.StatusBadRequest
				}
			}
			return 0
		}, (blocks - 1) * size, map[string]int64{"rejected": size}},
		"too large": {func(r *http.Request) int {
			if r.ContentLength > 10<<10 {
				return http.StatusRequestEntityTooLarge
			}
			return 0
		}, blocks * size, map[string]int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			release, largest := make(chan struct{}), 0
			d := newReceived(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 0 {
					<-release
					return false
				}
				if series, err := decode(r); err == nil {
					largest = max(largest, len(series))
				}
				code := test.refuse(r)
				if code != 0 {
					http.Error(w, "no thanks", code)
				}
				return code != 0
			})
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.Compression, c.Batch.Timeout = d.URL, snappy, time.Millisecond
			})
			for n := range blocks {
				md := gauges(size, n)
				points := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
				for i := range points.Len() {
					points.At(i).SetDoubleValue(float64(n))
				}
				require.NoError(t, e.ConsumeMetrics(t.Context(), md))
				eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == n+1 }, "the block is queued")
			}
			close(release)
			eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "the fate of all is sealed")
			require.Equal(t, test.arrives, d.samples())
			require.Equal(t, test.dropped, e.Snapshot().Destinations[0].Outcome.Dropped)
			d.requireOrdered(t)
			require.Equal(t, (blocks-1)*size, largest, "they went together first")
		})
	}
}

// TestWhatWasWrittenTogetherIsNotSentAgain: a destination that writes all but one sample of several blocks that went together
// has what it says it has. In parts it would find them all older than what it has already, and they would be counted as lost.
func TestWhatWasWrittenTogetherIsNotSentAgain(t *testing.T) {
	const blocks, size = 6, 100
	for _, message := range []string{"1.0", auto} {
		t.Run(message, func(t *testing.T) {
			release := make(chan struct{})
			var d *received
			d = newReceived(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 0 {
					<-release
					return false
				}
				written, err := d.take(r)
				if err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
					return true
				}
				written.Samples-- // one was too old
				written.SetHeaders(w.Header())
				http.Error(w, "out of order sample", http.StatusBadRequest)
				return true
			})
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.Compression, c.ProtobufMessage, c.Batch.Timeout = d.URL, snappy, message, time.Millisecond
			})
			for n := range blocks {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(size, n)))
				eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == n+1 }, "the block is queued")
			}
			close(release)
			eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "the fate of all is sealed")
			o := e.Snapshot().Destinations[0].Outcome
			require.Equal(t, map[string]int64{"rejected": 1}, o.Dropped)
			require.Equal(t, int64(blocks*size-1), o.Samples)
			require.Len(t, d.headers(), 2)
			d.requireOrdered(t)
		})
	}
}

func TestWhatWasNotWrittenIsCounted(t *testing.T) {
	for name, test := range map[string]struct {
		code   int
		reason string
	}{"partial 2xx": {http.StatusNoContent, "partial"}, "partial 400": {http.StatusBadRequest, "rejected"}} {
		t.Run(name, func(t *testing.T) {
			d := newReceived(t, status(1, test.code, "X-Prometheus-Remote-Write-Samples-Written", "7"))
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Samples == 7 }, "what was written is counted")
			require.Equal(t, map[string]int64{test.reason: 3}, e.Snapshot().Destinations[0].Outcome.Dropped)
		})
	}
}

func TestFormatsAreTriedInOrder(t *testing.T) {
	d := newReceived(t, status(3, http.StatusUnsupportedMediaType))
	e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
	for n := range 2 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
		eventually(t, func() bool { return d.samples() == 10*(n+1) }, "the samples arrive")
	}
	var got []string
	for _, h := range d.headers() {
		got = append(got, h.Get("X-Prometheus-Remote-Write-Version")+h.Get("X-Victoriametrics-Remote-Write-Version")+" "+h.Get("Content-Encoding"))
	}
	require.Equal(t, []string{"2.0.0 zstd", "2.0.0 snappy", "1 zstd", "0.1.0 snappy", "0.1.0 snappy"}, got)
	require.Equal(t, 3, e.Snapshot().Destinations[0].Fallback)
}

// TestServersThatFailAtFormats: what a destination answers to a format that it does not know, every sample arrives.
func TestServersThatFailAtFormats(t *testing.T) {
	for _, code := range []int{400, 404, 406, 415, 422, 500, 501, 502} {
		for name, unknown := range map[string]func(http.Header) bool{
			"zstd":            func(h http.Header) bool { return h.Get("Content-Encoding") == zstd },
			"the new version": func(h http.Header) bool { return h.Get("X-Prometheus-Remote-Write-Version") == "2.0.0" },
			"all but 1.0 with snappy": func(h http.Header) bool {
				return h.Get("Content-Encoding") == zstd || h.Get("X-Prometheus-Remote-Write-Version") == "2.0.0"
			},
		} {
			t.Run(fmt.Sprint(code, " ", name), func(t *testing.T) {
				t.Parallel()
				d := newReceived(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
					if unknown(r.Header) {
						http.Error(w, "no idea", code)
					}
					return unknown(r.Header)
				})
				e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
				for n := range 5 {
					require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
				}
				eventually(t, func() bool { return d.samples() == 50 }, "all samples arrive")
				eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "nothing is left")
				require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
				d.requireOrdered(t)
			})
		}
	}
}

func TestBetterFormatsAreProbedAgain(t *testing.T) {
	d := newReceived(t, status(3, http.StatusUnsupportedMediaType))
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint = d.URL
		c.ReprobeInterval = 50 * time.Millisecond
	})
	n := 0
	eventually(t, func() bool {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
		n++
		return e.Snapshot().Destinations[0].Fallback == 0 && d.samples() > 0 &&
			d.headers()[len(d.headers())-1].Get("Content-Encoding") == zstd
	}, "the best format is spoken again")
	eventually(t, func() bool { return d.samples() == 10*n }, "nothing is lost")
	d.requireOrdered(t)
}

func TestPinnedFormatIsKept(t *testing.T) {
	d := newReceived(t, func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusNoContent)
		return true
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.ProtobufMessage, c.Compression = d.URL, "2.0", snappy
	})
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Dropped["unwritten"] == 10 }, "a 2xx without counts is none")
	require.Len(t, d.headers(), 1)
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

// reporting is a host that keeps the status it is told.
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
	date := func() string { return time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat) } // whole seconds
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
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains about us
	secure.StartTLS()
	defer secure.Close()
	for name, endpoint := range map[string]string{
		"TLS":  secure.URL, // of an authority that nobody knows
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

// TestLargeRequestsAreTriedAgain: a proxy that refused requests for their size for a while is not remembered for ever.
func TestLargeRequestsAreTriedAgain(t *testing.T) {
	const limit = 2 << 10
	largest := 0
	var mu sync.Mutex
	small := true
	d := newReceived(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if small && r.ContentLength > limit {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return true
		}
		largest = max(largest, int(r.ContentLength))
		return false
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Compression, c.ReprobeInterval = d.URL, snappy, 10*time.Millisecond
	})
	consume := func(n int) {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(5000, n)))
		eventually(t, func() bool { return d.samples() == 5000*(n+1) }, "all samples arrive")
	}
	consume(0)
	mu.Lock()
	require.LessOrEqual(t, largest, limit)
	small = false
	mu.Unlock()
	n := 1
	for ; ; n++ {
		consume(n)
		if raw, wire := e.destinations[0].Largest(); raw == 0 && wire == 0 {
			break
		}
		require.Less(t, n, 100)
	}
	mu.Lock()
	largest = 0
	mu.Unlock()
	consume(n + 1)
	require.Greater(t, largest, 5*limit)
	d.requireOrdered(t)
	require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
}
