// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// next returns the first update that the condition holds for.
func next(t *testing.T, s *Source, condition func(Groups) bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case groups, open := <-s.Updates():
			require.True(t, open)
			if condition(groups) {
				return
			}
		case <-deadline:
			require.Fail(t, "no such update")
		}
	}
}

func TestSource(t *testing.T) {
	s, err := NewSource(zap.NewNop(), prometheus.NewRegistry())
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Apply([]*config.ScrapeConfig{job(t, "  static_configs: [{targets: [a:1, b:1]}]\n")}))
	next(t, s, func(g Groups) bool { return len(g["test"]) == 1 && len(g["test"][0].Targets) == 2 })

	other := job(t, "  static_configs: [{targets: [c:1]}]\n")
	other.JobName = "other"
	require.NoError(t, s.Apply([]*config.ScrapeConfig{other}))
	next(t, s, func(g Groups) bool {
		_, old := g["test"]
		return !old && len(g["other"]) == 1
	})
}

// Two receivers in one process do not get in each other's way.
func TestSourcesAreIndependent(t *testing.T) {
	for range 2 {
		s, err := NewSource(zap.NewNop(), prometheus.NewRegistry())
		require.NoError(t, err)
		defer s.Close()
	}
	s, err := NewSource(zap.NewNop(), prometheus.NewRegistry())
	require.NoError(t, err)
	s.Close()
	_, open := <-s.Updates()
	assert.False(t, open)
}
