// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/racetest"
)

func TestEqualMechanismsAreShared(t *testing.T) {
	of := func(text string) any { return distinguish(job(t, text).ServiceDiscoveryConfigs)[0] }
	a := of("  http_sd_configs: [{url: 'http://a/'}]\n")
	assert.True(t, reflect.DeepEqual(a, of("  http_sd_configs: [{url: 'http://a/'}]\n")))
	assert.False(t, reflect.DeepEqual(a, of("  http_sd_configs: [{url: 'http://b/'}]\n")))
	assert.False(t, reflect.DeepEqual(a, of("  http_sd_configs: [{url: 'http://a/', refresh_interval: 1s}]\n")))
	secret := func(word string) any {
		return of("  http_sd_configs: [{url: 'http://a/', basic_auth: {username: u, password: " + word + "}}]\n")
	}
	assert.False(t, reflect.DeepEqual(secret("one"), secret("two")), "a sum does not see secrets, the comparison does")
}

// Applying thousands of jobs takes little more than reading them, also repeatedly.
func TestManyJobs(t *testing.T) {
	f := func(n int) time.Duration {
		jobs := []*config.ScrapeConfig{}
		for i := range n {
			one := job(t, fmt.Sprintf("  http_sd_configs: [{url: 'http://127.0.0.1:1/jobs/%d/targets', refresh_interval: 1h}]\n", i))
			one.JobName = fmt.Sprint(i)
			jobs = append(jobs, one)
		}
		fastest := time.Hour
		for range 3 {
			s, err := NewSource(zap.NewNop(), prometheus.NewRegistry(), nil)
			require.NoError(t, err)
			start := time.Now()
			require.NoError(t, s.Apply(jobs))
			s.Close()
			fastest = min(fastest, time.Since(start))
		}
		return fastest
	}
	var few, many time.Duration
	for range 5 { // a machine with other work may be slow while either is measured
		if few, many = f(racetest.Size(200, 20)), f(racetest.Size(2000, 200)); many < 100*few {
			return
		}
	}
	assert.Fail(t, "ten times as many jobs take more than a hundred times as long", "%v, not %v", many, few)
}
