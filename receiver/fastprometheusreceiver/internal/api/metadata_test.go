// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"
)

// A babel is a scene in which each target has other metadata for the same metric.
type babel struct {
	*scene

	targets int
}

func (b babel) Pools() []Pool {
	p := Pool{Job: &promconfig.ScrapeConfig{JobName: "node"}, Targets: make([]Target, b.targets)}
	for i := range p.Targets {
		p.Targets[i].Families = func() []Family { return []Family{{Name: "m", Type: "gauge", Help: fmt.Sprintf("Of target %08d.", i)}} }
	}
	return []Pool{p}
}

func TestMetadataOfManyTargets(t *testing.T) {
	took := func(times, targets int) time.Duration {
		s := &Server{view: babel{newScene(), targets}}
		least := time.Hour
		for range 3 {
			began := time.Now()
			for range times {
				out, fault := s.metricMetadata(httptest.NewRequest(http.MethodGet, "/api/v1/metadata", nil))
				require.Nil(t, fault)
				require.Len(t, out.(map[string][]metricMetadata)["m"], targets)
			}
			least = min(least, time.Since(began))
		}
		return least
	}
	few, many := took(16, 1000), took(1, 16_000)
	require.Less(t, many, 6*few, "%v for a few targets at a time", few)
}
