// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusreceiver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/godwit-otel/godwit/receiver/prometheusreceiver/internal/metadata"
)

// Configurations of the Collector's receiver load. The discoveries that the agent is built without are tested
// end to end, with the full distribution.
func TestConfigs(t *testing.T) {
	conf, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	for _, id := range []string{"prometheus", "prometheus/files", "prometheus/options", "prometheus/pods"} {
		t.Run(id, func(t *testing.T) {
			sub, err := conf.Sub(id)
			require.NoError(t, err)
			require.NotEmpty(t, sub.ToStringMap())
			cfg := NewFactory().CreateDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
			assert.NoError(t, confmap.Validate(cfg))
		})
	}
}

func TestScrape(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, "answer 42\n")
	}))
	defer target.Close()
	cfg := NewFactory().CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"config": map[string]any{"scrape_configs": []any{map[string]any{
		"job_name": "test", "scrape_interval": "1s", "scrape_timeout": "1s",
		"static_configs": []any{map[string]any{"targets": []any{strings.TrimPrefix(target.URL, "http://")}}},
	}}}}).Unmarshal(cfg))
	sink := new(consumertest.MetricsSink)
	r, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	assert.Eventually(t, func() bool { return sink.DataPointCount() >= 6 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
}
