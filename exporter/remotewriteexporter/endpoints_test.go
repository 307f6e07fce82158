// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// endpointTo returns an endpoint, modified by change.
func endpointTo(d *received, change func(*EndpointConfig)) EndpointConfig {
	c := EndpointConfig{HTTP: defaultClient()}
	c.HTTP.Endpoint = d.URL
	if change != nil {
		change(&c)
	}
	return c
}

// TestEachEndpointHasItsFormat: the same samples arrive at each, in the endpoint's own format.
func TestEachEndpointHasItsFormat(t *testing.T) {
	formats := []struct{ message, compression string }{{"", ""}, {oneZero, snappy}, {oneZero, zstd}, {twoZero, snappy}, {auto, auto}}
	var destinations []*received
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.ProtobufMessage, c.Compression = twoZero, zstd
		for _, f := range formats {
			d := newReceived(t, nil)
			destinations = append(destinations, d)
			c.Endpoints = append(c.Endpoints, endpointTo(d, func(c *EndpointConfig) { c.ProtobufMessage, c.Compression = f.message, f.compression }))
		}
	})
	for n := range 20 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(30, n)))
	}
	for i, d := range destinations {
		eventually(t, func() bool { return d.samples() == 600 }, "all samples arrive")
		d.requireOrdered(t)
		require.Equal(t, destinations[0].series, d.series)
		message, compression := promwrite.V2.ContentType(), zstd
		if formats[i].message == oneZero {
			message = promwrite.V1.ContentType()
		}
		if formats[i].compression == snappy {
			compression = snappy
		}
		for _, h := range d.headers() {
			require.Equal(t, message, h.Get("Content-Type"), formats[i])
			require.Equal(t, compression, h.Get("Content-Encoding"), formats[i])
		}
	}
}

// TestAnEndpointThatIsDownHoldsUpNobody: it delays no data of the others, and takes no more memory or storage than it
// may.
func TestAnEndpointThatIsDownHoldsUpNobody(t *testing.T) {
	const size = 30_000
	calls := racetest.Size(400, 100)
	for name, store := range map[string]bool{"memory": false, "storage": true} {
		t.Run(name, func(t *testing.T) {
			healthy, down := newReceived(t, nil), newReceived(t, status(math.MaxInt, http.StatusServiceUnavailable))
			host := componenttest.NewNopHost()
			if store {
				host = newFiles(t, t.TempDir(), func(c *filestorage.Config) { c.MaxSize = 16 << 20 })
			}
			e := start(t, host, func(c *Config) {
				c.ShutdownTimeout, c.Batch.Timeout, c.Batch.MaxSamples = time.Millisecond, time.Millisecond, 50
				c.Endpoints = []EndpointConfig{endpointTo(healthy, nil), endpointTo(down, func(c *EndpointConfig) {
					c.Queue.Size, c.Queue.OnFull = size, onFullDropOldest
				})}
				if store {
					c.Queue.Storage = &storageID
				}
			})
			for n := range calls {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(50, n)))
				require.LessOrEqual(t, e.queue.Stats(1).Bytes, int64(2*size), "what is with a sender cannot be dropped")
			}
			eventually(t, func() bool { return healthy.samples() == 50*calls }, "all samples arrive")
			healthy.requireOrdered(t)
			eventually(t, func() bool { return e.queue.Stats(0).Blocks == 0 }, "nothing waits for the healthy one")
			s := e.Snapshot().Destinations
			require.Equal(t, int64(size), s[1].QueueSize)
			require.Positive(t, s[1].Outcome.Dropped["queue_full"])
			require.Empty(t, s[0].Outcome.Dropped)

			down.recover()
			kept := 50*calls - int(s[1].Outcome.Dropped["queue_full"])
			eventually(t, func() bool { return down.samples() == kept }, "what was not dropped arrives")
			down.requireOrdered(t)
		})
	}
}

// TestAnEndpointThatKeepsUpDoesNotWait: a round is not held open for a slow endpoint if another one keeps up.
func TestAnEndpointThatKeepsUpDoesNotWait(t *testing.T) {
	healthy, down := newReceived(t, nil), newReceived(t, status(math.MaxInt, http.StatusServiceUnavailable))
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.ShutdownTimeout = time.Millisecond
		c.Endpoints = []EndpointConfig{endpointTo(down, nil), endpointTo(healthy, nil)}
	})
	for n := 0; e.queue.Stats(0).Waiting < 2; n++ {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(1, n)))
		eventually(t, func() bool { return e.queue.Stats(1).Blocks == 0 && healthy.samples() == n+1 }, "it arrives")
	}
	require.False(t, e.intake.behind())
	healthy.fail(http.StatusServiceUnavailable)
	for n := 100; e.queue.Stats(1).Waiting < 2; n++ {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(1, n)))
		eventually(t, func() bool { return e.queue.Stats(1).Blocks > n-100 }, "it is queued")
	}
	require.True(t, e.intake.behind(), "now nobody keeps up")
}

// TestFaultsOfEndpointsAreNamed: errors contain the key and the valid values.
func TestFaultsOfEndpointsAreNamed(t *testing.T) {
	for yaml, want := range map[string]string{
		"protobuf_message: '3.0'":                   "`endpoints[0].protobuf_message` must be auto, 2.0, 1.0",
		"compression: gzip":                         "`endpoints[0].compression` must be auto, zstd or snappy",
		"queue: {on_full: explode}":                 "`endpoints[0].queue.on_full` must be block, drop_oldest or drop_newest",
		"queue: {size: -1}":                         "`endpoints[0].queue.size` must be positive",
		"queue: {max_age: -1s}":                     "`endpoints[0].queue.max_age` must not be negative",
		"queue: {fresh_first_after: -1s}":           "`endpoints[0].queue.fresh_first_after` must not be negative",
		"queue: {storage: file_storage}":            "storage",
		"protobuf_message: prometheus.WriteRequest": "needs UTF-8 names, which `endpoints[0].protobuf_message: 1.0` does not have",
	} {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte("translation_strategy: NoTranslation\nendpoints: [{endpoint: http://localhost:1, " + yaml + "}]"))
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		cfg := NewDefaultConfig()
		if err = conf.Unmarshal(cfg); err == nil {
			err = cfg.Validate()
		}
		require.ErrorContains(t, err, want)
	}
}
