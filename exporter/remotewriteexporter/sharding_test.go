// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
)

// shardedTo configures sharding over destinations.
func shardedTo(c *Config, replicas int, destinations ...*received) {
	c.ShardByURL.Enabled, c.ShardByURL.Replicas = true, replicas
	for _, d := range destinations {
		c.Endpoints = append(c.Endpoints, endpointTo(d, nil))
	}
}

// among counts on how many of the destinations each series is, and requires that it is there with all of its samples.
func among(t *testing.T, samples int, destinations ...*received) map[string]int {
	t.Helper()
	at := map[string]int{}
	for _, d := range destinations {
		d.mu.Lock()
		for key, points := range d.series {
			require.Len(t, points, samples, key)
			at[key]++
		}
		d.mu.Unlock()
	}
	return at
}

// whole reports whether there are series, each with the given number of samples.
func (d *received) whole(samples int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, points := range d.series {
		if len(points) < samples {
			return false
		}
	}
	return len(d.series) > 0
}

// TestSeriesAreSpread: each series is sent to as many endpoints as it has replicas, and always to the same ones,
// however the number of shards changes.
func TestSeriesAreSpread(t *testing.T) {
	const series, calls = 200, 30
	for _, replicas := range []int{1, 2, 3} {
		destinations := []*received{newReceived(t, nil), newReceived(t, nil), newReceived(t, nil)}
		e := create(t, func(c *Config) {
			shardedTo(c, replicas, destinations...)
			c.Batch.Timeout = time.Millisecond
		})
		rounds := 0
		e.intake.suitable = func() int {
			rounds++
			return 1 + rounds%4
		}
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
		for n := range calls {
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(series, n)))
		}
		require.NoError(t, e.Shutdown(t.Context()))
		at := among(t, calls, destinations...)
		require.Len(t, at, series)
		for key, n := range at {
			require.Equal(t, replicas, n, key)
		}
		for _, d := range destinations {
			d.requireOrdered(t)
			require.InDelta(t, calls*series*replicas/3, d.samples(), calls*series/8)
		}
	}
}

// TestLabelsDecideWhereASeriesGoes: series that differ only in other labels stay together.
func TestLabelsDecideWhereASeriesGoes(t *testing.T) {
	for name, change := range map[string]func(*ShardByURLConfig){
		"labels":        func(c *ShardByURLConfig) { c.Labels = []string{"job"} },
		"ignore_labels": func(c *ShardByURLConfig) { c.IgnoreLabels = []string{"bird"} },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newReceived(t, nil), newReceived(t, nil)
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				shardedTo(c, 1, a, b)
				change(&c.ShardByURL)
			})
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(100, 0)))
			eventually(t, func() bool { return max(a.samples(), b.samples()) == 100 }, "all samples arrive")
			require.Zero(t, min(a.samples(), b.samples()))
		})
	}
}

// TestAnEndpointThatIsDownKeepsItsSeries: they wait for it, also over a restart; and are sent to the others when it is
// gone for good.
func TestAnEndpointThatIsDownKeepsItsSeries(t *testing.T) {
	const series, calls = 100, 10
	for name, store := range map[string]bool{"memory": false, "storage": true} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			host := func() component.Host {
				if store {
					return newFiles(t, directory, nil)
				}
				return componenttest.NewNopHost()
			}
			a, b, down := newReceived(t, nil), newReceived(t, nil), newReceived(t, status(math.MaxInt, http.StatusServiceUnavailable))
			sharded := func(destinations ...*received) func(*Config) {
				return func(c *Config) {
					shardedTo(c, 1, destinations...)
					c.ShutdownTimeout, c.Batch.Timeout = 10*time.Millisecond, time.Millisecond
					if store {
						c.Queue.Storage = &storageID
					}
				}
			}
			e := create(t, sharded(a, b, down))
			require.NoError(t, e.Start(t.Context(), host()))
			for n := range calls {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(series, n)))
			}
			eventually(t, func() bool {
				s := e.Snapshot().Destinations
				return a.whole(calls) && b.whole(calls) && s[0].QueuedBlocks+s[1].QueuedBlocks == 0 && s[2].QueuedBlocks > 0
			}, "the others have what is theirs")
			theirs := len(among(t, calls, a, b))
			require.InDelta(t, series*2/3, theirs, series/5)
			require.NoError(t, e.Shutdown(t.Context()))

			// Which of the other endpoints has which series now does not matter, but none is lost.
			e = create(t, sharded(a, b))
			require.NoError(t, e.Start(t.Context(), host()))
			eventually(t, func() bool {
				return e.Snapshot().Destinations[0].QueuedBlocks+e.Snapshot().Destinations[1].QueuedBlocks == 0
			}, "what was left arrives")
			require.NoError(t, e.Shutdown(t.Context()))
			at := among(t, calls, a, b)
			require.Len(t, at, series)
			require.Zero(t, down.samples())
			a.requireOrdered(t)
			b.requireOrdered(t)
		})
	}
}

func TestFaultsOfShardingAreNamed(t *testing.T) {
	fault := func(want string, change func(*Config)) {
		t.Helper()
		cfg := NewDefaultConfig()
		cfg.ShardByURL.Enabled = true
		for _, url := range []string{"http://a", "http://b"} {
			endpoint := EndpointConfig{HTTP: defaultClient()}
			endpoint.HTTP.Endpoint = url
			cfg.Endpoints = append(cfg.Endpoints, endpoint)
		}
		require.NoError(t, cfg.Validate())
		change(cfg)
		require.ErrorContains(t, cfg.Validate(), want)
	}
	fault("`shard_by_url` needs 2 to 255 `endpoints`, got 1", func(c *Config) { c.Endpoints = c.Endpoints[:1] })
	fault("`shard_by_url` needs 2 to 255 `endpoints`, got 400", func(c *Config) { c.Endpoints = slices.Repeat(c.Endpoints, 200) })
	fault("`shard_by_url.replicas` must be from 1", func(c *Config) { c.ShardByURL.Replicas = 0 })
	fault("`shard_by_url.replicas` must be from 1", func(c *Config) { c.ShardByURL.Replicas = 3 })
	fault("`shard_by_url.labels` excludes `shard_by_url.ignore_labels`", func(c *Config) {
		c.ShardByURL.Labels, c.ShardByURL.IgnoreLabels = []string{"a"}, []string{"b"}
	})
}
