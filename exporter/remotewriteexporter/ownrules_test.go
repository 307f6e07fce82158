// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
)

// rulesOf parses rules, with Prometheus' defaults.
func rulesOf(yaml string) []RelabelConfig {
	retrieved, err := confmap.NewRetrievedFromYAML([]byte("write_relabel_configs: [" + yaml + "]"))
	if err != nil {
		panic(err)
	}
	conf, err := retrieved.AsConf()
	if err != nil {
		panic(err)
	}
	cfg := NewDefaultConfig()
	if err := conf.Unmarshal(cfg); err != nil {
		panic(err)
	}
	return cfg.Labels.WriteRelabelConfigs
}

// oneBird are rules that keep one of the series of gauges, with another name.
var oneBird = rulesOf("{source_labels: [bird], regex: bird-1, action: keep}, {source_labels: [__name__], regex: wingbeats, target_label: __name__, replacement: beats}")

func withRules(d *received, rules []RelabelConfig) EndpointConfig {
	return endpointTo(d, func(c *EndpointConfig) { c.WriteRelabelConfigs = rules })
}

// requireOneBird requires what oneBird keeps of the given number of calls.
func (d *received) requireOneBird(t *testing.T, calls int) {
	t.Helper()
	d.requireOrdered(t)
	d.mu.Lock()
	defer d.mu.Unlock()
	require.Len(t, d.series, 1)
	for key, points := range d.series {
		require.Len(t, points, calls)
		require.Contains(t, key, "beats")
		require.Contains(t, key, "bird-1")
	}
}

// TestEachEndpointHasItsRules: the others get everything, in order, and one whose rules drop everything gets nothing.
func TestEachEndpointHasItsRules(t *testing.T) {
	const series, calls = 20, 30
	nothing := rulesOf("{action: drop}")
	for _, kept := range []string{"memory", "storage"} {
		for _, message := range []string{oneZero, twoZero} {
			t.Run(kept+" "+message, func(t *testing.T) {
				host := componenttest.NewNopHost()
				if kept == "storage" {
					host = newFiles(t, t.TempDir(), nil)
				}
				all, also, one, none := newReceived(t, nil), newReceived(t, nil), newReceived(t, nil), newReceived(t, nil)
				e := start(t, host, func(c *Config) {
					c.ProtobufMessage = message
					c.Endpoints = []EndpointConfig{withRules(all, nil), withRules(one, oneBird), withRules(none, nothing), withRules(also, nil)}
					if kept == "storage" {
						c.Queue.Storage = &storageID
					}
				})
				for n := range calls {
					require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(series, n)))
				}
				eventually(t, func() bool {
					return all.samples() == series*calls && also.samples() == series*calls && one.samples() == calls
				}, "all that is wanted arrives")
				all.requireOrdered(t)
				also.requireOrdered(t)
				one.requireOneBird(t, calls)
				require.Zero(t, none.samples())
				eventually(t, func() bool {
					for _, s := range e.Snapshot().Destinations {
						if s.QueuedBlocks > 0 {
							return false
						}
					}
					return true
				}, "nothing waits")
			})
		}
	}
}

// TestRulesOfAnEndpointSurviveARestart: data for an endpoint that is down is kept as the rules of that time made it;
// the others get none of it, even when the endpoint is no longer listed.
func TestRulesOfAnEndpointSurviveARestart(t *testing.T) {
	const series, calls = 10, 5
	for _, listed := range []bool{true, false} {
		for name, store := range map[string]bool{"memory": false, "storage": true} {
			t.Run(fmt.Sprint(name, " listed ", listed), func(t *testing.T) {
				directory := t.TempDir()
				host := func() component.Host {
					if store {
						return newFiles(t, directory, nil)
					}
					return componenttest.NewNopHost()
				}
				all, down := newReceived(t, nil), newReceived(t, status(math.MaxInt, http.StatusServiceUnavailable))
				configured := func(endpoints ...EndpointConfig) func(*Config) {
					return func(c *Config) {
						c.Endpoints, c.ShutdownTimeout = endpoints, 10*time.Millisecond
						if store {
							c.Queue.Storage = &storageID
						}
					}
				}
				e := create(t, configured(withRules(all, nil), withRules(down, oneBird)))
				require.NoError(t, e.Start(t.Context(), host()))
				for n := range calls {
					require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(series, n)))
				}
				eventually(t, func() bool { return all.samples() == series*calls && e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "the other has all")
				require.NoError(t, e.Shutdown(t.Context()))

				down.recover()
				endpoints := []EndpointConfig{withRules(all, nil)}
				if listed {
					endpoints = append(endpoints, withRules(down, nil)) // without rules from now on
				}
				e = create(t, configured(endpoints...))
				require.NoError(t, e.Start(t.Context(), host()))
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(0, 0)))
				if listed {
					eventually(t, func() bool { return down.samples() == calls }, "what was left arrives")
					down.requireOneBird(t, calls)
				}
				eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "nothing waits")
				require.NoError(t, e.Shutdown(t.Context()))
				require.Equal(t, series*calls, all.samples(), "the other has nothing of what was not for it")
			})
		}
	}
}

// TestRulesOfAnEndpointAreThoseOfAnExporter: any rules of an endpoint have the same result as rules of the exporter.
func TestRulesOfAnEndpointAreThoseOfAnExporter(t *testing.T) {
	const series, calls = 12, 4
	for name, rules := range map[string][]RelabelConfig{
		"one bird":    oneBird,
		"labels":      rulesOf("{regex: job, action: labeldrop}, {regex: (b)ird, replacement: '${1}_of_it', action: labelmap}"),
		"names":       rulesOf("{source_labels: [bird], regex: bird-(.*), target_label: __name__}"), // invalid names
		"some names":  rulesOf("{source_labels: [bird], regex: bird-1(.*), target_label: __name__}"),
		"same":        rulesOf("{regex: bird, action: labeldrop}"), // all series become one
		"hash":        rulesOf("{source_labels: [bird], modulus: 3, target_label: part, action: hashmod}, {source_labels: [part], regex: 0, action: drop}"),
		"nothing new": rulesOf("{source_labels: [bird], regex: no such bird, action: drop}"),
	} {
		t.Run(name, func(t *testing.T) {
			own, exporters := newReceived(t, nil), newReceived(t, nil)
			for _, d := range []*received{own, exporters} {
				e := create(t, func(c *Config) {
					if d == own {
						c.Endpoints = []EndpointConfig{withRules(d, rules)}
					} else {
						c.Endpoint, c.Labels.WriteRelabelConfigs = d.URL, rules
					}
				})
				require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
				for n := range calls {
					require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(series, n)))
				}
				require.NoError(t, e.Shutdown(t.Context()))
				d.requireOrdered(t)
			}
			require.Equal(t, exporters.series, own.series)
		})
	}
}

// TestRulesOfAnEndpointAreCounted, like those of the exporter.
func TestRulesOfAnEndpointAreCounted(t *testing.T) {
	d := newReceived(t, nil)
	e, tel, _ := instrumentedOn(t, componenttest.NewNopHost(), "", func(c *Config) {
		c.Endpoints = []EndpointConfig{withRules(d, oneBird)}
	})
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return d.samples() == 1 }, "one arrives")
	require.InDelta(t, 9, value(t, tel, "otelcol_exporter_remotewrite_relabel_dropped_points"), 0)
}

// TestRulesOfAShardedEndpoint apply to the series that it gets.
func TestRulesOfAShardedEndpoint(t *testing.T) {
	const series, calls = 100, 5
	a, b := newReceived(t, nil), newReceived(t, nil)
	e := create(t, func(c *Config) {
		shardedTo(c, 1, a, b)
		c.Endpoints[1].WriteRelabelConfigs = rulesOf("{regex: (bird), replacement: '${1}_of_b', action: labelmap}")
	})
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	for n := range calls {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(series, n)))
	}
	require.NoError(t, e.Shutdown(t.Context()))
	require.Len(t, among(t, calls, a, b), series)
	require.NotZero(t, a.samples())
	for key := range a.series {
		require.NotContains(t, key, "bird_of_b")
	}
	require.NotZero(t, b.samples())
	for key := range b.series {
		require.Contains(t, key, "bird_of_b")
	}
}

func TestFaultsOfRulesOfAnEndpointAreNamed(t *testing.T) {
	retrieved, err := confmap.NewRetrievedFromYAML([]byte("endpoints: [{endpoint: http://localhost:1, write_relabel_configs: [{action: explode}]}]"))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	cfg := NewDefaultConfig()
	require.NoError(t, conf.Unmarshal(cfg))
	require.ErrorContains(t, cfg.Validate(), "`endpoints[0].write_relabel_configs[0]`: `action` must be one of")
}
