// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/discover"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
)

// A job with many targets continues while it is shown.
func TestNobodyWaitsForWhatIsShown(t *testing.T) {
	j := newJob(&scraper{}, "node")
	cfg := promconfig.DefaultScrapeConfig
	cfg.ScrapeInterval, cfg.ScrapeTimeout = promconfig.DefaultGlobalConfig.ScrapeInterval, promconfig.DefaultGlobalConfig.ScrapeTimeout
	j.tools = &tools{cfg: &cfg}
	group := &targetgroup.Group{Targets: []model.LabelSet{{"__address__": "a:1"}}}
	found := discover.NewDeriver(&cfg, discover.Shard{}).Derive([]*targetgroup.Group{group})
	require.Len(t, found.Targets, 1)
	slow := &target{job: j}
	slow.assignment.Store(&assignment{Target: found.Targets[0], tools: j.tools})
	j.targets[1] = slow
	for _, show := range []func(){
		func() { j.snapshot() },
		func() { j.inspect() },
		func() { j.pool() },
	} {
		slow.mu.Lock()
		var shown sync.WaitGroup
		shown.Go(show)
		for range 1000 { // until it is blocked by the target
			runtime.Gosched()
		}
		require.Eventually(t, j.mu.TryLock, 10*time.Second, time.Millisecond)
		j.mu.Unlock()
		slow.mu.Unlock()
		shown.Wait()
	}
}

// Targets of a job that has ended retire one by one, and each time the job is checked. By the last time there may be
// another job of the same name.
func TestAJobThatHasEndedLeavesItsSuccessorAlone(t *testing.T) {
	client, err := fetch.NewClient(&promconfig.ScrapeConfig{JobName: "node"}, fetch.Options{})
	require.NoError(t, err)
	ended, next := newJob(nil, "node"), newJob(nil, "node")
	ended.ended, ended.tools, next.tools = true, &tools{client: client}, &tools{client: client}
	table := jobTable{jobs: map[string]*job{"node": ended}}
	table.forget(ended)
	require.Empty(t, table.jobs)
	table.jobs["node"] = next
	table.forget(ended)
	require.Same(t, next, table.jobs["node"])
}
